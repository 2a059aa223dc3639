"""Several processes: forked and spawned environments, one cache folder warmed twice at once, no folder to write to."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hetenv.env.single import HetEnv
from hetenv.jit import source_digest
from tests.env.play import at_random, digest, episode_digest

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.compiled]
NO_FOLDERS = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "USERPROFILE")


def bare(**variables: str) -> dict[str, str]:
    """The environment's variables without those that name a place for a cache."""
    return {**{name: value for name, value in os.environ.items() if name not in NO_FOLDERS}, **variables}


def files(folder: Path) -> dict[str, int]:
    """Files below a folder with the times of their last change."""
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("start_method", ["fork", "spawn", "forkserver"])
def test_p03_environments_in_processes_give_the_same_episodes(start_method: str) -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    vec: Any = vec_env.SubprocVecEnv([HetEnv, HetEnv], start_method=start_method)
    try:
        vec.seed(5)
        here = [HetEnv(), HetEnv()]
        expected = [env.reset(seed=5 + b)[0] for b, env in enumerate(here)]
        shown, pick = vec.reset(), at_random()
        for _ in range(100):
            assert digest(dict(shown)) == digest({name: np.stack([each[name] for each in expected]) for name in expected[0]})
            masks = vec.env_method("action_masks")
            assert all(np.array_equal(mask, env.action_masks()) for mask, env in zip(masks, here))
            actions = np.array([pick(mask.astype(np.int8)) for mask in masks])
            shown, rewards, dones, _ = vec.step(actions)
            returned = [env.step(int(action)) for env, action in zip(here, actions)]
            assert rewards.tolist() == [np.float32(each[1]) for each in returned] and not dones.any()
            expected = [each[0] for each in returned]
    finally:
        vec.close()


def test_p13_a_cache_folder_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    """A file where the folder should be: no user may create one there, not even the superuser."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    command = [sys.executable, "-m", "tests.env.play", "smoke", "7", "10"]
    variables = bare(NUMBA_CACHE_DIR=str(blocked), HOME=str(blocked))
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=variables)
    assert done.stdout.strip() == episode_digest(HetEnv("smoke"), 7, 10)
    assert list(files(tmp_path)) == [str(blocked)]


def test_two_processes_may_warm_one_folder_at_once(tmp_path: Path) -> None:
    variables = bare(NUMBA_CACHE_DIR=str(tmp_path))
    command = [sys.executable, "-m", "tests.env.play", "smoke", "7", "200"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=variables) for _ in range(2)]
    shown = [process.communicate()[0].strip() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    expected = episode_digest(HetEnv("smoke"), 7, 200)
    assert shown == [expected, expected]
    kernels = files(tmp_path / "hetenv" / source_digest())
    assert kernels
    third = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=variables)
    assert third.stdout.strip() == expected
    assert files(tmp_path / "hetenv" / source_digest()) == kernels, "compiled again"

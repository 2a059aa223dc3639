"""P03, P09: Stable-Baselines3 takes the environments as they are, in this process and in others."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from hetenv.env.single import HetEnv
from hetenv.scenario import Scenario

from .play import at_random, copied, digest, is_plain, play

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.compiled

LEARN = """
import sys
import gymnasium as gym
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv

if __name__ == "__main__":
    vec = make_vec_env("hetenv:hetenv/Smoke-v0", n_envs=2, seed=0, vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": sys.argv[1]})
    masks = vec.env_method("action_masks")
    assert len(masks) == 2 and all(mask.dtype == bool and mask[0] for mask in masks)
    model = MaskablePPO("MultiInputPolicy", vec, n_steps=64, batch_size=64, n_epochs=1, device="cpu")
    model.learn(256)
    print(model.num_timesteps)
    vec.close()
"""


def test_p03_info_is_plain_data(shipped: Scenario) -> None:
    env = HetEnv(shipped)
    assert is_plain(env.reset(seed=0)[1])
    for _, (*_, info) in play(env, at_random(), 50):
        assert is_plain(info)


@pytest.mark.parametrize(
    "start_method", ["forkserver", pytest.param("spawn", marks=pytest.mark.slow), pytest.param("fork", marks=pytest.mark.slow)]
)
def test_p03_maskable_ppo_learns_in_processes(start_method: str, tmp_path: Path) -> None:
    pytest.importorskip("sb3_contrib")
    script = tmp_path / "learn.py"
    script.write_text(LEARN, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script), start_method], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) == 256


def test_p03_maskable_ppo_learns_without_a_wrapper(smoke: Scenario) -> None:
    contrib = pytest.importorskip("sb3_contrib")
    for observation, policy in (("dict", "MultiInputPolicy"), ("flat", "MlpPolicy")):
        env = gym.make("hetenv/HetCluster-v0", scenario=smoke, observation=observation)
        model = contrib.MaskablePPO(policy, env, n_steps=64, batch_size=64, n_epochs=1, device="cpu", seed=0)
        assert model.learn(256).num_timesteps == 256


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_stable_baselines_checker_passes(shipped: Scenario) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    for observation in ("dict", "flat"):
        checker.check_env(HetEnv(shipped, observation=observation))


def test_p09_truncation_reaches_stable_baselines(smoke: Scenario) -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    vec, alone = vec_env.DummyVecEnv([lambda: HetEnv(smoke)]), HetEnv(smoke)
    vec.seed(0)
    vec.reset()
    alone.reset(seed=0)
    for action, (last, *flags, _) in play(alone, at_random()):  # noqa: B007
        _, _, dones, infos = vec.step(np.array([action]))
    assert dones[0] and flags[1:] == [False, True] and infos[0]["TimeLimit.truncated"] is True
    shown: Any = copied(infos[0]["terminal_observation"])
    assert digest(dict(shown)) == digest(last)

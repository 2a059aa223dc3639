"""The public names and ids: what `import hetenv` gives and costs, P12 and P13, golden figures, Gymnasium's own checks."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

import hetenv
from hetenv import scenario as scenarios
from hetenv.env.single import HetEnv
from hetenv.env.vector import HetVectorEnv
from hetenv.errors import TraceError
from hetenv.scenario import Scenario

from .golden import PATH, found, ids
from .play import episode_digest

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads(PATH.read_text(encoding="utf-8"))


def test_every_scenario_has_an_id_with_its_version() -> None:
    versions = {}
    for name in scenarios.names():
        scenario = scenarios.load(name)
        assert scenario.name == name
        versions[f"hetenv/{name.title().replace('_', '')}-v{scenario.version}"] = name
    registered = {each: gym.registry[each].kwargs.get("scenario") for each in ids()}
    assert registered == {**versions, "hetenv/HetCluster-v0": None}


def test_p12_ids_are_safe_names() -> None:
    assert all(re.fullmatch(r"hetenv/[A-Za-z0-9]+-v\d+", each) for each in ids())


@pytest.mark.compiled
@pytest.mark.parametrize("name", ids())
def test_ids_show_what_they_showed(name: str) -> None:
    try:
        now = found(name)
    except TraceError as error:
        pytest.skip(str(error))
    assert now == pytest.approx(GOLDEN[name], rel=1e-5), (
        f"{name} changed; if on purpose raise the scenario's version, run `python -m tests.env.golden` and tell CHANGELOG.md"
    )


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore:.*not within the observation space:UserWarning")
def test_gymnasiums_checker_passes(shipped: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    for observation in ("dict", "flat"):
        check_env(gym.make("hetenv/HetCluster-v0", scenario=shipped, observation=observation).unwrapped)
    (name,) = [each for each in ids() if gym.registry[each].kwargs.get("scenario") == shipped.name]
    check_env(gym.make(name).unwrapped)
    assert isinstance(gym.make_vec(name, num_envs=2), HetVectorEnv)


def test_made_environments_have_no_wrapper() -> None:
    """Each wrapper costs about as much per step as the environment's own Python."""
    env = gym.make("hetenv/Smoke-v0")
    assert isinstance(env, HetEnv) and env.get_wrapper_attr("action_masks")().any()
    assert gym.make("hetenv/Smoke-v0", max_episode_steps=9).get_wrapper_attr("action_masks")().any()
    assert gym.spec("hetenv/Smoke-v0").from_json(gym.spec("hetenv/Smoke-v0").to_json()).kwargs == {"scenario": "smoke"}


def test_public_names_are_there_and_no_others() -> None:
    for name in hetenv.__all__:
        assert getattr(hetenv, name) is not None and name in dir(hetenv)
    assert hetenv.load("smoke").name == "smoke" and hetenv.make_policy("fifo").name == "fifo"
    assert hetenv.perf.Plan and issubclass(hetenv.ScenarioError, hetenv.HetenvError)
    assert re.match(r"\d+\.\d+", hetenv.__version__)
    with pytest.raises(AttributeError, match="no attribute 'laod'"):
        hetenv.laod  # noqa: B018


def in_a_process(code: str, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT, env=environment)
    return done.stdout


def test_p13_import_is_light() -> None:
    heavy = ("torch", "ray", "pygame", "matplotlib", "pandas", "scipy", "numba", "pydantic", "yaml")
    code = f"import sys, hetenv; print(*[name for name in {heavy} if name in sys.modules])"
    assert in_a_process(code).split() == []


BARE = """
import os
for name in ("HOME", "DISPLAY", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "MPLCONFIGDIR", "USERPROFILE"):
    os.environ.pop(name, None)
import gymnasium as gym, hetenv
from hetenv.jit import cache_folder
from tests.env.play import episode_digest
print(episode_digest(gym.make("hetenv/HetCluster-v0", scenario="smoke"), 7, 10), cache_folder())
"""


@pytest.mark.compiled
def test_p13_without_a_home_and_without_numba_results_are_the_same() -> None:
    assert in_a_process(BARE, NUMBA_DISABLE_JIT="1").split() == [episode_digest(HetEnv("smoke"), 7, 10), "None"]


@pytest.mark.slow
@pytest.mark.compiled
def test_p13_without_a_home_kernels_are_compiled_in_memory() -> None:
    assert in_a_process(BARE).split() == [episode_digest(HetEnv("smoke"), 7, 10), "None"]


def test_rendering_shows_pools_and_jobs(smoke: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    env: Any = gym.make("hetenv/HetCluster-v0", scenario=smoke, render_mode="ansi")
    env.reset(seed=0)
    env.step(1)
    text = env.render()
    assert re.search(r"^0:00:00  open, 1 running, 3 queued$", text, re.MULTILINE)
    assert re.search(r"^ *a100 \[[#x.]{32}\] \d+ held, 0 down of 8$", text, re.MULTILINE)
    assert len(re.findall(r"^ *(running|queued) #", text, re.MULTILINE)) == 4
    assert max(map(len, text.splitlines())) <= 120
    human = HetEnv(smoke, render_mode="human")
    human.reset(seed=0)
    human.step(1)
    assert capsys.readouterr().out.endswith(text + "\n") and human.render() is None
    image: Any = HetEnv(smoke, render_mode="rgb_array").render()
    assert image.dtype == "uint8" and image.shape == (64, 256, 3)
    envs = HetVectorEnv(2, smoke, render_mode="ansi")
    envs.reset(seed=0)
    assert len(envs.render()) == 2 and HetEnv(smoke).render() is None

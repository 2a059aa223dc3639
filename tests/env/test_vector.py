"""HetVectorEnv is a SyncVectorEnv of HetEnvs, bit for bit and infos included, in all three autoreset modes."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from numpy.typing import NDArray

from hetenv.env.single import HetEnv
from hetenv.env.vector import HetVectorEnv
from hetenv.errors import ScenarioError
from hetenv.scenario import Scenario
from tests.bench.worlds import compiled as compiled_of

from .play import copied, digest

ID = "hetenv/HetCluster-v0"
N = 3


def steps(envs: VectorEnv[Any, Any, Any], info: dict[str, Any], n: int) -> Iterator[tuple[Any, NDArray[np.int64]]]:
    """n batched steps of random legal actions: what came back, and the actions."""
    rng, mask = np.random.default_rng(0), info["action_mask"]
    for _ in range(n):
        actions = (rng.random(mask.shape) * mask).argmax(1)
        returned = envs.step(actions)
        yield returned, actions
        mask = envs.unwrapped.action_masks()


@pytest.mark.compiled
@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("observation", ["dict", "flat"])
def test_p09_the_batch_is_gymnasiums_own_vector_of_single_environments(
    smoke: Scenario, mode: AutoresetMode, observation: Any
) -> None:
    envs = gym.make_vec(ID, num_envs=N, scenario=smoke, observation=observation, autoreset_mode=mode)
    assert isinstance(envs, HetVectorEnv)
    singles = SyncVectorEnv([lambda: HetEnv(smoke, observation=observation)] * N, autoreset_mode=mode)
    assert envs.observation_space == singles.observation_space and envs.action_space == singles.action_space
    mine, its = envs.reset(seed=5), singles.reset(seed=5)
    assert digest(mine) == digest(its)
    n_over = 0
    for returned, actions in steps(envs, mine[1], 600):
        assert digest(returned) == digest(singles.step(actions))
        over = returned[2] | returned[3]
        n_over += int(over.sum())
        if mode == AutoresetMode.DISABLED and over.any():
            again, expected = (each.reset(options={"reset_mask": over.copy()}) for each in (envs, singles))
            assert digest(again) == digest(expected)
    assert n_over >= N


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SameStep", AutoresetMode.DISABLED])
def test_modes_by_name_value_or_member_stand_in_metadata(smoke: Scenario, mode: Any) -> None:
    envs = gym.make_vec(ID, num_envs=2, scenario=smoke, autoreset_mode=mode)
    assert isinstance(envs.autoreset_mode, AutoresetMode)
    assert envs.metadata["autoreset_mode"] is envs.autoreset_mode
    assert HetVectorEnv.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


def test_unknown_arguments_are_named(smoke: Scenario) -> None:
    with pytest.raises(ScenarioError, match="autoreset_mode: unknown mode 'next'"):
        HetVectorEnv(2, smoke, autoreset_mode="next")
    envs = HetVectorEnv(2, smoke)
    envs.reset(seed=0)
    with pytest.raises(ScenarioError, match=r"actions: must be \[2\] \(got \[3\]\)"):
        envs.step(np.zeros(3, np.int64))
    with pytest.raises(ScenarioError, match=r"options.reset_mask: must be bool \[2\] \(got int64 \[2\]\)"):
        envs.reset(options={"reset_mask": np.array([0, 1])})
    with pytest.raises(ScenarioError, match="seed: a sequence must have 2 entries"):
        envs.reset(seed=[1])
    with pytest.raises(ScenarioError, match="options: unknown option 'world'"):
        envs.reset(options={"world": None})


def test_seeds_as_a_sequence(smoke: Scenario) -> None:
    one, other = HetVectorEnv(3, smoke), HetVectorEnv(3, smoke, seed=4)
    assert digest(one.reset(seed=[4, 5, 6])) == digest(other.reset())
    assert digest(one.reset(seed=[4, None, 6])) != digest(other.reset())


def test_p09_max_episode_steps_truncates(smoke: Scenario) -> None:
    envs = gym.make_vec(ID, num_envs=2, scenario=smoke, max_episode_steps=5, autoreset_mode="NEXT_STEP")
    _, info = envs.reset(seed=0)
    truncated = [returned[3].tolist() for returned, _ in steps(envs, info, 12)]
    assert truncated == [[k in (4, 10)] * 2 for k in range(12)]  # the step after an end begins anew


def test_p09_max_episode_steps_is_gymnasiums_time_limit(smoke: Scenario) -> None:
    envs = HetVectorEnv(2, smoke, max_episode_steps=7, autoreset_mode="SAME_STEP")
    singles = SyncVectorEnv(
        [lambda: gym.make(ID, scenario=smoke, max_episode_steps=7)] * 2, autoreset_mode=AutoresetMode.SAME_STEP
    )
    mine, its = envs.reset(seed=0), singles.reset(seed=0)
    assert digest(mine) == digest(its)
    for returned, actions in steps(envs, mine[1], 40):
        assert digest(returned) == digest(singles.step(actions))


def test_p09_steps_where_nothing_resets_are_refused(smoke: Scenario) -> None:
    envs = HetVectorEnv(2, smoke, autoreset_mode="DISABLED", max_episode_steps=1)
    with pytest.raises(ResetNeeded, match=r"\[0, 1\] were never begun"):
        envs.step([0, 0])
    envs.reset(seed=0)
    envs.step([0, 0])
    with pytest.raises(ResetNeeded, match=r"\[0, 1\] are over"):
        envs.step([0, 0])
    envs.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ResetNeeded, match=r"\[1\] are over"):
        envs.step([0, 0])
    envs.reset(options={"reset_mask": np.array([False, True])})
    envs.step([0, 0])


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_p09_worlds_without_a_decision_end_at_their_first_step(mode: AutoresetMode) -> None:
    scenario = compiled_of(horizon_s=1e-3).scenario  # over before the first job
    envs = HetVectorEnv(2, scenario, autoreset_mode=mode)
    singles = SyncVectorEnv([lambda: HetEnv(scenario)] * 2, autoreset_mode=mode)
    assert digest(envs.reset(seed=0)) == digest(singles.reset(seed=0))
    for _ in range(5):
        mine, its = envs.step(np.zeros(2, np.int64)), singles.step(np.zeros(2, np.int64))
        assert digest(mine) == digest(its)
        if mode == AutoresetMode.DISABLED:
            assert mine[2].all()
            for each in (envs, singles):
                each.reset(options={"reset_mask": np.ones(2, bool)})


def test_p08_returned_arrays_are_the_callers(smoke: Scenario) -> None:
    envs = HetVectorEnv(N, smoke, autoreset_mode="SAME_STEP")
    kept: list[Any] = [envs.reset(seed=0)]
    copies = [copied(kept[0])]
    for returned, _ in steps(envs, kept[0][1], 20):
        kept.append(returned)
        copies.append(copied(returned))
    assert digest(kept) == digest(copies)
    actions = np.zeros(N, np.int64)
    actions[0] = -7
    envs.step(actions)
    assert actions[0] == -7


@pytest.mark.compiled
def test_p06_batches_lie_in_their_space(shipped: Scenario) -> None:
    envs = HetVectorEnv(2, shipped)
    observation, info = envs.reset(seed=0)
    assert envs.observation_space.contains(observation)
    for (observation, rewards, terminated, truncated, _), _ in steps(envs, info, 200):
        assert envs.observation_space.contains(observation)
        assert rewards.dtype == np.float64 and terminated.dtype == truncated.dtype == bool


def test_gymnasiums_vector_wrappers_take_it(smoke: Scenario) -> None:
    """Not SAME_STEP: there RecordEpisodeStatistics miscounts the steps of every episode but the first."""
    envs = RecordEpisodeStatistics(HetVectorEnv(2, smoke, max_episode_steps=20))
    _, info = envs.reset(seed=0)
    _, infos = DictInfoToList(HetVectorEnv(2, smoke)).reset(seed=0)
    assert np.array_equal(infos[1]["action_mask"], info["action_mask"][1])
    lengths: list[int] = []
    for returned, _ in steps(envs, info, 50):
        if "episode" in returned[4]:
            lengths += returned[4]["episode"]["l"][returned[4]["_episode"]].tolist()
    assert lengths == [20] * 4

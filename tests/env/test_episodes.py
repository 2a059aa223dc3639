"""P04, P05, P08, P09, P10: seeds, resets, copies, ownership of arrays, ends of episodes."""

import copy
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import hetenv
from hetenv.env.single import HetEnv
from hetenv.env.vector import HetVectorEnv
from hetenv.errors import ScenarioError
from hetenv.scenario import Scenario
from tests.bench.worlds import compiled as compiled_of
from tests.bench.worlds import world as world_of

from .play import at_random, copied, digest, episode_digest, first_legal, play, wait

ROOT = Path(__file__).parents[2]


def test_p04_a_seed_gives_one_trajectory(smoke: Scenario) -> None:
    env = HetEnv(smoke)
    assert episode_digest(env, 7) == episode_digest(env, 7) == episode_digest(HetEnv(smoke), 7)
    assert episode_digest(env, 7) != episode_digest(env, 8)


@pytest.mark.compiled
def test_p04_a_trajectory_is_the_same_in_every_process(smoke: Scenario) -> None:
    command = [sys.executable, "-m", "tests.env.play", "smoke", "7", "200"]
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment)
        assert done.stdout.strip() == episode_digest(HetEnv(smoke), 7)


def test_p04_episodes_of_a_seed_differ_and_repeat(smoke: Scenario) -> None:
    env = HetEnv(smoke)
    triple = [episode_digest(env, seed) for seed in (7, None, None)]
    assert len(set(triple)) == 3
    assert [episode_digest(env, seed) for seed in (7, None, None)] == triple
    given = HetEnv(smoke, seed=7)
    assert [episode_digest(given, None) for _ in range(3)] == triple


def test_p04_an_episode_is_the_world_of_its_number(smoke: Scenario) -> None:
    env, compiled = HetEnv(smoke), smoke.compile()
    for number, seed in enumerate((7, None, None)):
        env.reset(seed=seed)
        requests = compiled.sample(7, number).requests
        assert np.array_equal(env.core.simulator.facts.requests[0, : requests.size], requests)


def test_p04_without_a_seed_worlds_come_from_the_training_range(smoke: Scenario) -> None:
    first, n = smoke.seeds.train
    envs = [HetEnv(smoke) for _ in range(4)]
    digests = {digest(env.reset()) for env in envs}
    assert len(digests) > 1
    assert all(first <= env._episodes._seed < first + n for env in envs)


@pytest.mark.parametrize("make", [HetEnv, lambda **kwargs: HetVectorEnv(2, **kwargs)])
def test_p04_negative_seeds_are_refused(smoke: Scenario, make: Any) -> None:
    with pytest.raises(ScenarioError, match=r"seed: must be at least 0 \(got -1\)"):
        make(scenario=smoke, seed=-1)


def test_p04_global_generators_stay_as_they_are(smoke: Scenario) -> None:
    def states() -> tuple[Any, ...]:
        known = [random.getstate(), digest(np.random.get_state()[1])]  # noqa: NPY002
        if "torch" in sys.modules:
            known.append(sys.modules["torch"].get_rng_state().tolist())
        return tuple(known)

    before = states()
    env = HetEnv(smoke)
    episode_digest(env, None)
    episode_digest(env, 3)
    env.render()
    envs = HetVectorEnv(2, smoke)
    envs.reset()
    envs.step([0, 0])
    assert states() == before


def test_p04_vector_environments_meet_different_worlds(smoke: Scenario) -> None:
    observation, _ = HetVectorEnv(4, smoke).reset(seed=0)
    shown = [digest({name: part[b] for name, part in observation.items()}) for b in range(4)]
    assert len(set(shown)) == 4


def test_p05_reset_leaves_nothing_behind(smoke: Scenario) -> None:
    fresh = episode_digest(HetEnv(smoke), 7, 10**6)
    for n in (0, 1, 37, 10**6):
        env = HetEnv(smoke)
        env.reset(seed=11)
        for _ in play(env, at_random(5), n):
            pass
        assert episode_digest(env, 7, 10**6) == fresh
    env.reset(seed=12)
    env.reset(seed=13)
    assert episode_digest(env, 7, 10**6) == fresh


@pytest.mark.compiled
def test_p05_a_larger_world_before_changes_nothing() -> None:
    compiled = compiled_of(nodes=2, gpus=2)
    small = world_of(compiled, [(0.0, 1, 50.0), (10.0, 2, 80.0), (10.0, 4, 30.0)])
    large = world_of(compiled, [(float(k), 1 + k % 2, 20.0) for k in range(300)])

    def played(env: HetEnv) -> str:
        return digest([env.reset(options={"world": small}), list(play(env, at_random()))])

    env = HetEnv(compiled.scenario)
    before = played(env)
    env.reset(options={"world": large})
    for _ in play(env, at_random()):
        pass
    assert played(env) == before


@pytest.mark.parametrize("observation", ["dict", "flat"])
def test_p08_returned_arrays_are_the_callers(smoke: Scenario, observation: Any) -> None:
    env = HetEnv(smoke, observation=observation)
    kept = [returned := env.reset(seed=0)]
    copies = [copied(returned)]
    for _, returned in play(env, at_random(), 10):
        kept.append(returned)
        copies.append(copied(returned))
    assert digest(kept) == digest(copies)


def test_p08_writing_into_a_returned_array_changes_nothing(smoke: Scenario) -> None:
    def scribble(value: Any) -> None:
        for part in value.values() if isinstance(value, dict) else [value]:
            if isinstance(part, dict):
                scribble(part)
            elif isinstance(part, np.ndarray):
                part[...] = 0

    env, twin = HetEnv(smoke), HetEnv(smoke)
    for written in (env.reset(seed=0), twin.reset(seed=0))[:1]:
        scribble(written[0])
        scribble(written[1])
    pick = at_random()
    for _ in range(100):
        mask = twin.action_masks()
        assert np.array_equal(mask, env.action_masks())
        action = pick(mask)
        returned, expected = env.step(action), twin.step(action)
        assert digest(returned) == digest(expected)
        scribble(returned[0])
        scribble(returned[4])
        scribble(env.action_masks())
        if expected[2] or expected[3]:
            break


def last_step(compiled: Any, world: Any, pick: Any = first_legal) -> tuple[HetEnv, Any]:
    env = HetEnv(compiled.scenario)
    env.reset(options={"world": world})
    *_, (_, returned) = play(env, pick)
    return env, returned


def test_p09_all_jobs_done_terminates() -> None:
    compiled = compiled_of()
    _, (_, reward, terminated, truncated, _) = last_step(compiled, world_of(compiled, [(0.0, 1, 100.0)]))
    assert terminated is True and truncated is False and type(reward) is float


def test_p09_work_left_at_the_limit_truncates_and_shows_the_real_end() -> None:
    compiled = compiled_of()
    jobs = [(0.0, 1, 600.0), (0.0, 1, 600.0), (100.0, 1, 1.0)]
    env, (observation, _, terminated, truncated, _) = last_step(compiled, world_of(compiled, jobs, preemptible=0))
    assert terminated is False and truncated is True
    cluster = observation["cluster"]
    assert cluster[2] == 1.0, "progress"
    assert cluster[3] == np.float32(1 / 17) and cluster[4] == np.float32(1 / 17), "one queued, one running"
    assert env.core.simulator.now() == compiled.scenario.limit_s


def test_p09_both_at_once_is_terminated() -> None:
    compiled = compiled_of(horizon_s=1000.0)
    _, (_, _, terminated, truncated, _) = last_step(compiled, world_of(compiled, [(0.0, 1, 1000.0)]))
    assert terminated is True and truncated is False


def test_p09_steps_after_the_end_or_before_the_start_are_refused(smoke: Scenario) -> None:
    env = gym.make("hetenv/HetCluster-v0", scenario=smoke)
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    for _ in play(env.unwrapped, wait):
        pass
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset()
    env.step(0)


def test_p09_a_world_without_a_decision_ends_at_its_first_step() -> None:
    compiled = compiled_of()
    env = HetEnv(compiled.scenario)
    env.reset(options={"world": world_of(compiled, [])})
    observation, reward, terminated, truncated, info = env.step(0)
    assert (reward, terminated, truncated, info["elapsed_s"]) == (0.0, True, False, 0.0)
    assert env.observation_space.contains(observation)


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"])
@pytest.mark.parametrize("max_episode_steps", [None, 10**6])
def test_p10_copies_go_on_alike_and_apart(smoke: Scenario, twin_of: Any, max_episode_steps: int | None) -> None:
    env = gym.make("hetenv/HetCluster-v0", scenario=smoke, max_episode_steps=max_episode_steps)
    twin_of(env)
    env.reset(seed=3)
    for _ in play(env.unwrapped, at_random(), 37):
        pass
    twin, other = twin_of(env), twin_of(env)
    for _ in play(other.unwrapped, at_random(1), 100):
        pass
    mine, its = (list(play(each.unwrapped, at_random(2))) for each in (env, twin))
    assert digest(mine) == digest(its)
    assert digest(env.reset()) == digest(twin.reset()), "the next episode is the same, too"


def test_p10_vector_copies_go_on_alike(smoke: Scenario) -> None:
    envs = HetVectorEnv(3, smoke)
    _, info = envs.reset(seed=3)
    rng = np.random.default_rng(0)
    for _ in range(30):
        mask = info["action_mask"]
        *_, info = envs.step((rng.random(mask.shape) * mask).argmax(1))
    twins = [copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))]
    for _ in range(300):
        mask = envs.action_masks()
        actions = (rng.random(mask.shape) * mask).argmax(1)
        expected = digest(envs.step(actions))
        assert all(digest(twin.step(actions)) == expected for twin in twins)


def test_p10_worlds_are_immutable(smoke: Scenario) -> None:
    world = smoke.compile().sample(0)
    for table in (world.requests, world.events, world.ranks):
        with pytest.raises(ValueError, match="read-only"):
            table[...] = table


def test_unknown_arguments_are_named(smoke: Scenario) -> None:
    with pytest.raises(ScenarioError, match=r"render_mode: unknown mode 'rgb' .*\(known: ansi, human, rgb_array\)"):
        HetEnv(smoke, render_mode="rgb")
    with pytest.raises(ScenarioError, match="observation: unknown kind 'graph'"):
        HetEnv(smoke, observation="graph")  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="reward: unknown term 'jobs_s'; did you mean 'job_s'"):
        HetEnv(smoke, reward={"jobs_s": 1.0})
    with pytest.raises(ScenarioError, match="options: unknown option 'reset_mask'"):
        HetEnv(smoke).reset(options={"reset_mask": True})
    with pytest.raises(ScenarioError, match="unknown scenario 'smok'; did you mean 'smoke'"):
        gym.make("hetenv/HetCluster-v0", scenario="smok")


def test_a_mapping_stands_for_the_arguments(smoke: Scenario) -> None:
    env = hetenv.HetEnv({"scenario": smoke, "seed": 7, "observation": "flat"})
    assert isinstance(env.observation_space, gym.spaces.Box)
    assert episode_digest(env, None) == episode_digest(HetEnv(smoke, observation="flat"), 7)
    envs = hetenv.HetVectorEnv({"scenario": smoke, "num_envs": 3, "autoreset_mode": "SameStep"})
    assert envs.num_envs == 3 and envs.autoreset_mode == gym.vector.AutoresetMode.SAME_STEP
    with pytest.raises(TypeError, match="scenaro"):
        HetEnv({"scenaro": "smoke"})

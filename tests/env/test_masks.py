"""P01, P02, P06, P18: masks always leave a choice and are right, observations lie in their space, GPUs are conserved."""

from typing import Any

import numpy as np
import pytest

from hetenv.env.core import EnvCore
from hetenv.env.single import HetEnv
from hetenv.events.stream import Effect
from hetenv.objective import Account
from hetenv.scenario import Scenario
from hetenv.sim.tables import DELTA, TOTAL
from tests.bench.worlds import compiled as compiled_of
from tests.bench.worlds import world as world_of

from .play import at_random, first_legal, play, wait


def masks_of(env: HetEnv, observation: Any, info: dict[str, Any]) -> np.ndarray:
    """The mask, after all three places were compared."""
    mask = env.action_masks()
    assert mask.dtype == bool and mask.shape == (env.action_space.n,)
    for shown in (observation["action_mask"], info["action_mask"]):
        assert shown.dtype == np.int8 and np.array_equal(shown == 1, mask)
    return mask


def test_p01_a_mask_is_never_all_false(smoke: Scenario) -> None:
    env = HetEnv(smoke)
    assert env.action_masks().any()  # before any reset
    for seed, pick in enumerate((wait, first_legal, at_random())):
        assert masks_of(env, *env.reset(seed=seed))[0]
        for _, (observation, _, _, _, info) in play(env, pick):
            assert masks_of(env, observation, info)[0], "wait is always legal"


@pytest.mark.parametrize(
    ("jobs", "events"),
    [
        ([], ()),  # nothing ever happens
        ([(0.0, 1, 100.0)] * 9, ()),  # more jobs than GPUs
        ([(0.0, 1, 100.0)] * 2, ((Effect.NODE_DOWN, 0, 0.0, 500.0),)),  # all nodes down at first
        ([(0.0, 1, 100.0)] * 2, ((Effect.NODE_DOWN, 0, 50.0, np.inf),)),  # and from some time on
        ([(0.0, 1, 100.0), (500.0, 1, 600.0)], ()),  # the last arrival outlives the horizon
    ],
)
def test_p01_extreme_states_leave_wait(jobs: list[Any], events: tuple[Any, ...]) -> None:
    compiled = compiled_of(nodes=1, gpus=4)
    for pick in (wait, first_legal, at_random()):
        env = HetEnv(compiled.scenario)
        observation, info = env.reset(options={"world": world_of(compiled, jobs, events)})
        assert masks_of(env, observation, info)[0]
        for _, (observation, _, _, _, info) in play(env, pick):
            assert masks_of(env, observation, info)[0]
        assert env._is_over


@pytest.mark.compiled
def test_p02_masked_actions_change_nothing_and_legal_ones_something(smoke: Scenario) -> None:
    env, n_masked, n_legal = HetEnv(smoke), 0, 0
    simulator = env.core.simulator
    for seed in range(20):
        env.reset(seed=seed)
        rng = np.random.default_rng(seed)
        for _ in range(500):
            action = int(rng.integers(-5, env.action_space.n + 5))
            is_legal = 0 <= action < env.action_space.n and bool(env.action_masks()[action])
            before, total = simulator.snapshot(), simulator.state.ledger[0, TOTAL, Account.N_ILLEGAL]
            _, reward, terminated, truncated, info = env.step(action)
            now = simulator.state
            assert now.ledger[0, DELTA, Account.N_ILLEGAL] == (0 if is_legal else 1)
            moved = now.clock["now"][0] > before.clock["now"][0]
            if is_legal:
                n_legal += 1
                assert moved or terminated or not np.array_equal(now.jobs, before.jobs)
            elif not moved and not terminated and not truncated:
                n_masked += 1
                assert reward == info["elapsed_s"] == 0.0
                for name in ("jobs", "runs", "nodes", "pools", "sites", "allocs", "queue_bits"):
                    assert np.array_equal(getattr(now, name), getattr(before, name)), name
                assert now.clock["commands_left"] == before.clock["commands_left"] - 1
            else:  # the instant's commands are used up: time moves
                assert before.clock["commands_left"] == 1
            assert now.ledger[0, TOTAL, Account.N_ILLEGAL] == total + (not is_legal)
            if terminated or truncated:
                env.reset()
    assert n_masked > 1000 and n_legal > 1000


def test_p02_a_penalty_on_illegal_actions_is_a_reward_term(smoke: Scenario) -> None:
    env = HetEnv(smoke, reward={"n_illegal": 2.0})
    _, info = env.reset(seed=0)
    _, reward, *_, info = env.step(int(np.flatnonzero(info["action_mask"] == 0)[0]))
    assert reward == -2.0 and info["terms"] == {"n_illegal": 1.0}


def in_space(scenario: Scenario, observation: Any = "dict", steps: int = 1000) -> EnvCore:
    """1,000 random steps (episodes as many as that takes), each observation within the space."""
    env, pick = HetEnv(scenario, observation=observation, seed=0), at_random()
    left = steps
    while left > 0:
        shown = [env.reset()[0]]
        for _, (seen, *_) in play(env, pick, left):
            shown.append(seen)
        left -= len(shown) - 1
        for seen in shown:
            assert env.observation_space.contains(seen)
            for part in seen.values() if isinstance(seen, dict) else [seen]:
                assert np.isfinite(part).all()
    return env.core


@pytest.mark.compiled
@pytest.mark.parametrize("observation", ["dict", "flat"])
def test_p06_observations_lie_in_their_space(shipped: Scenario, observation: str) -> None:
    in_space(shipped, observation)


def changed(scenario: Scenario, part: str, **fields: Any) -> Scenario:
    return scenario.model_copy(update={part: getattr(scenario, part).model_copy(update=fields)})


@pytest.mark.compiled
def test_p06_overload_shows_as_backlog_and_not_as_a_shape(smoke: Scenario) -> None:
    arrivals = smoke.workload.arrivals.model_copy(update={"rate_per_h": 20 * smoke.workload.arrivals.rate_per_h})
    core = in_space(changed(smoke, "workload", arrivals=arrivals))
    assert core.simulator.state.clock["n_queued"][0] > 4 * smoke.candidates.queued
    flat, _ = core.look()
    shown = core.layout.views(flat[0])
    assert shown["backlog"].sum() > 1.0 and shown["cluster"][5] > 0.5  # beyond_window


@pytest.mark.compiled
def test_p06_negative_prices_lie_in_the_space(smoke: Scenario) -> None:
    sites = tuple(site.model_copy(update={"price_usd_per_mwh": -500.0}) for site in smoke.cluster.sites)
    scenario = changed(smoke, "cluster", sites=sites)
    core = in_space(scenario.model_copy(update={"objective": type(smoke.objective)(weights={"grid_cost_usd": 1.0})}))
    assert (core.simulator.state.sites["price_usd_per_j"] < 0).all()
    assert core.simulator.state.ledger[0, TOTAL, Account.GRID_COST_USD] < 0


@pytest.mark.compiled
def test_p18_gpus_are_conserved_at_every_decision(shipped: Scenario) -> None:
    env = HetEnv(shipped)
    for seed in range(2):
        env.reset(seed=seed)
        env.check_invariants()
        for _ in play(env, at_random(seed), 200):
            env.check_invariants()
            pools = env.core.simulator.state.pools[0]
            assert ((pools["free_gpus"] + pools["held_gpus"]) == pools["up_gpus"]).all()
            assert (pools["up_gpus"] <= pools["n_nodes"] * pools["gpus_per_node"]).all()

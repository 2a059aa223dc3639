"""The SB3 adapter keeps SB3's contract and shows the same episodes as the engine beneath it."""

import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.vec_env import VecMonitor

from hetenv import scenario as scenarios
from hetenv.adapters.rule_rank import rank_shape
from hetenv.adapters.sb3 import HetVecEnv
from hetenv.env.core import EnvCore
from hetenv.policy import Decision, make_policy
from hetenv.scenario import Compiled
from hetenv.sim.tables import Status


class LastRow:
    """Picks the last legal row."""

    name = "last_row"

    def reset(self, seed: int) -> None:
        pass

    def act(self, decision: Decision) -> NDArray[np.int64]:
        return decision.legal.shape[1] - 1 - decision.legal[:, ::-1].argmax(1)


@pytest.fixture(scope="module")
def smoke() -> Compiled:
    return scenarios.load("smoke").compile()


def random_legal(env: HetVecEnv, rng: np.random.Generator) -> NDArray[np.int64]:
    masks = get_action_masks(env)
    return np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])


def steps(env: HetVecEnv, n: int, seed: int = 0) -> Iterator[tuple[NDArray[np.int64], tuple]]:
    rng = np.random.default_rng(seed)
    for _ in range(n):
        actions = random_legal(env, rng)
        yield actions, env.step(actions)


def test_observations_lie_in_their_space_and_masks_leave_a_choice(smoke: Compiled) -> None:
    env = HetVecEnv(smoke, 3, rule=LastRow())
    env.reset()
    for _, (obs, rewards, dones, _) in steps(env, 300):
        masks = get_action_masks(env)
        assert masks.dtype == bool and masks.shape == (3, env.action_space.n) and masks.any(1).all()
        assert rewards.shape == dones.shape == (3,) and rewards.dtype == np.float32 and dones.dtype == bool
        for b in range(3):
            assert env.observation_space.contains({name: table[b] for name, table in obs.items()})


def test_legal_actions_are_never_counted_as_illegal(smoke: Compiled) -> None:
    from hetenv.objective import Account

    env = HetVecEnv(smoke, 8)
    env.reset()
    for _ in steps(env, 400):
        assert not env.core.simulator.state.ledger[:, :, Account.N_ILLEGAL].any()


def test_p09_ends_are_told_apart_and_the_last_observation_is_the_real_one(smoke: Compiled) -> None:
    env, alone = HetVecEnv(smoke, 1, worlds=[5], rule=LastRow()), EnvCore(smoke)
    env.reset()
    alone.reset_many({0: smoke.sample(5)})
    total = 0.0
    for actions, (_, rewards, dones, infos) in steps(env, 5000):  # noqa: B007
        flat, _, expected = alone.step(actions)
        assert rewards[0] == np.float32(expected[0])
        total -= expected[0]
        if dones[0]:
            break
    else:
        pytest.fail("the episode did not end")
    assert infos[0]["TimeLimit.truncated"] is (alone.simulator.status() == Status.TRUNCATED)
    for name, table in alone.layout.views(flat).items():
        np.testing.assert_array_equal(infos[0]["terminal_observation"][name], table[0])
    assert infos[0]["objective"] == total and infos[0]["world_seed"] == 5
    assert env.observation_space.contains(infos[0]["terminal_observation"])
    assert env.core.simulator.now() < alone.simulator.now()


def test_elapsed_time_adds_up_and_gives_the_discount(smoke: Compiled) -> None:
    env = HetVecEnv(smoke, 1, discount_per_s=1e-3)
    env.reset()
    began_s, elapsed_s = env.core.simulator.now(), 0.0
    for _, (_, _, dones, infos) in steps(env, 5000):
        elapsed_s += infos[0]["elapsed_s"]
        assert infos[0]["discount"] == pytest.approx(np.exp(-1e-3 * infos[0]["elapsed_s"]))
        if dones[0]:
            break
    assert infos[0]["TimeLimit.truncated"]
    assert began_s + elapsed_s == pytest.approx(smoke.scenario.limit_s)


def test_p08_returned_arrays_are_the_callers(smoke: Compiled) -> None:
    env = HetVecEnv(smoke, 2, rule=LastRow())
    obs = env.reset()
    masks = env.action_masks()
    kept = {name: table.copy() for name, table in obs.items()}
    kept_masks = masks.copy()
    for _ in steps(env, 10):
        pass
    for name, table in obs.items():
        np.testing.assert_array_equal(table, kept[name])
    np.testing.assert_array_equal(masks, kept_masks)


def test_same_seed_same_episodes_and_other_seed_others(smoke: Compiled) -> None:
    def rewards(seed: int) -> list[float]:
        env = HetVecEnv(smoke, 2)
        env.seed(seed)
        env.reset()
        return [reward for _, (_, batch, _, _) in steps(env, 250) for reward in batch.tolist()]

    assert rewards(1) == rewards(1) != rewards(2)


def test_pickled_in_mid_episode_goes_on_alike(smoke: Compiled) -> None:
    env = HetVecEnv(smoke, 2, rule=LastRow())
    env.reset()
    for _ in steps(env, 40):
        pass
    copy = pickle.loads(pickle.dumps(env))
    for (_, (_, one, _, _)), (_, (_, other, _, _)) in zip(steps(env, 200, 3), steps(copy, 200, 3)):
        np.testing.assert_array_equal(one, other)


def test_the_rules_pick_is_marked(smoke: Compiled) -> None:
    env = HetVecEnv(smoke, 2, rule=LastRow())
    env.reset()
    for _, (obs, _, _, _) in steps(env, 50):
        masks = get_action_masks(env)
        assert (obs["rule_rank"].sum(1) == 1.0).all()
        for b in range(2):
            assert obs["rule_rank"][b].argmax() == np.flatnonzero(masks[b]).max()


def test_a_rule_that_scores_shows_its_whole_order(smoke: Compiled) -> None:
    rule = make_policy("index", "smoke")
    env = HetVecEnv(smoke, 2, rule=rule)
    obs = env.reset()
    for _, (following, _, _, _) in steps(env, 50):
        masks = get_action_masks(env)
        obs = following
        decision = Decision(env.core.candidates, lambda: obs, env.core.simulator.state.clock["now"])  # noqa: B023
        scores, picks = rule.scores(decision)
        for b in range(2):
            shown = np.sort(obs["rule_rank"][b][masks[b]])[::-1]
            np.testing.assert_array_equal(shown, rank_shape(masks[b].sum()))
            assert obs["rule_rank"][b].argmax() == picks[b]
            order = obs["rule_rank"][b].argsort()[::-1][1 : min(8, masks[b].sum())]
            assert (np.diff(scores[b][order]) <= 0).all()
            assert not obs["rule_rank"][b][~masks[b]].any()


def test_synchronised_replicas_meet_the_same_world_and_stay_apart_afterwards(smoke: Compiled) -> None:
    env = HetVecEnv(smoke, 4)
    env.reset()
    for _ in steps(env, 60):
        pass
    obs = env.synchronise(2)
    for table in obs.values():
        np.testing.assert_array_equal(table[0], table[1])
        np.testing.assert_array_equal(table[2], table[3])
    for _ in range(400):  # equal actions give equal episodes until they end; the worlds that follow are drawn apart
        masks = get_action_masks(env)
        np.testing.assert_array_equal(masks[0], masks[1])
        _, rewards, dones, _ = env.step(masks.shape[1] - 1 - masks[:, ::-1].argmax(1))
        assert rewards[0] == rewards[1] and rewards[2] == rewards[3] and dones[0] == dones[1]
        if dones[0] or dones[2]:
            break
    env.core.simulator.check_invariants()
    for _ in steps(env, 200):
        pass
    env.core.simulator.check_invariants()


def test_attributes_and_methods_as_sb3_asks_for_them(smoke: Compiled) -> None:
    env = HetVecEnv(smoke, 3)
    env.reset()
    assert is_masking_supported(env)
    assert len(env.env_method("action_masks", indices=[0, 2])) == 2
    assert env.get_attr("render_mode") == [None] * 3
    assert env.env_is_wrapped(VecMonitor) == [False] * 3


def test_p03_maskable_ppo_learns_without_a_wrapper(smoke: Compiled) -> None:
    env = VecMonitor(HetVecEnv(smoke, 4))
    model = MaskablePPO("MultiInputPolicy", env, n_steps=64, batch_size=64, n_epochs=1, seed=0, device="cpu")
    model.learn(256)
    assert model.num_timesteps == 256

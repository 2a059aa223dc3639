"""Advantages by time against hand-computed values and the textbook case."""

import numpy as np
import pytest

from agents.rl.advantages import advantages_by_time, without_group_mean


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float64)[:, None]


def test_two_steps_by_hand() -> None:
    # discount exp(-1/2), exp(-2/2); traces exp(-1/4), exp(-2/4)
    found = advantages_by_time(column(1, 2), column(10, 20, 30), column(0, 0), column(1, 2), 2.0, 4.0)
    second = 2 + np.exp(-1) * 30 - 20
    first = 1 + np.exp(-0.5) * 20 - 10 + np.exp(-0.5) * np.exp(-0.25) * second
    np.testing.assert_allclose(found, column(first, second), rtol=1e-6)


def test_an_end_cuts_what_follows() -> None:
    found = advantages_by_time(column(1, 2), column(10, 20, 30), column(1, 0), column(1, 2), 2.0, 4.0)
    assert found[0, 0] == pytest.approx(1 - 10)


def test_equal_steps_give_the_usual_gae() -> None:
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(30, 4)), rng.normal(size=(31, 4))
    ends = (rng.random((30, 4)) < 0.1).astype(float)
    gamma, trace = np.exp(-1 / 50), np.exp(-1 / 20)
    expected, following = np.zeros((30, 4)), np.zeros(4)
    for t in reversed(range(30)):
        alive = 1 - ends[t]
        following = rewards[t] + gamma * alive * values[t + 1] - values[t] + gamma * trace * alive * following
        expected[t] = following
    found = advantages_by_time(rewards, values, ends, np.ones((30, 4)), 50.0, 20.0)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_p14_decisions_that_take_no_time_change_no_return() -> None:
    once = advantages_by_time(column(1, 2), column(10, 20, 30), column(0, 0), column(1, 2), 2.0, 4.0)
    between = advantages_by_time(
        column(1, 0, 0, 2), column(10, 20, 20, 20, 30), column(0, 0, 0, 0), column(1, 0, 0, 2), 2.0, 4.0
    )
    np.testing.assert_allclose(between[[0, 3]], once, rtol=1e-6)


def test_the_other_replicas_mean_is_taken_out_until_an_episode_ends() -> None:
    # two groups of two; one bin of 100 s; the second replica's episode ends after its first step
    advantages = np.array([[1, 4, 7, 7], [3, 8, 7, 7]], np.float32)
    elapsed_s, ends = np.full((2, 4), 10.0), np.zeros((2, 4), np.float32)
    ends[0, 1] = 1
    found = without_group_mean(advantages, elapsed_s, ends, 2, 100.0)
    np.testing.assert_allclose(found, [[1 - 4, 4 - 2, 0, 0], [3 - 4, 8, 0, 0]])


def test_stretches_are_compared_apart() -> None:
    advantages = np.array([[1, 4], [3, 8]], np.float32)
    found = without_group_mean(advantages, np.full((2, 2), 100.0), np.zeros((2, 2), np.float32), 2, 100.0)
    np.testing.assert_allclose(found, [[1 - 4, 4 - 1], [3 - 8, 8 - 3]])

"""Advantages by time against hand-computed values and the textbook case."""

import numpy as np
import pytest

from agents.rl.advantages import advantages_by_time


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

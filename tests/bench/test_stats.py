"""Intervals: coverage on skewed data, Student's interval for few values, Holm's correction."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from hetenv.bench.stats import holm_levels, mean_sample


def coverage(draw: np.ndarray, truth: float) -> float:
    """Share of the columns' 95 % intervals that hold the true mean. draw: [n, K]."""
    sample = mean_sample(draw, 2000)
    intervals = np.array([sample.interval(column) for column in range(draw.shape[1])])
    return float(((intervals[:, 0] <= truth) & (truth <= intervals[:, 1])).mean())


@pytest.mark.parametrize("n", [20, 40, 100])
def test_intervals_cover_the_mean_of_skewed_data(n: int) -> None:
    """Log-normal with sigma 1 (skewness 6); Student's interval covers 0.86-0.91 here."""
    draw = np.random.default_rng(n).lognormal(0.0, 1.0, (n, 1500))
    assert 0.91 <= coverage(draw, float(np.exp(0.5))) <= 0.98


def test_intervals_of_very_skewed_paired_differences_come_closer_than_students() -> None:
    """The better a policy the harder the world: skewness about 15, where 30 values are few for any method."""
    rng = np.random.default_rng(1)
    draw = rng.lognormal(0.0, 1.0, (30, 1500)) * rng.exponential(0.2, (30, 1500))
    truth = float(np.exp(0.5) * 0.2)
    half = scipy_stats.t.ppf(0.975, 29) * draw.std(axis=0, ddof=1) / 30**0.5
    student = float((np.abs(draw.mean(axis=0) - truth) <= half).mean())
    found = coverage(draw, truth)
    assert found >= 0.89
    assert found >= student + 0.05


def test_intervals_of_normal_data_have_the_nominal_coverage() -> None:
    draw = np.random.default_rng(2).normal(3.0, 1.0, (25, 1500))
    assert 0.93 <= coverage(draw, 3.0) <= 0.97


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_few_values_get_students_interval(n: int) -> None:
    values = np.random.default_rng(n).normal(0.0, 1.0, (n, 1))
    low, high = mean_sample(values, 200_000).interval(0)
    half = scipy_stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)
    assert (high - low) / 2 == pytest.approx(half, rel=0.03)
    assert (high + low) / 2 == pytest.approx(values.mean(), abs=0.03 * half)


def test_one_value_and_equal_values() -> None:
    assert mean_sample(np.array([[3.0]])).interval(0) == (-np.inf, np.inf)
    assert mean_sample(np.array([[3.0]])).p_value(0) == 1.0
    zero, same = mean_sample(np.zeros((10, 1))), mean_sample(np.full((10, 1), 0.1))
    assert (zero.interval(0), zero.p_value(0)) == ((0.0, 0.0), 1.0)
    assert same.interval(0) == pytest.approx((0.1, 0.1))
    assert same.p_value(0) == 0.0


def test_intervals_do_not_depend_on_the_unit_or_on_other_columns() -> None:
    values = np.random.default_rng(3).lognormal(0.0, 1.0, (30, 4))
    together, alone = mean_sample(values), mean_sample(values[:, 2:3] * 1e9)
    assert np.array(alone.interval(0)) == pytest.approx(np.array(together.interval(2)) * 1e9, rel=1e-9)


def test_p_value_is_uniform_where_the_mean_is_zero() -> None:
    draw = np.random.default_rng(4).normal(0.0, 1.0, (20, 2000))
    sample = mean_sample(draw, 2000)
    p_values = np.array([sample.p_value(column) for column in range(2000)])
    assert (p_values <= 0.05).mean() == pytest.approx(0.05, abs=0.015)
    assert p_values.mean() == pytest.approx(0.5, abs=0.03)


def test_holm_judges_in_steps_and_stops_at_the_first_failure() -> None:
    levels = holm_levels(np.array([0.03, 0.001, 0.02, 0.04]))
    assert levels.tolist() == pytest.approx([0.05 / 3, 0.05 / 4, 0.05 / 3, 0.05 / 3])
    assert holm_levels(np.array([0.001, 0.002])).tolist() == [0.025, 0.05]
    assert holm_levels(np.zeros(0)).size == 0


def test_interval_excludes_zero_just_where_holm_rejects() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        values = rng.normal(rng.uniform(0, 0.8, 6), 1.0, (25, 6))
        sample = mean_sample(values)
        p_values = np.array([sample.p_value(k) for k in range(6)])
        levels = holm_levels(p_values)
        for k in range(6):
            low, high = sample.interval(k, levels[k])
            if abs(p_values[k] - levels[k]) > 5e-4:  # the bootstrap's own grain
                assert (low > 0 or high < 0) == (p_values[k] <= levels[k])


def test_holm_keeps_the_family_error_rate() -> None:
    rng = np.random.default_rng(6)
    wrong = 0
    for _ in range(300):
        sample = mean_sample(rng.normal(0.0, 1.0, (20, 5)), 2000)
        levels = holm_levels(np.array([sample.p_value(k) for k in range(5)]))
        intervals = [sample.interval(k, levels[k]) for k in range(5)]
        wrong += any(low > 0 or high < 0 for low, high in intervals)
    assert wrong / 300 <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5

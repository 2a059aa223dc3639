"""Run-time distributions and weighted choices."""

import numpy as np
import pytest
from pydantic import ValidationError

from hetenv.workload import choices
from hetenv.workload.durations import ExponentialDuration, FixedDuration, LognormalDuration


def test_log_normal_has_its_median_and_sigma() -> None:
    drawn = LognormalDuration(median_s=1000, sigma=1.5).draw(np.random.default_rng(0), 200_000)
    assert np.median(drawn) == pytest.approx(1000, rel=0.02)
    assert np.log(drawn).std() == pytest.approx(1.5, abs=0.01)


def test_log_normal_is_set_to_its_bounds() -> None:
    drawn = LognormalDuration(median_s=1000, sigma=2, min_s=500, max_s=2000).draw(np.random.default_rng(0), 1000)
    assert drawn.min() == 500 and drawn.max() == 2000


def test_exponential_is_memoryless() -> None:
    drawn = ExponentialDuration(mean_s=50).draw(np.random.default_rng(0), 200_000)
    assert drawn.mean() == pytest.approx(50, rel=0.01) and drawn.std() == pytest.approx(50, rel=0.02)


def test_fixed_is_fixed_and_may_be_zero() -> None:
    assert list(FixedDuration(value_s=0).draw(np.random.default_rng(0), 3)) == [0.0, 0.0, 0.0]


def test_bounds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ValidationError, match="swap them"):
        LognormalDuration(median_s=1, min_s=3, max_s=2)


def test_picks_follow_their_shares() -> None:
    picked = choices.pick(np.random.default_rng(0), np.array([1.0, 0.0, 3.0]), 100_000)
    counts = np.bincount(picked, minlength=3)
    assert counts[1] == 0 and counts[2] / 100_000 == pytest.approx(0.75, abs=0.01)
    assert set(choices.draw(np.random.default_rng(0), {2: 0.5, 8: 0.5}, 100)) == {2.0, 8.0}
    assert choices.values_of({2: 0.5, 8: 0.0}) == (2,) and choices.values_of(3) == (3,)

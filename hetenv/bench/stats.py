"""Paired comparison of policies on common seeds: bootstrap-t intervals of means, corrected over policies by Holm's method.

An interval of the mean follows from the distribution of t* = (mean* - mean) / se* over resamples (Efron & Tibshirani 1993,
section 12.5), which keeps its coverage on skewed data. With fewer than MIN_BOOTSTRAP values the resamples come from the
fitted normal (then it is Student's interval). The resamples are the same for every column, so results are reproducible.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ALPHA: Final = 0.05
N_RESAMPLES: Final = 10_000
MIN_BOOTSTRAP: Final = 8
_SEED: Final = 20_240_101


@dataclass(frozen=True)
class MeanSample:
    """Means of K columns of n values and what their intervals need."""

    n: int
    mean: Floats
    """[K]."""
    se: Floats
    """[K] standard error of the mean, 0 where all values are equal."""
    t: Floats
    """[resamples, K] t*, sorted along axis 0."""

    def interval(self, column: int, alpha: float = ALPHA) -> tuple[float, float]:
        """Interval of a column's mean at level 1 - alpha; (-inf, inf) for one value, a point where all are equal."""
        mean, se = float(self.mean[column]), float(self.se[column])
        if self.n < 2:
            return -np.inf, np.inf
        if se == 0.0:
            return mean, mean
        low, high = np.quantile(self.t[:, column], [alpha / 2, 1 - alpha / 2])
        return mean - float(high) * se, mean - float(low) * se

    def p_value(self, column: int) -> float:
        """Two-sided p-value of "the mean is 0", by the same t*; 1 for one value."""
        if self.n < 2:
            return 1.0
        if self.se[column] == 0.0:
            return 1.0 if self.mean[column] == 0.0 else 0.0
        observed = float(self.mean[column] / self.se[column])
        n_resamples = self.t.shape[0]
        n_above = int((self.t[:, column] >= observed).sum())
        rarer = min(n_above, int(n_resamples) - n_above)
        return float(min(1.0, 2.0 * (rarer + 1) / (n_resamples + 1)))


def mean_sample(values: Floats, n_resamples: int = N_RESAMPLES) -> MeanSample:
    """Resample the means of K columns at once.

    Args:
        values: [n, K], finite, n >= 1.
    """
    n = values.shape[0]
    mean = values.mean(axis=0)
    centred = values - mean
    if n < 2:
        return MeanSample(n, mean, np.zeros_like(mean), np.zeros((0, mean.size)))
    spread = np.sqrt((centred**2).sum(axis=0) / (n - 1))
    negligible = spread <= 1e-13 * np.abs(values).max(axis=0)
    scale = np.where(negligible, 1.0, spread)
    se = np.where(negligible, 0.0, spread / np.sqrt(n))
    t = _resampled_t(centred / scale, n_resamples)
    t.sort(axis=0)
    return MeanSample(n, mean, se, t)


def _resampled_t(centred: Floats, n_resamples: int) -> Floats:
    """[resamples, K] t* of columns of mean 0."""
    n, columns = centred.shape
    if n < MIN_BOOTSTRAP:
        drawn = np.random.default_rng([_SEED, n]).standard_normal((n_resamples, n))
        t = drawn.mean(axis=1) / (drawn.std(axis=1, ddof=1) / np.sqrt(n))
        return np.repeat(t[:, None], columns, axis=1)
    counts = _counts(n, n_resamples)
    mean = counts @ centred / n
    variance = np.maximum(counts @ centred**2 / n - mean**2, 0.0) * n / (n - 1)
    floor = 1e-3 / np.sqrt(n)  # of the sample's own spread: a resample of one value over and over has none
    return np.asarray(mean / np.maximum(np.sqrt(variance / n), floor), np.float64)


@lru_cache(maxsize=4)
def _counts(n: int, n_resamples: int) -> Floats:
    """[resamples, n] how often each value is in each resample."""
    rng = np.random.default_rng([_SEED, n])
    return rng.multinomial(n, np.full(n, 1.0 / n), size=n_resamples).astype(np.float64)


def holm_levels(p_values: Floats, alpha: float = ALPHA) -> Floats:
    """[K] level of each column's interval such that it excludes 0 where Holm's step-down procedure rejects, and only there.

    The j-th smallest p-value (j = 0, 1, ...) is judged at alpha / (K - j); from the first that is not rejected on, all are
    judged at that one's level.
    """
    levels = np.empty(p_values.size)
    level, stopped = alpha, False
    for rank, column in enumerate(np.argsort(p_values, kind="stable")):
        if not stopped:
            level = alpha / (p_values.size - rank)
            stopped = bool(p_values[column] > level)
        levels[column] = level
    return levels

"""Statistics under the names of the published ones: ddof 0, linear percentiles, 6 decimals; cells that are none do not count."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

DECIMALS: Final = 6
PERCENTILES: Final = {"p25": 25, "median": 50, "p75": 75, "p90": 90, "p99": 99}
BRIEF: Final = ("count", "mean", "min", "median", "p99", "max", "sum")
"""What some publications state of a distribution."""


def rounded(value: Any) -> float:
    """A float of 6 decimals."""
    return round(float(value), DECIMALS)


def stamp(instant: np.datetime64) -> str:
    """Date and time to the second."""
    return str(instant.astype("datetime64[s]")).replace("T", " ")


def earliest(when: NDArray[np.datetime64]) -> str:
    """Stamp of the first time; empty where there is none."""
    there = when[~np.isnat(when)]
    return stamp(there.min()) if there.size else ""


def latest(when: NDArray[np.datetime64]) -> str:
    """Stamp of the last time; empty where there is none."""
    there = when[~np.isnat(when)]
    return stamp(there.max()) if there.size else ""


def describe(values: NDArray[np.float64]) -> dict[str, float]:
    """Count, moments (ddof 0) and linear percentiles; the count alone where there is no value."""
    values = values[np.isfinite(values)]
    if not values.size:
        return {"count": 0}
    low = dict(zip(PERCENTILES, np.percentile(values, list(PERCENTILES.values()))))
    found: dict[str, float] = {"mean": values.mean(), "std": values.std(), "min": values.min(), **low}
    found.update(max=values.max(), sum=values.sum())
    return {"count": int(values.size), **{name: rounded(value) for name, value in found.items()}}


def brief(values: NDArray[np.float64]) -> dict[str, float]:
    """The BRIEF part of `describe`."""
    found = describe(values)
    return {name: found[name] for name in BRIEF if name in found}


def lognormal(values: NDArray[np.float64]) -> dict[str, float]:
    """Mean and deviation of the logarithms of the positive values."""
    logs = np.log(values[values > 0])
    if not logs.size:
        return {"mu_ln": 0.0, "sigma_ln": 0.0, "n": 0}
    return {"mu_ln": rounded(logs.mean()), "sigma_ln": rounded(logs.std()), "n": int(logs.size)}


def interarrival(submit_s: NDArray[np.float64]) -> dict[str, float]:
    """Gaps between submits, sorted here."""
    gaps = np.diff(np.sort(submit_s[np.isfinite(submit_s)]))
    if not gaps.size:
        return {"mean_s": 0.0, "median_s": 0.0, "cv": 0.0, "share_zero": 0.0, "span_s": 0.0}
    return {
        "mean_s": rounded(gaps.mean()),
        "median_s": rounded(np.median(gaps)),
        "cv": rounded(gaps.std() / gaps.mean()) if gaps.mean() else 0.0,
        "share_zero": rounded((gaps == 0).mean()),
        "span_s": rounded(gaps.sum()),
    }


def is_sorted(values: NDArray[Any]) -> bool:
    """Whether no value is below the one before; values that are none (NaN, NaT) do not count."""
    there = values[~np.isnan(values)]
    return bool(np.all(there[1:] >= there[:-1]))


def counts(values: ArrayLike) -> dict[str, int]:
    """Value -> rows, by value; whole numbers without a fraction, NaN left out."""
    found = np.asarray(values)
    if found.dtype.kind == "f":
        found = found[np.isfinite(found)]
    names, n = np.unique(found, return_counts=True)
    return {str(int(name)) if name.dtype.kind == "f" and name == int(name) else str(name): int(k) for name, k in zip(names, n)}


def missing(cells: dict[str, list[str]], columns: Iterable[str]) -> dict[str, int]:
    """Column -> empty cells."""
    return {name: cells[name].count("") for name in columns}


def histogram(values: NDArray[Any], n: int) -> list[int]:
    """Rows of each of n bins 0..n-1."""
    return [int(count) for count in np.bincount(values.astype(np.int64), minlength=n)]


def share(which: NDArray[np.bool_]) -> float:
    """Share of True; 0 of nothing."""
    return rounded(which.mean()) if which.size else 0.0


def dispersion(counts: NDArray[np.float64]) -> float:
    """Variance over mean; 0 where nothing is counted."""
    return rounded(counts.var() / counts.mean()) if counts.sum() else 0.0


def means(bins: NDArray[np.int64], values: NDArray[np.float64], n: int) -> list[float]:
    """Mean of the values in each of n bins; 0 in an empty one."""
    return [rounded(mean) for mean in np.bincount(bins, values, n) / np.maximum(np.bincount(bins, minlength=n), 1)]


def one_by_one(values: NDArray[np.float64]) -> list[float | None]:
    """Each value, None where there is none: what is stated of files of a few rows."""
    return [float(value) if np.isfinite(value) else None for value in values]

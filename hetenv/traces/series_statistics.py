"""Statistics of signal files as their publishers' figures have them: over the raw rows, ddof 0, linear percentiles, 6 decimals."""

from collections import Counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hetenv.traces import statistics

DECIMALS: Final = 6
Array = NDArray[np.float64]


def rounded(value: float) -> float | None:
    """To 6 decimals; None where there is no number, as JSON has none for it."""
    return round(float(value), DECIMALS) if np.isfinite(value) else None


def describe(values: Array) -> dict[str, Any]:
    """Count, moments and percentiles of the values that are there."""
    there = values[np.isfinite(values)]
    return statistics.describe(there)


def mean(values: Array) -> float | None:
    """Mean of the values that are there."""
    there = values[np.isfinite(values)]
    return rounded(there.mean()) if there.size else None


def largest(values: Array) -> float | None:
    """Largest of the values that are there."""
    there = values[np.isfinite(values)]
    return rounded(there.max()) if there.size else None


def smallest(values: Array) -> float | None:
    """Smallest of the values that are there."""
    there = values[np.isfinite(values)]
    return rounded(there.min()) if there.size else None


def share(chosen: NDArray[np.bool_]) -> float:
    """Share of all rows."""
    return round(float(chosen.mean()), DECIMALS)


def n_missing(values: Array) -> int:
    """Rows without a number."""
    return int(np.isnan(values).sum())


def n_duplicates(when: NDArray[Any]) -> int:
    """Rows whose stamp stood before."""
    there = when[~np.isnat(when)]
    return int(there.size - np.unique(there).size)


def steps_s(when: NDArray[Any]) -> NDArray[np.int64]:
    """Distances of consecutive stamps in time order, whole s."""
    there = np.sort(when[~np.isnat(when)])
    return np.diff(there).astype("timedelta64[s]").astype(np.int64)


def step_histogram(when: NDArray[Any]) -> dict[str, int]:
    """Distance of consecutive stamps in s -> how often."""
    return {str(step): count for step, count in sorted(Counter(steps_s(when).tolist()).items())}


def n_gaps(when: NDArray[Any]) -> int:
    """Distances above the most common one."""
    steps = steps_s(when)
    steps = steps[steps > 0]
    if not steps.size:
        return 0
    kinds, counts = np.unique(steps, return_counts=True)
    return int((steps > kinds[counts.argmax()]).sum())


def first_last(cells: list[str], when: NDArray[Any]) -> tuple[str, str]:
    """The file's own text of its earliest and latest stamp."""
    order = np.argsort(when, kind="stable")
    good = order[~np.isnat(when[order])] if np.issubdtype(when.dtype, np.datetime64) else order[np.isfinite(when[order])]
    return (cells[good[0]], cells[good[-1]]) if good.size else ("", "")

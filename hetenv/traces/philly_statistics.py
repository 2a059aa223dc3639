"""Statistics of a flattened Philly trace. Conventions: ddof 0, linear percentiles, inter-arrivals of sorted rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetenv.traces.csv_file import CsvFile
from hetenv.units import HOUR_S

DECIMALS = 6
BIG_JOB_GPUS = 8


def of(
    rows: NDArray[np.void],
    when: NDArray[np.datetime64],
    gpu_time_s: NDArray[np.float64],
    groups: tuple[str, ...],
    tables: list[CsvFile],
) -> dict[str, Any]:
    """All statistics of usable rows in file order, numbers rounded to 6 decimals.

    Args:
        rows: [R] TRACE_ROW.
        when: [R] their timestamps.
        gpu_time_s: [R] the file's own GPU seconds (NaN where it has none).
        groups: names by `rows["group"]`.
    """
    gpus, duration_s = rows["gpus"], rows["duration_s"]
    work = gpus * duration_s
    columns = tables[0].columns
    sizes, counts = np.unique(gpus, return_counts=True)
    return {
        "rows": int(rows.size),
        "columns": list(columns),
        "first": _stamp(when.min()),
        "last": _stamp(when.max()),
        "sorted": bool(np.all(np.diff(when.astype(np.int64)) >= 0)),
        "vcs": {name: int((rows["group"] == index).sum()) for index, name in enumerate(groups)},
        "num_gpus_hist": {str(size): int(count) for size, count in zip(sizes, counts)},
        "duration_s": describe(duration_s),
        "lognormal_duration": _lognormal(duration_s),
        "n_zero_duration": int((duration_s == 0).sum()),
        "n_missing": {name: sum(table.cells.get(name, []).count("") for table in tables) for name in columns},
        "gpu_time_col_matches": bool(np.allclose(gpu_time_s, work, rtol=1e-9, atol=1e-6)),
        "total_gpu_hours": _round(work.sum() / HOUR_S),
        "gpu_hour_share_of_jobs_ge8": _round(work[gpus >= BIG_JOB_GPUS].sum() / work.sum()) if work.sum() else 0.0,
        "interarrival": _interarrival(np.sort(rows["submit_s"])),
        "arrivals_by_hour": _histogram(rows["submit_s"] // HOUR_S % 24, 24),
        "arrivals_by_weekday_mon0": _histogram((when.astype("datetime64[D]").astype(np.int64) + 3) % 7, 7),
        "duration_by_gpus_median": {str(size): _round(np.median(duration_s[gpus == size])) for size in sizes},
    }


def _round(value: float) -> float:
    return round(float(value), DECIMALS)


def _stamp(instant: np.datetime64) -> str:
    return str(instant.astype("datetime64[s]")).replace("T", " ")


def _histogram(values: NDArray[Any], n: int) -> list[int]:
    return [int(count) for count in np.bincount(values.astype(np.int64), minlength=n)]


def describe(values: NDArray[np.float64]) -> dict[str, float]:
    """Count, moments (ddof 0) and linear percentiles of at least one value."""
    quartile, median, upper, tenth, hundredth = np.percentile(values, [25, 50, 75, 90, 99])
    return {
        "count": int(values.size),
        "mean": _round(values.mean()),
        "std": _round(values.std()),
        "min": _round(values.min()),
        "p25": _round(quartile),
        "median": _round(median),
        "p75": _round(upper),
        "p90": _round(tenth),
        "p99": _round(hundredth),
        "max": _round(values.max()),
        "sum": _round(values.sum()),
    }


def _lognormal(values: NDArray[np.float64]) -> dict[str, float]:
    logs = np.log(values[values > 0])
    if not logs.size:
        return {"mu_ln": 0.0, "sigma_ln": 0.0, "n": 0}
    return {"mu_ln": _round(logs.mean()), "sigma_ln": _round(logs.std()), "n": int(logs.size)}


def _interarrival(submit_s: NDArray[np.float64]) -> dict[str, float]:
    gaps = np.diff(submit_s)
    if not gaps.size:
        return {"mean_s": 0.0, "median_s": 0.0, "cv": 0.0, "share_zero": 0.0, "span_s": 0.0}
    return {
        "mean_s": _round(gaps.mean()),
        "median_s": _round(np.median(gaps)),
        "cv": _round(gaps.std() / gaps.mean()) if gaps.mean() else 0.0,
        "share_zero": _round((gaps == 0).mean()),
        "span_s": _round(gaps.sum()),
    }

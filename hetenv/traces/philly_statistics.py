"""Statistics of a flattened Philly trace."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetenv.traces.csv_file import CsvFile
from hetenv.traces.statistics import describe, histogram, interarrival, lognormal, rounded, stamp
from hetenv.units import HOUR_S

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
        "first": stamp(when.min()),
        "last": stamp(when.max()),
        "sorted": bool(np.all(np.diff(when.astype(np.int64)) >= 0)),
        "vcs": {name: int((rows["group"] == index).sum()) for index, name in enumerate(groups)},
        "num_gpus_hist": {str(size): int(count) for size, count in zip(sizes, counts)},
        "duration_s": describe(duration_s),
        "lognormal_duration": lognormal(duration_s),
        "n_zero_duration": int((duration_s == 0).sum()),
        "n_missing": {name: sum(table.cells.get(name, []).count("") for table in tables) for name in columns},
        "gpu_time_col_matches": bool(np.allclose(gpu_time_s, work, rtol=1e-9, atol=1e-6)),
        "total_gpu_hours": rounded(work.sum() / HOUR_S),
        "gpu_hour_share_of_jobs_ge8": rounded(work[gpus >= BIG_JOB_GPUS].sum() / work.sum()) if work.sum() else 0.0,
        "interarrival": interarrival(rows["submit_s"]),
        "arrivals_by_hour": histogram(rows["submit_s"] // HOUR_S % 24, 24),
        "arrivals_by_weekday_mon0": histogram((when.astype("datetime64[D]").astype(np.int64) + 3) % 7, 7),
        "duration_by_gpus_median": {str(size): rounded(np.median(duration_s[gpus == size])) for size in sizes},
    }

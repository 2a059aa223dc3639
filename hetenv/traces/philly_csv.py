"""The Philly trace as the Sia artifact flattened it: `timestamp,duration,num_gpus,gpu_time,cluster`, one job a line.

Times are naive local time (Pacific), durations are seconds. There is no job id, user, status or retry. Rules, each
counted in the report: no or bad timestamp, duration (no repair possible) or GPU count: dropped; negative duration or
GPU count, or no GPU: dropped; missing duration: gpu_time / num_gpus; fractional GPUs: rounded up; exact duplicates:
kept (without an id they cannot be told from repeats).
"""

from collections import Counter
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import TraceError
from hetenv.traces import csv_file, philly_statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.trace import UNTYPED, LoadReport, Trace, trace_rows
from hetenv.units import HOUR_S

COLUMNS: Final = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
REQUIRED: Final = ("timestamp", "duration", "num_gpus")
TIME_BASE: Final = "naive local time of the site (US Pacific); seconds since the midnight that begins the first day"
UNITS: Final = {"timestamp": "date and time", "duration": "s", "num_gpus": "GPUs", "gpu_time": "GPU s"}
MAX_GPUS: Final = 1_000_000


def load(path: Path) -> Trace:
    """The trace of a file, or of all .csv and .csv.gz files of a folder together.

    Raises:
        TraceError: nothing there, unreadable, a column missing, or no usable row.
    """
    files = _files(path)
    tables = [csv_file.read(file, REQUIRED) for file in files]
    when = np.concatenate([csv_file.instants(table.cells["timestamp"]) for table in tables])
    columns = {name: np.concatenate([_column(table, name) for table in tables]) for name in COLUMNS[1:4]}
    groups_of = np.concatenate([table.cells.get("cluster", [""] * table.lines.size) for table in tables])
    repaired, dropped = Counter[str](), Counter[str]()
    dropped["more cells than columns"] = sum(table.n_overlong for table in tables)
    duration_s, gpus, kept = _clean(when, columns, repaired, dropped)
    if not kept.any():
        reasons = ", ".join(f"{reason}: {count}" for reason, count in dropped.items() if count)
        raise TraceError(f"{path}: empty trace: no usable row among {kept.size} ({reasons or 'no rows'})")
    origin = when[kept].min().astype("datetime64[D]")
    names, group = np.unique(groups_of[kept], return_inverse=True)
    rows = trace_rows(int(kept.sum()))
    rows["submit_s"] = (when[kept] - origin) / np.timedelta64(1, "s")
    rows["duration_s"], rows["gpus"], rows["group"] = duration_s[kept], gpus[kept], group
    rows["line"] = np.concatenate([table.lines for table in tables])[kept]
    statistics = philly_statistics.of(rows, when[kept], columns["gpu_time"][kept], tuple(names), tables)
    rows = rows[np.argsort(rows["submit_s"], kind="stable")]
    rows.flags.writeable = False
    report = LoadReport(
        format="philly_csv",
        files=tuple(file.name for file in files),
        time_base=TIME_BASE,
        units=dict(UNITS),
        rows_read=kept.size + dropped["more cells than columns"],
        rows_kept=rows.size,
        repaired={reason: count for reason, count in repaired.items() if count},
        dropped={reason: count for reason, count in dropped.items() if count},
        noted=_noted(tables, rows),
        first=statistics["first"],
        last=statistics["last"],
        gpu_hours={UNTYPED: float((rows["duration_s"] * rows["gpus"]).sum() / HOUR_S)},
    )
    return Trace(rows, origin, tuple(str(name) for name in names), report, statistics)


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise TraceError(f"{path}: no such file or folder")
    if path.is_file():
        return [path]
    found = sorted(file for file in path.iterdir() if file.name.endswith((".csv", ".csv.gz")))
    if not found:
        raise TraceError(f"{path}: holds no .csv or .csv.gz file")
    return found


def _column(table: CsvFile, name: str) -> NDArray[np.float64]:
    """A column as numbers, NaN where the file has no such column."""
    return csv_file.numbers(table.cells[name]) if name in table.cells else np.full(table.lines.size, np.nan)


def _clean(
    when: NDArray[np.datetime64], columns: dict[str, NDArray[np.float64]], repaired: Counter[str], dropped: Counter[str]
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.bool_]]:
    """Duration and whole GPUs of each row, and which rows are usable; counts why not."""
    duration_s, gpus = columns["duration"], columns["num_gpus"]
    kept = np.ones(when.size, bool)

    def drop(bad: NDArray[np.bool_], reason: str) -> None:
        dropped[reason] += int((bad & kept).sum())
        kept[bad] = False

    drop(np.isnat(when), "timestamp missing or no date")
    drop(~np.isfinite(gpus), "num_gpus missing or no number")
    drop(gpus == 0, "asks for no GPU")
    drop((gpus < 0) | (gpus > MAX_GPUS), f"num_gpus negative or above {MAX_GPUS}")
    mendable = kept & ~np.isfinite(duration_s) & np.isfinite(columns["gpu_time"])
    duration_s = np.where(mendable, columns["gpu_time"] / np.where(gpus > 0, gpus, 1.0), duration_s)
    drop(~np.isfinite(duration_s), "duration missing or no number")
    drop(duration_s < 0, "duration negative")
    repaired["duration taken from gpu_time / num_gpus"] = int((mendable & kept).sum())
    whole = np.ceil(np.where(kept, gpus, 1.0))
    repaired["fractional GPUs rounded up"] = int((kept & (whole != gpus)).sum())
    return duration_s, whole.astype(np.int32), kept


def _noted(tables: list[CsvFile], rows: NDArray[np.void]) -> dict[str, int]:
    found = {
        "exact duplicate rows, kept": rows.size - np.unique(rows[["submit_s", "duration_s", "gpus", "group"]]).size,
        "rows of zero duration, kept": int((rows["duration_s"] == 0).sum()),
        "unknown columns, ignored": len({name for table in tables for name in table.columns if name not in COLUMNS}),
    }
    return {note: count for note, count in found.items() if count}

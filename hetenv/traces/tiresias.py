"""Tiresias' job lists (Gu et al., NSDI 2019): `job_id,num_gpu,submit_time,iterations,model_name,duration,interval`.

Times are seconds from the trace's start. Muri writes the same columns in milliseconds (see `muri`); nothing in a file
tells the two apart.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.traces import csv_file, statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.job_file import Floats, JobFile, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.trace import Trace
from hetenv.units import HOUR_S

MURI_UNITS: Final = (
    "submit_time/duration/interval in MILLISECONDS, iteration_time in ms (duration ~= iterations*iteration_time)"
)
REQUIRED: Final = ("num_gpu", "submit_time", "duration")
COLUMNS: Final = ("job_id", *REQUIRED, "iterations", "model_name", "batch_size", "interval", "iteration_time")


def load(path: Path) -> Trace:
    """The trace of a file, or of all .csv files of a folder together.

    Raises:
        TraceError: nothing there, unreadable, a column missing, or no usable row.
    """
    return read(path, "tiresias", "s", 1.0, COLUMNS)


def read(path: Path, format: str, unit: str, per_s: float, known: tuple[str, ...]) -> Trace:
    """The trace of files whose times are in `unit`, of which `per_s` make a second."""
    files = [_read(file, per_s, known) for file in files_of(path, lambda name: name.endswith(".csv"), ".csv file")]
    units = {"submit_time": unit, "duration": unit, "num_gpu": "GPUs", "iterations": "steps"}
    return trace_of(format, path, files, f"{unit} since the trace's start", units)


def _read(path: Path, per_s: float, known: tuple[str, ...]) -> JobFile:
    table = csv_file.read(path, REQUIRED)
    found = JobFile.of(path, table, known)
    submit_s, duration_s = table.number("submit_time") / per_s, table.number("duration") / per_s
    found.ids = table.text("job_id") if "job_id" in table.cells else None
    found.submitted(submit_s, "submit_time")
    found.asks(table.number("num_gpu"), "num_gpu")
    found.runs(duration_s, "duration")
    found.does(table.number("iterations"), "iterations")
    found.labels["kind"] = table.text("model_name")
    found.statistics = _statistics(table, submit_s, duration_s, per_s)
    return found


def _statistics(table: CsvFile, submit_s: Floats, duration_s: Floats, per_s: float) -> dict[str, Any]:
    gpus, iterations = table.number("num_gpu"), table.number("iterations")
    found: dict[str, Any] = {
        "rows": table.lines.size,
        "columns": list(table.columns),
        "num_gpu_hist": statistics.counts(gpus),
        "models": statistics.counts(table.text("model_name")),
        "duration_s": statistics.describe(duration_s),
        "iterations": statistics.describe(iterations),
        "total_gpu_hours": statistics.rounded(np.nansum(gpus * duration_s) / HOUR_S),
        "submit_sorted": statistics.is_sorted(submit_s),
        "submit_s": statistics.describe(submit_s),
        "interarrival": statistics.interarrival(submit_s),
    }
    if "iteration_time" in table.cells:
        found["units"] = MURI_UNITS
        stepped_s = iterations * table.number("iteration_time") / per_s
        usable = (duration_s > 0) & np.isfinite(stepped_s)
        off = np.abs(stepped_s - duration_s)[usable] / duration_s[usable]
        found["iter_time_consistency_max_abs_rel"] = statistics.rounded(off.max(initial=0.0))
    return found

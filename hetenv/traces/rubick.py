"""Rubick's job lists (Zhang et al., 2024): each job with the parallel plan it was submitted with.

`name,submission_time,duration,application,num_gpus,num_cpus,bandwidth,exec_plan,steps,is_sla`, seconds from the start;
run times may be below one second, GPU counts need not be powers of two. `exec_plan` is `zero-dp`, `zero-offload`, `ga`
(gradient accumulation) or three digits (data, tensor and pipeline parallel sizes).
"""

from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.traces import csv_file, statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.job_file import JobFile, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.trace import Trace
from hetenv.units import HOUR_S

REQUIRED: Final = ("submission_time", "duration", "application", "num_gpus")
COLUMNS: Final = ("name", *REQUIRED, "num_cpus", "bandwidth", "exec_plan", "steps", "is_sla")
UNITS: Final = {"submission_time": "s", "duration": "s", "num_gpus": "GPUs", "steps": "steps"}


def load(path: Path) -> Trace:
    """The trace of a file, or of all .csv files of a folder together.

    Raises:
        TraceError: nothing there, unreadable, a column missing, or no usable row.
    """
    files = [_read(file) for file in files_of(path, lambda name: name.endswith(".csv"), ".csv file")]
    return trace_of("rubick", path, files, "seconds since the list's start", UNITS)


def _read(path: Path) -> JobFile:
    table = csv_file.read(path, REQUIRED)
    found = JobFile.of(path, table, COLUMNS)
    found.submitted(table.number("submission_time"), "submission_time")
    found.asks(table.number("num_gpus"), "num_gpus")
    found.runs(table.number("duration"), "duration")
    found.does(table.number("steps"), "steps")
    found.labels["kind"], found.labels["plan"] = table.text("application"), table.text("exec_plan")
    found.statistics = _statistics(table)
    return found


def _statistics(table: CsvFile) -> dict[str, Any]:
    submit_s, duration_s, gpus = (table.number(name) for name in ("submission_time", "duration", "num_gpus"))
    return {
        "rows": table.lines.size,
        "columns": list(table.columns),
        "apps": statistics.counts(table.text("application")),
        "num_gpus_hist": statistics.counts(gpus),
        "exec_plan_hist": statistics.counts(table.text("exec_plan")),
        "bandwidth_hist": {str(float(name)): n for name, n in statistics.counts(table.number("bandwidth")).items()},
        "duration_s": statistics.describe(duration_s),
        "total_gpu_hours": statistics.rounded(np.nansum(gpus * duration_s) / HOUR_S),
        "is_sla": statistics.counts(table.number("is_sla")),
        "extra_cols": [name for name in table.columns if name not in COLUMNS],
        "submission": statistics.describe(submit_s),
        "interarrival": statistics.interarrival(submit_s),
    }

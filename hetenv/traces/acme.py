"""Acme (Hu et al., NSDI 2024): job traces of the clusters Seren and Kalos, Slurm-like, with the stamps' offsets.

`job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time`; Kalos also has
memory columns and fail and stop times. Seren's stamps are +08:00 and Kalos' +00:00: both become UTC. The run time is
end - start: Kalos' duration column (and so its gpu_time) counts from the submit, whatever its documentation says.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.traces import csv_file, statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.helios import FAILURES, OUTCOMES
from hetenv.traces.job_file import JobFile, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.trace import LISTED_ROWS, Trace
from hetenv.units import HOUR_S

REQUIRED: Final = ("gpu_num", "submit_time", "start_time", "end_time")
COLUMNS: Final = (
    *REQUIRED, "job_id", "user", "node_num", "cpu_num", "type", "state", "duration", "queue", "gpu_time",
    "mem_per_pod_GB", "shared_mem_per_pod", "fail_time", "stop_time",
)  # fmt: skip
UNITS: Final = {"submit_time": "date and time", "duration": "s", "queue": "s", "gpu_num": "GPUs", "gpu_time": "GPU s"}
RULE: Final = "seren: duration=end-start; kalos: duration=end-submit (includes queue) per the publisher's two sample rows"


def load(path: Path) -> Trace:
    """The trace of a file, or of all trace_*.csv files of a folder together.

    Raises:
        TraceError: nothing there, unreadable, a column missing, or no usable row.
    """
    mine = files_of(path, lambda name: name.startswith("trace_") and name.endswith(".csv"), "trace_*.csv file")
    base = "UTC, from the stamps' own offsets; seconds since the midnight that begins the first day"
    return trace_of("acme", path, [_read(file) for file in mine], base, UNITS)


def _read(path: Path) -> JobFile:
    table = csv_file.read(path, REQUIRED)
    found = JobFile.of(path, table, COLUMNS)
    found.ids = table.text("job_id") if "job_id" in table.cells else None
    found.submitted(table.when("submit_time"), "submit_time")
    found.asks(table.number("gpu_num"), "gpu_num")
    found.ran(table.when("start_time"), table.when("end_time"), table.number("duration"))
    found.ended(table.text("state"), OUTCOMES)
    run_s = found.columns["duration_s"]
    found.note(np.abs(table.number("duration") - run_s) >= 1.0, "duration column is not end - start: left unused")
    found.labels["kind"] = table.text("type")
    found.statistics = _statistics(table)
    return found


def _statistics(table: CsvFile) -> dict[str, Any]:
    gpus, duration_s, state = table.number("gpu_num"), table.number("duration"), table.text("state")
    submit, start, end = (table.when(name) for name in ("submit_time", "start_time", "end_time"))
    run_s, stay_s = (end - start) / np.timedelta64(1, "s"), (end - submit) / np.timedelta64(1, "s")
    has_gpus = gpus > 0
    zones = sorted({cell[-6:] for cell in table.cells["submit_time"] if cell[-6:-5] in ("+", "-")})
    asked_h = statistics.rounded(np.nansum(gpus * run_s) / HOUR_S)
    found: dict[str, Any] = {
        "rows": table.lines.size,
        "timezone": zones[0] if len(zones) == 1 else zones,
        "n_cpu_only": int((gpus == 0).sum()),
        "n_gpu_jobs": int(has_gpus.sum()),
        "type": statistics.counts(table.text("type")),
        "state": statistics.counts(state),
        "duration_column_s_gpu": statistics.brief(duration_s[has_gpus]),
        "run_s_end_minus_start_gpu": statistics.brief(run_s[has_gpus]),
        "rule": RULE,
        "duration_equals_end_minus_start": _equal(duration_s, run_s),
        "duration_equals_end_minus_submit": _equal(duration_s, stay_s),
        "gpu_hours": asked_h,
        "gpu_hours_from_end_minus_start": asked_h,
        "gpu_hours_by_end_minus_start": asked_h,
        "gpu_hours_by_gpu_time_column": statistics.rounded(np.nansum(table.number("gpu_time")) / HOUR_S),
        "failed_share_gpu": statistics.share(np.isin(state[has_gpus], FAILURES)),
        "first_submit_utc": statistics.earliest(submit) + "+00:00",
        "last_submit_utc": statistics.latest(submit) + "+00:00",
        "gpu_max": int(np.nanmax(gpus, initial=0.0)),
    }
    if table.lines.size <= LISTED_ROWS:
        found["run_s"], found["duration"] = statistics.one_by_one(run_s), statistics.one_by_one(duration_s)
    return found


def _equal(column: Any, computed: Any) -> bool:
    return bool(np.all(np.abs(column - computed)[np.isfinite(column - computed)] < 1.0))

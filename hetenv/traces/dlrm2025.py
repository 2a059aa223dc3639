"""Alibaba's trace of disaggregated recommendation models (GPU v2025): instances of inference services, one a line.

Seconds from the trace's start. An empty creation_time is an instance that was there before the trace: it counts as
present at 0. An empty deletion_time is one still alive at the end: its life is cut at the last time that the file
states. CN instances ask for no GPU. `rdma_*` are percent of a NIC, `max_instance_per_node` -1 is no limit.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.traces import csv_file, statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.job_file import JobFile, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.trace import Outcome, Trace
from hetenv.units import HOUR_S

TIMES: Final = ("creation_time", "scheduled_time", "deletion_time")
REQUIRED: Final = ("gpu_request", *TIMES)
COLUMNS: Final = (
    "instance_sn", "role", "app_name", "cpu_request", "cpu_limit", "gpu_request", "gpu_limit", "rdma_request", "rdma_limit",
    "memory_request", "memory_limit", "disk_request", "disk_limit", "max_instance_per_node", *TIMES,
)  # fmt: skip
UNITS: Final = {"creation_time": "s", "deletion_time": "s", "gpu_request": "GPUs", "rdma_request": "percent of a NIC"}


def load(path: Path) -> Trace:
    """The instances of a file, or of all .csv files of a folder together.

    Raises:
        TraceError: nothing there, unreadable, a column missing, or no usable row.
    """
    files = [_read(file) for file in files_of(path, lambda name: name.endswith(".csv"), ".csv file")]
    return trace_of("dlrm2025", path, files, "seconds since the trace's start", UNITS)


def _read(path: Path) -> JobFile:
    table = csv_file.read(path, REQUIRED)
    created, scheduled, deleted = (table.number(name) for name in TIMES)
    there, alive = np.array(table.text("creation_time") == ""), np.array(table.text("deletion_time") == "")
    submit_s = np.where(there, 0.0, created)
    end_s = np.where(alive, np.nanmax(np.concatenate([created, scheduled, deleted]), initial=0.0), deleted)
    found = JobFile.of(path, table, COLUMNS)
    found.submitted(submit_s, "creation_time")
    found.asks(table.number("gpu_request"), "gpu_request")
    found.repair(there, "no creation_time: present before the trace, submitted at 0")
    found.repair(alive, "no deletion_time: alive at the end, life cut at the file's last time")
    found.ran(np.where(np.isfinite(scheduled), scheduled, submit_s), end_s)
    found.columns["wait_s"] = np.where(np.isfinite(scheduled), found.columns["wait_s"], np.nan)
    found.columns["outcome"] = np.where(alive, Outcome.RUNNING, Outcome.UNKNOWN)
    found.labels["group"], found.labels["kind"] = table.text("app_name"), table.text("role")
    found.statistics = _statistics(table)
    return found


def _statistics(table: CsvFile) -> dict[str, Any]:
    created, scheduled, deleted = (table.number(name) for name in TIMES)
    gpus, life_s = table.number("gpu_request"), deleted - created
    times = np.concatenate([created, scheduled, deleted])
    return {
        "rows": table.lines.size,
        "columns": list(table.columns),
        "roles": statistics.counts(table.text("role")),
        "n_apps": len(set(table.cells.get("app_name", []))),
        "gpu_request_hist": statistics.counts(gpus),
        "n_missing": statistics.missing(table.cells, TIMES),
        "n_no_create": int(np.isnan(created).sum()),
        "n_no_delete": int(np.isnan(deleted).sum()),
        "n_both": int(np.isfinite(life_s).sum()),
        "life_s_where_both": statistics.describe(life_s),
        "sum_gpu_request": statistics.rounded(np.nansum(gpus)),
        "gpu_hours_where_both": statistics.rounded(np.nansum(gpus * life_s) / HOUR_S),
        "max_instance_per_node_hist": statistics.counts(table.number("max_instance_per_node")),
        "n_delete_before_create": int((life_s < 0).sum()),
        "time_max": statistics.rounded(np.nanmax(times, initial=0.0)),
    }

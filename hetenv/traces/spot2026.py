"""Alibaba's spot GPU trace (v2026): the node table and the job table, told apart by their columns.

Jobs: `job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type`, seconds from the
trace's start; a job's GPUs are gpu_request x worker_num; job_type is HP (guaranteed) or Spot, its plan. Nodes:
`gpu_model,gpu_capacity_num,cpu_num,node_name`, in any order.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.errors import TraceError
from hetenv.traces import csv_file, nodes, statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.job_file import JobFile, beside, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.nodes import NodeTable, SideTable, together
from hetenv.traces.trace import Trace
from hetenv.units import HOUR_S

NODE: Final = ("gpu_model", "gpu_capacity_num")
JOB: Final = ("gpu_model", "gpu_request", "worker_num", "submit_time", "duration")
JOB_COLUMNS: Final = (*JOB, "job_name", "organization", "cpu_request", "job_type")
UNITS: Final = {"submit_time": "s", "duration": "s", "gpu_request": "GPUs of a worker"}


def load(path: Path) -> Trace | SideTable:
    """The jobs of a file, or of a folder with its nodes; the nodes alone where there are no jobs.

    Raises:
        TraceError: nothing there, unreadable, columns of neither table, or no usable row.
    """
    jobs: list[JobFile] = []
    sides: list[SideTable] = []
    for file in files_of(path, lambda name: name.endswith(".csv"), ".csv file"):
        table = csv_file.read(file, ())
        if set(NODE) <= set(table.columns):
            sides.append(_nodes(file, table))
        elif set(JOB) <= set(table.columns):
            jobs.append(_jobs(file, table))
        else:
            raise TraceError(f"{file}: neither a job table ({', '.join(JOB)}) nor a node table ({', '.join(NODE)})")
    if not jobs:
        return together(sides)
    return beside(trace_of("spot2026", path, jobs, "seconds since the trace's start", UNITS), sides)


def _jobs(path: Path, table: CsvFile) -> JobFile:
    gpus, duration_s = table.number("gpu_request") * table.number("worker_num"), table.number("duration")
    found = JobFile.of(path, table, JOB_COLUMNS)
    found.submitted(table.number("submit_time"), "submit_time")
    found.asks(gpus, "gpu_request x worker_num")
    found.runs(duration_s, "duration")
    found.labels["gpu_type"], found.labels["group"] = table.text("gpu_model"), table.text("organization")
    found.labels["plan"] = table.text("job_type")
    found.statistics = {
        "rows": table.lines.size,
        "columns": list(table.columns),
        "job_type": statistics.counts(table.text("job_type")),
        "gpus_hist": statistics.counts(gpus),
        "duration_s": statistics.describe(duration_s),
        "total_gpu_hours": statistics.rounded(np.nansum(gpus * duration_s) / HOUR_S),
        "interarrival": statistics.interarrival(table.number("submit_time")),
    }
    return found


def _nodes(path: Path, table: CsvFile) -> NodeTable:
    gpus, models = table.number("gpu_capacity_num"), table.text("gpu_model")
    n_nodes, n_gpus = nodes.by_type(models, gpus)
    found: dict[str, Any] = {
        "rows": table.lines.size,
        "columns": list(table.columns),
        "total_gpus": int(np.nansum(gpus)),
        "gpu_per_node_hist": statistics.counts(gpus),
        "nodes_by_model": n_nodes,
        "gpus_by_model": n_gpus,
    }
    return nodes.node_table("spot2026", path, models.tolist(), gpus, found, {"gpu_capacity_num": "GPUs"})

"""Alibaba's PAI trace (GPU v2020; Weng et al., NSDI 2022): job, task, instance and machine tables without header lines.

Column names stand in a `.header` file beside each table. Seconds from an undisclosed origin, never dates. A job is
submitted at its start_time, starts with its first task that asks for GPUs, and ends at its end_time. `plan_gpu` is a
percentage of a GPU for each of a task's inst_num instances: a job's GPUs are the sum of plan_gpu x inst_num / 100 over
its tasks (none for parameter servers), rounded up as a whole. Running and Waiting jobs have no end and are dropped.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.errors import TraceError
from hetenv.traces import csv_file, nodes, statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.job_file import Floats, JobFile, beside, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.nodes import NodeTable, SideTable
from hetenv.traces.trace import UNTYPED, Outcome, Trace
from hetenv.units import HOUR_S

JOB: Final = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TASK: Final = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu", "gpu_type",
)  # fmt: skip
INSTANCE: Final = (
    "job_name", "task_name", "inst_name", "worker_name", "inst_id", "status", "start_time", "end_time", "machine",
)  # fmt: skip
MACHINE: Final = ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu")
TABLES: Final = {"pai_job_table": JOB, "pai_task_table": TASK, "pai_instance_table": INSTANCE, "pai_machine_spec": MACHINE}
UNITS: Final = {"start_time": "s", "plan_gpu": "percent of a GPU, of each instance", "inst_num": "instances"}
TIME_BASE: Final = "seconds since an undisclosed origin"
OUTCOMES: Final = {
    "terminated": Outcome.COMPLETED,
    "failed": Outcome.FAILED,
    "running": Outcome.RUNNING,
    "waiting": Outcome.UNKNOWN,
}
PERCENT: Final = 100.0


def load(path: Path) -> Trace | SideTable:
    """The jobs of a folder, or of the folder of a job or task table; the machines alone where that is all there is.

    Raises:
        TraceError: nothing there, no job table or no task table beside it, unreadable, or no usable row.
    """
    files = files_of(path, _is_table, "pai_*.csv table")
    if path.is_file() and _kind(path) == "pai_machine_spec":
        return _machines(path)
    folder = files_of(path.parent, _is_table, "pai_*.csv table") if path.is_file() else files
    tables = {_kind(file): file for file in folder}
    machines = [_machines(tables["pai_machine_spec"])] if "pai_machine_spec" in tables and path.is_dir() else []
    if machines and len(tables) == 1:
        return machines[0]
    for name in ("pai_job_table", "pai_task_table"):
        if name not in tables:
            raise TraceError(f"{path}: {name}.csv is missing; jobs need the job table and the task table in one folder")
    instances = tables.get("pai_instance_table")
    found = _jobs(tables["pai_job_table"], _read(tables["pai_job_table"]), _read(tables["pai_task_table"]))
    if instances is not None:
        found.statistics["instances"] = _read(instances).lines.size
    return beside(trace_of("pai2020", path, [found], TIME_BASE, UNITS), machines)


def _is_table(name: str) -> bool:
    return name.endswith(".csv") and name.removesuffix(".csv") in TABLES


def _kind(path: Path) -> str:
    """Which table a file is, by its name."""
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    if name not in TABLES:
        raise TraceError(f"{path}: no table of PAI; name it {', '.join(f'{known}.csv' for known in TABLES)}")
    return name


def _read(path: Path) -> CsvFile:
    """A table by its header file, else by the published columns."""
    header_file = path.parent / f"{_kind(path)}.header"
    header = csv_file.records(header_file)[0][0] if header_file.is_file() else TABLES[_kind(path)]
    missing = [name for name in TABLES[_kind(path)] if name not in header]
    if missing:
        raise TraceError(f"{header_file}: column {missing[0]!r} is missing (found: {', '.join(header)})")
    return csv_file.headless(path, header)


def _jobs(path: Path, jobs: CsvFile, tasks: CsvFile) -> JobFile:
    names = jobs.text("job_name")
    row_of = {name: index for index, name in enumerate(names.tolist())}
    place = np.array([row_of.get(name, -1) for name in tasks.cells["job_name"]], np.int64)
    per_task = tasks.number("plan_gpu") / PERCENT * tasks.number("inst_num")
    asks = np.isfinite(per_task) & (per_task > 0) & (place >= 0)
    gpus = np.bincount(place[asks], per_task[asks], names.size).astype(np.float64)
    start_s = np.full(names.size, np.inf)
    np.fmin.at(start_s, place[asks], tasks.number("start_time")[asks])
    found = JobFile(path, jobs.lines)
    found.ids = names
    found.noted["tasks of no job in the job table, ignored"] = int((place < 0).sum())
    found.submitted(jobs.number("start_time"), "start_time")
    found.asks(np.round(gpus, statistics.DECIMALS), "plan_gpu x inst_num")
    found.ended(jobs.text("status"), OUTCOMES)
    is_late = np.isfinite(start_s) & (start_s > jobs.number("end_time"))
    found.repair(is_late, "first task after the job's end: started at its submit")
    found.ran(np.where(np.isfinite(start_s) & ~is_late, start_s, jobs.number("start_time")), jobs.number("end_time"))
    types = _types(names.size, place, asks, per_task, tasks)
    found.note(np.array([len(kinds) > 1 for kinds in types], bool), "tasks on several GPU types: that of most GPUs")
    largest = [max(sorted(kinds), key=lambda kind: kinds[kind]) if kinds else UNTYPED for kinds in types]
    found.labels["gpu_type"] = np.array(largest, np.str_)
    found.labels["group"] = jobs.text("user")
    found.statistics = _statistics(jobs, tasks, gpus, place, per_task)
    return found


def _types(n: int, place: Any, asks: Any, per_task: Floats, tasks: CsvFile) -> list[dict[str, float]]:
    """GPUs by type of each job; tasks that name none count as any type."""
    found: list[dict[str, float]] = [{} for _ in range(n)]
    for job, kind, count in zip(place[asks].tolist(), tasks.text("gpu_type")[asks].tolist(), per_task[asks].tolist()):
        name = kind or UNTYPED
        found[job][name] = found[job].get(name, 0.0) + count
    return found


def _statistics(jobs: CsvFile, tasks: CsvFile, gpus: Floats, place: Any, per_task: Floats) -> dict[str, Any]:
    start_s, end_s, status = jobs.number("start_time"), jobs.number("end_time"), jobs.text("status")
    task_s = tasks.number("end_time") - tasks.number("start_time")
    return {
        "jobs": jobs.lines.size,
        "tasks": tasks.lines.size,
        "status": statistics.counts(status),
        "failed_share": statistics.share(status == "Failed"),
        "n_missing_job_start": int(np.isnan(start_s).sum()),
        "n_missing_job_end": int(np.isnan(end_s).sum()),
        "job_run_s": statistics.brief(end_s - start_s),
        "multi_task_jobs": int((np.bincount(place[place >= 0], minlength=1) > 1).sum()),
        "gpus_per_job_plan_gpu_over_100_times_inst_num": statistics.brief(gpus),
        "n_tasks_without_gpu": int((~(per_task > 0)).sum()),
        "gpu_type": statistics.counts(tasks.text("gpu_type")),
        "gpu_hours_tasks_with_both_times": statistics.rounded(np.nansum(per_task * task_s) / HOUR_S),
    }


def _machines(path: Path) -> NodeTable:
    table = _read(path)
    gpus, types = table.number("cap_gpu"), table.text("gpu_type")
    n_nodes, n_gpus = nodes.by_type(types, gpus)
    found: dict[str, Any] = {
        "rows": table.lines.size,
        "header_file": "separate .header file, the csv has NO header line",
        "columns": list(table.columns),
        "gpus_by_type": n_gpus,
        "nodes_by_type": n_nodes,
        "cap_gpu_hist": statistics.counts(gpus),
        "cap_cpu": statistics.describe(table.number("cap_cpu")),
        "cap_mem": statistics.describe(table.number("cap_mem")),
    }
    return nodes.node_table("pai2020", path, types.tolist(), gpus, found, {"cap_gpu": "GPUs", "cap_mem": "GB"})

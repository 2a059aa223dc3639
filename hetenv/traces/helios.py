"""Helios (Hu et al., SC 2021): the job log, and the count series of its artifacts. A file is told by its columns.

Job log: `job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue`; naive local
time (UTC+8). More than half of the rows ask for no GPU. A row RUNNING at the record's end has no end_time: its run time
is the duration column. Count series: the quota of GPUs a day and virtual cluster (`date`, one column each, `total`; 0
where there was none yet), running and pending GPUs of one virtual cluster a minute, and jobs and GPUs submitted, started
and ended per ten minutes.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.errors import TraceError
from hetenv.traces import csv_file, statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.job_file import JobFile, beside, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.nodes import CountSeries, SideTable, together
from hetenv.traces.trace import UNTYPED, LoadReport, Outcome, Trace
from hetenv.units import HOUR_S

REQUIRED: Final = ("gpu_num", "submit_time", "start_time", "end_time")
COLUMNS: Final = (*REQUIRED, "job_id", "user", "vc", "cpu_num", "node_num", "state", "duration", "queue")
UNITS: Final = {"submit_time": "date and time", "duration": "s", "queue": "s", "gpu_num": "GPUs"}
TIME_BASE: Final = "naive local time of the site (UTC+8); seconds since the midnight that begins the first day"
OUTCOMES: Final = {
    "completed": Outcome.COMPLETED,
    "cancelled": Outcome.CANCELLED,
    "failed": Outcome.FAILED,
    "node_fail": Outcome.FAILED,
    "out_of_memory": Outcome.FAILED,
    "timeout": Outcome.TIMEOUT,
    "running": Outcome.RUNNING,
}
"""Slurm's states."""
FAILURES: Final = ("FAILED", "TIMEOUT", "NODE_FAIL")


def load(path: Path) -> Trace | SideTable:
    """The jobs of a file, or of a folder with its count series; the series alone where there is no job log.

    Raises:
        TraceError: nothing there, unreadable, columns of no table of Helios, or no usable row.
    """
    jobs: list[JobFile] = []
    series: list[SideTable] = []
    for file in files_of(path, lambda name: name.endswith(".csv"), ".csv file"):
        table = csv_file.read(file, ())
        if set(REQUIRED) <= set(table.columns):
            jobs.append(_jobs(file, table))
        else:
            series.append(counts(file, table))
    if not jobs:
        return together(series)
    return beside(trace_of("helios", path, jobs, TIME_BASE, UNITS), series)


def _jobs(path: Path, table: CsvFile) -> JobFile:
    found = JobFile.of(path, table, COLUMNS)
    found.ids = table.text("job_id") if "job_id" in table.cells else None
    found.submitted(table.when("submit_time"), "submit_time")
    found.asks(table.number("gpu_num"), "gpu_num")
    found.ran(table.when("start_time"), table.when("end_time"), table.number("duration"))
    found.ended(table.text("state"), OUTCOMES)
    found.labels["group"] = table.text("vc")
    found.statistics = _job_statistics(table)
    return found


def _job_statistics(table: CsvFile) -> dict[str, Any]:
    gpus, duration_s, state, submit = (
        table.number("gpu_num"), table.number("duration"), table.text("state"), table.when("submit_time"),
    )  # fmt: skip
    has_gpus = gpus > 0
    return {
        "rows": table.lines.size,
        "n_cpu_only": int((gpus == 0).sum()),
        "n_gpu_jobs": int(has_gpus.sum()),
        "state": statistics.counts(state),
        "gpu_hist": statistics.counts(gpus[has_gpus]),
        "duration_s_gpu": statistics.brief(duration_s[has_gpus]),
        "queue_s_gpu": statistics.brief(table.number("queue")[has_gpus]),
        "n_zero_duration": int((duration_s == 0).sum()),
        "n_missing_end": int(np.isnat(table.when("end_time")).sum()),
        "failed_share_gpu_FAILED_TIMEOUT_NODEFAIL": statistics.share(np.isin(state[has_gpus], FAILURES)),
        "gpu_hours": statistics.rounded(np.nansum(gpus * duration_s) / HOUR_S),
        "first_submit": statistics.earliest(submit),
        "last_submit": statistics.latest(submit),
    }


def counts(path: Path, table: CsvFile) -> CountSeries:
    """A count series; rows without a time or of text are dropped.

    Raises:
        TraceError: columns of no count series, or no usable row.
    """
    clock = "date" if "date" in table.columns else "time"
    when, names = table.when(clock), [name for name in table.columns if name not in (clock, "")]
    values = {name: table.number(name) for name in names}
    kept = ~np.isnat(when) & np.all([np.isfinite(column) for column in values.values()], axis=0)
    if clock not in table.columns or not kept.any():
        raise TraceError(f"{path}: neither a job log nor a count series of Helios (columns: {', '.join(table.columns) or 'none'})")
    when, values = when[kept], {name: column[kept] for name, column in values.items()}
    if "submit_gpu_job" in values:
        found = _throughput(when, values, table)
    elif "running_gpu_num" in values:
        found = _sequence(when, values)
    elif "total" in values:
        found = _quota(when, values)
    else:
        raise TraceError(f"{path}: no count series of Helios (columns: {', '.join(table.columns)})")
    n_bad = int((~kept).sum())
    report = LoadReport(
        format="helios",
        files=(path.name,),
        time_base=TIME_BASE.split(";")[0],
        units=dict.fromkeys(names, "counts"),
        rows_read=kept.size + table.n_overlong,
        rows_kept=int(kept.sum()),
        repaired={},
        dropped={"time or a count missing": n_bad} if n_bad else {},
        noted={},
        first=found["first"],
        last=found["last"],
        gpu_hours={},
        gpus={UNTYPED: round(float(values["total"].mean()))} if "total" in values else {},
    )
    order = np.argsort(when, kind="stable")
    return CountSeries(report, found, when[order], {name: column[order] for name, column in values.items()})


def _quota(when: Any, values: dict[str, Any]) -> dict[str, Any]:
    total = values["total"]
    summed = sum((column for name, column in values.items() if name != "total"), np.zeros(total.size))
    return {
        "rows": when.size,
        "n_vcs": len(values) - 1,
        "first": str(when.min().astype("datetime64[D]")),
        "last": str(when.max().astype("datetime64[D]")),
        "total": statistics.describe(total),
        "total_equals_sum_of_vcs": bool(np.all(total == summed)),
        "rows_total_mismatch": int((total != summed).sum()),
    }


def _sequence(when: Any, values: dict[str, Any]) -> dict[str, Any]:
    return {
        "rows": when.size,
        "first": statistics.earliest(when),
        "last": statistics.latest(when),
        "running_gpu": statistics.describe(values["running_gpu_num"]),
        "pending_gpu": statistics.describe(values["pending_gpu_num"]),
        "utilization": statistics.describe(values["gpu_utilization"]),
        "total_gpu": statistics.counts(values["total_gpu_num"]),
    }


def _throughput(when: Any, values: dict[str, Any], table: CsvFile) -> dict[str, Any]:
    jobs, gpus = values["submit_gpu_job"], values["submit_gpu_num"]
    hour, weekday = when.astype("datetime64[h]").astype(np.int64), (when.astype("datetime64[D]").astype(np.int64) + 3) % 7
    hourly = np.bincount(hour - hour.min(), jobs).astype(np.float64)
    step_s = float(np.median(np.diff(np.sort(when)) / np.timedelta64(1, "s"))) if when.size > 1 else 0.0
    return {
        "rows": when.size,
        "columns": list(table.columns),
        "bin": f"{step_s / 60:g} minutes",
        "first": statistics.earliest(when),
        "last": statistics.latest(when),
        "total_submit_all": int(values["submit_job_all"].sum()),
        "total_submit_gpu": int(jobs.sum()),
        "total_submit_gpu_num": int(gpus.sum()),
        "mean_gpus_per_gpu_job": statistics.rounded(gpus.sum() / jobs.sum()) if jobs.sum() else 0.0,
        "gpu_jobs_per_hour_mean": statistics.rounded(hourly.mean()),
        "gpu_jobs_per_hour_max": int(hourly.max()),
        "index_of_dispersion_hourly": statistics.dispersion(hourly),
        "index_of_dispersion_10min": statistics.dispersion(jobs),
        "mean_by_hour": statistics.means(hour % 24, jobs, 24),
        "weekday_mean": statistics.means(weekday, jobs, 7),
    }

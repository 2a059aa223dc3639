"""The Philly trace in its original form (Jeon et al., ATC 2019): `cluster_job_log` (JSON) and `cluster_machine_list`.

A job has attempts; each holds GPUs on one or more servers from its start_time to its end_time (naive US Pacific time).
A time may be null, empty, or the text `None`. A job's run time is the sum of its complete attempts, its GPUs those of
its first attempt, its wait the time to its first start; a job without a complete attempt is dropped.
"""

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import TraceError
from hetenv.traces import csv_file, nodes, statistics
from hetenv.traces.job_file import Floats, JobFile, beside, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.nodes import NodeTable, SideTable, together
from hetenv.traces.trace import LISTED_ROWS, Outcome, Trace
from hetenv.units import HOUR_S

JOBS: Final = "cluster_job_log"
MACHINES: Final = "cluster_machine_list"
KNOWN: Final = ("status", "vc", "jobid", "attempts", "submitted_time", "user")
TIME_BASE: Final = "naive local time of the site (US Pacific); seconds since the midnight that begins the first day"
UNITS: Final = {"submitted_time": "date and time", "attempts": "GPUs from start_time to end_time"}
OUTCOMES: Final = {"pass": Outcome.COMPLETED, "failed": Outcome.FAILED, "killed": Outcome.CANCELLED}


def load(path: Path) -> Trace | SideTable:
    """The jobs of a job log, or of a folder with its machines; the machines alone where there is no log.

    Raises:
        TraceError: nothing there, unreadable, not JSON of this form, or no usable job.
    """
    files = files_of(path, lambda name: name.startswith((JOBS, MACHINES)), f"{JOBS} and no {MACHINES}")
    sides: list[SideTable] = [_machines(file) for file in files if file.name.startswith(MACHINES)]
    jobs = [_jobs(file) for file in files if not file.name.startswith(MACHINES)]
    if not jobs:
        return together(sides)
    return beside(trace_of("philly", path, jobs, TIME_BASE, UNITS), sides)


def _jobs(path: Path) -> JobFile:
    try:
        found = json.loads(csv_file.text(path))
        jobs = [{**job, "attempts": list(job.get("attempts") or [])} for job in found]
        first_gpus = np.array([_gpus(job["attempts"][0]) if job["attempts"] else np.nan for job in jobs], np.float64)
        owner = np.repeat(np.arange(len(jobs)), [len(job["attempts"]) for job in jobs])
        attempts = [attempt for job in jobs for attempt in job["attempts"]]
        per_attempt = np.array([_gpus(attempt) for attempt in attempts], np.float64)
        started, ended = (_times([attempt.get(name) for attempt in attempts]) for name in ("start_time", "end_time"))
        submitted = _times([job.get("submitted_time") for job in jobs])
    except (json.JSONDecodeError, TypeError, AttributeError, ValueError, KeyError) as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError(f"{path}: not a list of Philly jobs in JSON: {error}") from None
    table = JobFile(path, np.arange(1, len(jobs) + 1))
    table.ids = np.array([str(job.get("jobid", "")) for job in jobs], np.str_)
    table.noted["unknown keys, ignored"] = len({name for job in jobs for name in job} - set(KNOWN))
    run_s, complete = _runs(started, ended)
    table.submitted(submitted, "submitted_time")
    n_attempts = np.bincount(owner, minlength=len(jobs))
    table.drop(n_attempts == 0, "no attempts: never started")
    table.asks(first_gpus, "GPUs of the first attempt")
    n_complete = np.bincount(owner, complete, len(jobs))
    table.drop(n_complete == 0, "no attempt with a start and an end")
    table.repair((n_complete > 0) & (n_complete < n_attempts), "attempts without a start or an end: left out of the run time")
    table.note(np.bincount(owner, per_attempt != first_gpus[owner], len(jobs)) > 0, "attempts of unlike GPU counts: that of the first")
    first = np.full(len(jobs), np.datetime64("NaT", "ms"))
    last = first.copy()
    heads = np.flatnonzero(n_attempts)
    ends = np.cumsum(n_attempts)
    first[heads], last[heads] = started[(ends - n_attempts)[heads]], ended[ends[heads] - 1]
    wait_s = (first - submitted) / np.timedelta64(1, "s")
    table.repair(wait_s < 0, "start before submit: a wait of 0")
    table.columns["wait_s"] = np.maximum(wait_s, 0.0)
    summed = np.bincount(owner, np.where(complete, run_s, 0.0), len(jobs)).astype(np.float64)
    table.runs(summed, "run time")
    table.ended(np.array([str(job.get("status", "")) for job in jobs], np.str_), OUTCOMES)
    table.labels["group"] = np.array([str(job.get("vc", "")) for job in jobs], np.str_)
    asked_s = float((per_attempt * np.where(complete, run_s, 0.0)).sum())
    table.statistics = _statistics(jobs, first_gpus, submitted, first, last, run_s[complete], summed, asked_s)
    return table


def _gpus(attempt: dict[str, Any]) -> float:
    return float(sum(len(server.get("gpus") or []) for server in attempt.get("detail") or []))


def _times(values: list[Any]) -> NDArray[np.datetime64]:
    """Times; null, empty and the text None are none."""
    return csv_file.instants(["" if value is None else str(value).strip() for value in values])


def _runs(started: NDArray[np.datetime64], ended: NDArray[np.datetime64]) -> tuple[Floats, NDArray[np.bool_]]:
    """Run time of each attempt, and whether it is complete: both times there, not backwards."""
    run_s = (ended - started) / np.timedelta64(1, "s")
    return run_s, np.isfinite(run_s) & (run_s >= 0)


def _statistics(
    jobs: list[dict[str, Any]],
    gpus: Floats,
    submitted: NDArray[np.datetime64],
    first: NDArray[np.datetime64],
    last: NDArray[np.datetime64],
    attempt_s: Floats,
    summed_s: Floats,
    asked_s: float,
) -> dict[str, Any]:
    n_attempts = np.array([len(job["attempts"]) for job in jobs], np.int64)
    run_s, queue_s = (last - first) / np.timedelta64(1, "s"), (first - submitted) / np.timedelta64(1, "s")
    status = np.array([str(job.get("status", "")) for job in jobs], np.str_)
    vcs = [str(job.get("vc", "")) for job in jobs]
    has = n_attempts > 0
    few = len(jobs) <= LISTED_ROWS
    found: dict[str, Any] = {
        "rows": len(jobs),
        "status": statistics.counts(status),
        "failed_share": statistics.share(status == "Failed"),
        "n_no_attempts": int((~has).sum()),
        "n_missing_first_start": int((has & np.isnat(first)).sum()),
        "n_missing_last_end": int((has & np.isnat(last)).sum()),
        "n_zero_run": int((run_s == 0).sum()),
        "attempts_hist": statistics.counts(n_attempts),
        "gpu_hist_first_attempt": statistics.counts(gpus),
        "multi_server_jobs": sum(len(job["attempts"][0].get("detail") or []) > 1 for job in jobs if job["attempts"]),
        "run_s_last_end_minus_first_start": statistics.one_by_one(run_s) if few else statistics.brief(run_s),
        "attempt_run_s": statistics.brief(attempt_s),
        "gpu_hours_over_complete_attempts": statistics.rounded(asked_s / HOUR_S),
        "queue_s": statistics.one_by_one(queue_s) if few else statistics.brief(queue_s),
        "sorted_by_submit": statistics.is_sorted(submitted),
        "first_submit": statistics.earliest(submitted),
        "last_submit": statistics.latest(submitted),
        "vcs": {name: vcs.count(name) for name in dict.fromkeys(vcs)},
    }
    if few:
        found["gpus_first_attempt"] = statistics.one_by_one(gpus)
        found["sum_of_complete_attempts_s"] = statistics.one_by_one(summed_s)
    return found


def _machines(path: Path) -> NodeTable:
    table = csv_file.read(path, ("machineId", "number of GPUs"))
    gpus, memory = table.number("number of GPUs"), table.text("single GPU mem")
    found = {"rows": table.lines.size, "total_gpus": int(np.nansum(gpus))}
    return nodes.node_table("philly", path, memory.tolist(), gpus, found, {"number of GPUs": "GPUs", "single GPU mem": "per GPU"})

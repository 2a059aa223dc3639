"""Slurm accounting as `sacct --allusers --parsable2` prints it (or `--parsable`): `|`-separated, a header line of fields.

Fields: https://slurm.schedmd.com/sacct.html. Needed: Submit, Start, End, State and one of AllocTRES, ReqTRES, AllocGRES,
ReqGRES (GPUs: `gres/gpu=N`, or the sum of `gres/gpu:type=N`); used where present: JobID, User, Account, Partition,
JobName, Elapsed or ElapsedRaw, Timelimit or TimelimitRaw (minutes), Eligible. Job steps (JobID with a dot) are not jobs:
dropped and counted. `Unknown` and `None` are no time: such a job has not started or not ended. State may carry more
words (`CANCELLED by 1001`). Times are naive local time, as sacct prints them. A CPU-only job asks for no GPU: dropped.
"""

import re
from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.errors import TraceError
from hetenv.traces import csv_file, helios, statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.job_file import Floats, JobFile, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.trace import UNTYPED, Outcome, Trace
from hetenv.units import DAY_S, HOUR_S

REQUIRED: Final = ("Submit", "Start", "End", "State")
RESOURCES: Final = ("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES")
"""Where GPUs stand, the first that names some wins: a job that never started has allocated nothing."""
OUTCOMES: Final = {
    **helios.OUTCOMES,
    "pending": Outcome.UNKNOWN,
    "boot_fail": Outcome.FAILED,
    "deadline": Outcome.TIMEOUT,
    "preempted": Outcome.CANCELLED,
    "requeued": Outcome.UNKNOWN,
    "resizing": Outcome.UNKNOWN,
    "revoked": Outcome.CANCELLED,
    "suspended": Outcome.RUNNING,
    "completing": Outcome.RUNNING,
}
"""Job state codes of the manual."""
GPUS: Final = re.compile(r"(?:gres/)?gpu(?::(?P<type>[\w.-]+))?(?P<mark>[=:])(?P<n>\d+)(?![\w.-])")
TIME: Final = re.compile(r"(?:(?P<days>\d+)-)?(?:(?P<hours>\d+):)?(?P<minutes>\d+):(?P<seconds>\d+)(?:\.\d+)?")
TIME_BASE: Final = "naive local time of the site; seconds since the midnight that begins the first day"
UNITS: Final = {"Submit": "date and time", "Elapsed": "[DD-[HH:]]MM:SS", "TimelimitRaw": "minutes", "AllocTRES": "gres/gpu=N"}
MINUTE_S: Final = 60.0


def load(path: Path) -> Trace:
    """The jobs of a file, or of all .txt, .csv, .psv and .sacct files of a folder together.

    Raises:
        TraceError: nothing there, unreadable, a field missing, or no usable job.
    """
    mine = files_of(path, lambda name: name.endswith((".txt", ".csv", ".psv", ".sacct")), ".txt, .csv, .psv or .sacct file")
    return trace_of("sacct", path, [_read(file) for file in mine], TIME_BASE, UNITS)


def _read(path: Path) -> JobFile:
    table = csv_file.read(path, REQUIRED, "|")
    if not set(RESOURCES) & set(table.columns):
        raise TraceError(f"{path}: no field states GPUs; print one of {', '.join(RESOURCES)}")
    gpus, types = _gpus(table)
    found = JobFile(path, table.lines, table.n_overlong)
    ids = table.text("JobID")
    found.ids = ids if "JobID" in table.cells else None
    found.drop(np.char.find(ids, ".") >= 0, "a job step, no job")
    found.submitted(table.when("Submit"), "Submit")
    found.asks(gpus, "GPUs")
    found.ended(table.text("State"), OUTCOMES)
    elapsed_s = table.number("ElapsedRaw") if "ElapsedRaw" in table.cells else _spans(table, "Elapsed")
    found.ran(table.when("Start"), table.when("End"), np.where(np.isnat(table.when("Start")), np.nan, elapsed_s))
    limit_s = table.number("TimelimitRaw") * MINUTE_S if "TimelimitRaw" in table.cells else _spans(table, "Timelimit")
    found.columns["limit_s"] = np.where(limit_s > 0, limit_s, np.nan)
    found.labels["gpu_type"] = types
    found.labels["group"] = table.text("Account" if "Account" in table.cells else "User")
    found.labels["kind"], found.labels["plan"] = table.text("JobName"), table.text("Partition")
    found.statistics = _statistics(table, gpus, np.char.find(ids, ".") < 0)
    return found


def _gpus(table: CsvFile) -> tuple[Floats, Any]:
    """GPUs of each row and their types, joined by `|`; the total where the list states it, else the sum over types."""
    counts = np.zeros(table.lines.size)
    types = np.full(table.lines.size, UNTYPED, dtype="U64")
    columns = [table.cells[name] for name in RESOURCES if name in table.cells]
    for row, cells in enumerate(zip(*columns)):
        for cell in cells:
            found = [(match["type"], int(match["n"])) for match in GPUS.finditer(cell)]
            if found:
                plain = [n for kind, n in found if kind is None]
                counts[row] = plain[0] if plain else sum(n for _, n in found)
                types[row] = "|".join(sorted({kind for kind, _ in found if kind})) or UNTYPED
                break
    return counts, types


def _spans(table: CsvFile, column: str) -> Floats:
    """[DD-[HH:]]MM:SS as seconds; NaN for UNLIMITED, Partition_Limit and other words."""
    cells = table.cells.get(column, [""] * table.lines.size)
    found = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        match = TIME.fullmatch(cell)
        if match:
            days, hours, minutes, seconds = (float(match[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
            found[row] = days * DAY_S + hours * HOUR_S + minutes * MINUTE_S + seconds
    return found


def _statistics(table: CsvFile, gpus: Floats, is_job: Any) -> dict[str, Any]:
    submit, start, end = (table.when(name)[is_job] for name in ("Submit", "Start", "End"))
    run_s, states = (end - start) / np.timedelta64(1, "s"), [cell.split(" ")[0] for cell in table.text("State")[is_job].tolist()]
    return {
        "rows": table.lines.size,
        "columns": list(table.columns),
        "n_steps": int((~is_job).sum()),
        "n_jobs": int(is_job.sum()),
        "n_cpu_only": int((gpus[is_job] == 0).sum()),
        "state": statistics.counts(np.array(states, np.str_)),
        "gpu_hist": statistics.counts(gpus[is_job]),
        "run_s": statistics.describe(run_s),
        "wait_s": statistics.describe((start - submit) / np.timedelta64(1, "s")),
        "total_gpu_hours": statistics.rounded(np.nansum(run_s * gpus[is_job]) / HOUR_S),
        "interarrival": statistics.interarrival((submit - np.datetime64(0, "ms")) / np.timedelta64(1, "s")),
    }

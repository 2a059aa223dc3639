"""The Standard Workload Format 2.2 of the Parallel Workloads Archive: 18 blank-separated fields a job, -1 for unknown.

Fields: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html. Lines from `;` on are comments, `; Key: value` the
header, which logs may lack. Submit times are seconds since the header's UnixStartTime, or whatever a log without header
counts from (some are Unix times). A processor counts as one GPU: those allocated, else those requested. Fields beyond
the 18th (site extensions) are ignored and noted; a line with fewer is dropped. Requests are limits that need not have
been enforced: jobs that ran longer are kept and noted.
"""

import re
from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.traces import csv_file, statistics
from hetenv.traces.job_file import Floats, JobFile, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.trace import Outcome, Trace
from hetenv.units import HOUR_S

N_FIELDS: Final = 18
SUBMIT, WAIT, RUN, PROCS, WANTED, LIMIT, STATUS, USER, APPLICATION, QUEUE = 1, 2, 3, 4, 7, 8, 10, 11, 13, 14
UNITS: Final = {"submit": "s", "wait": "s", "run": "s", "processors": "processors, read as GPUs"}
OUTCOMES: Final = {"0": Outcome.FAILED, "1": Outcome.COMPLETED, "5": Outcome.CANCELLED}
TOP: Final = 15
INTEGER: Final = re.compile(r"-?\d+")
HEADER: Final = re.compile(r";\s*(\w+):\s*(.*?)\s*$")
DEFINITIONS: Final = (
    "SWF v2.2 field order, 1-based: 1 job,2 submit,3 wait,4 run,5 alloc procs,6 avg cpu,7 mem,8 req procs,9 req time,"
    "10 req mem,11 status,12 user,...; proc_hours over rows run>=0 and alloc procs>0"
)


def load(path: Path) -> Trace:
    """The trace of a file, or of all .swf files of a folder together.

    Raises:
        TraceError: nothing there, unreadable, or no usable row.
    """
    files, bases = zip(*(_read(file) for file in files_of(path, lambda name: name.endswith((".swf", ".txt")), ".swf file")))
    return trace_of("swf", path, files, bases[0], UNITS)


def _read(path: Path) -> tuple[JobFile, str]:
    comments, fields, lines = [], [], []
    for number, line in enumerate(csv_file.text(path).splitlines(), 1):
        record, _, _ = line.partition(";")
        if record.strip():
            fields.append(record.split())
            lines.append(number)
        elif line.strip():
            comments.append(line.strip())
    header = {match[1]: match[2] for match in map(HEADER.match, comments) if match}
    whole = [record for record in fields if len(record) >= N_FIELDS]
    table = np.array([csv_file.numbers([record[k] for record in whole]) for k in range(N_FIELDS)])
    known = np.where(table >= 0, table, np.nan)
    found = JobFile(path, np.array([n for n, record in zip(lines, fields) if len(record) >= N_FIELDS], np.int64), 0)
    found.dropped[f"fewer than {N_FIELDS} fields"] = found.n_overlong = len(fields) - len(whole)
    found.noted["lines with fields beyond the 18th, ignored"] = sum(len(record) > N_FIELDS for record in whole)
    found.ids = np.array([record[0] for record in whole], np.str_)
    found.submitted(table[SUBMIT], "submit time")
    found.asks(np.where(known[PROCS] > 0, known[PROCS], np.where(known[WANTED] > 0, known[WANTED], table[PROCS])), "processors")
    found.columns["wait_s"] = known[WAIT]
    found.columns["limit_s"] = np.where(known[LIMIT] > 0, known[LIMIT], np.nan)
    found.runs(known[RUN], "run time")
    found.note(known[RUN] > known[LIMIT], "ran longer than requested, kept")
    status = [f"{code:g}" for code in table[STATUS]]
    found.columns["outcome"] = np.array([OUTCOMES.get(code, Outcome.UNKNOWN) for code in status], np.int64)
    found.labels["group"] = np.array([record[USER] for record in whole], np.str_)
    found.labels["kind"] = np.array([record[APPLICATION] if record[APPLICATION] != "-1" else "" for record in whole], np.str_)
    found.statistics = _statistics(table, known, fields, header, len(comments))
    start, zone = header.get("UnixStartTime"), header.get("TimeZoneString", "not stated")
    base = "of an unknown start (no header)" if start is None else f"since UnixStartTime {start}, zone {zone}"
    return found, f"seconds {base}"


def _statistics(
    table: Floats, known: Floats, fields: list[list[str]], header: dict[str, str], n_comments: int
) -> dict[str, Any]:
    """As the publisher's numbers count them: over all rows whose field is known."""
    run, procs, limit, submit = known[RUN], known[PROCS], known[LIMIT], table[SUBMIT]
    valid = np.isfinite(run) & (procs > 0)
    sizes = statistics.counts(procs)
    return {
        "rows": len(fields),
        "header_lines": n_comments,
        "header": header,
        "fields_per_row": statistics.counts(np.array([len(record) for record in fields])),
        "n_runtime_minus1": int((table[RUN] == -1).sum()),
        "n_runtime_zero": int((table[RUN] == 0).sum()),
        "n_wait_minus1": int((table[WAIT] == -1).sum()),
        "n_allocproc_minus1": int((table[PROCS] == -1).sum()),
        "n_noninteger_fields": sum(INTEGER.fullmatch(cell) is None for record in fields for cell in record),
        "status_hist": statistics.counts(table[STATUS]),
        "runtime_s": statistics.describe(run),
        "lognormal_runtime": statistics.lognormal(run),
        "requested_time_s": statistics.describe(limit),
        "alloc_procs_hist_top": dict(sorted(sizes.items(), key=lambda size: -size[1])[:TOP]),
        "alloc_procs": statistics.describe(procs),
        "wait_s": statistics.describe(known[WAIT]),
        "proc_hours_valid": statistics.rounded((run * procs)[valid].sum() / HOUR_S),
        "submit_min": statistics.rounded(np.nanmin(submit)) if np.isfinite(submit).any() else None,
        "submit_max": statistics.rounded(np.nanmax(submit)) if np.isfinite(submit).any() else None,
        "sorted_by_submit": statistics.is_sorted(submit),
        "interarrival": statistics.interarrival(submit),
        "runtime_exceeds_request": int((run > limit).sum()),
        "definitions": DEFINITIONS,
    }


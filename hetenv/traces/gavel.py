"""Gavel's job lists (Narayanan et al., OSDI 2020): tab-separated, no header, two generations told apart by their cells.

Seven cells: job_type, command, num_steps_arg, needs_data_dir, total_steps, arrival_time, scale_factor. Ten cells (after
November 2020): job_type, command, working_directory, num_steps_arg, needs_data_dir, total_steps, scale_factor,
priority_weight, SLO, arrival_time. Arrivals are seconds from the trace's start, scale_factor is GPUs, total_steps is
work: there is no run time, a scenario's classes say how fast a job type runs. Further cells are ignored.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.errors import TraceError
from hetenv.traces import csv_file, statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.job_file import JobFile, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.trace import Trace

OLD: Final = ("job_type", "command", "num_steps_arg", "needs_data_dir", "total_steps", "arrival_time", "scale_factor")
NEW: Final = (
    "job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor",
    "priority_weight", "SLO", "arrival_time",
)  # fmt: skip
NUMERIC_NEW: Final = (5, 6, 7, 8, 9)
UNITS: Final = {"arrival_time": "s", "total_steps": "steps", "scale_factor": "GPUs"}


def load(path: Path) -> Trace:
    """The trace of a file, or of all .trace files of a folder together.

    Raises:
        TraceError: nothing there, unreadable, or no usable row.
    """
    files = [_read(file) for file in files_of(path, lambda name: name.endswith(".trace"), ".trace file")]
    return trace_of("gavel", path, files, "seconds since the trace's start", UNITS)


def _read(path: Path) -> JobFile:
    records = [line.rstrip("\r\t ").split("\t") for line in csv_file.text(path).split("\n")]
    rows = [(n, [cell.strip() for cell in record]) for n, record in enumerate(records, 1) if any(record)]
    header = _generation([record for _, record in rows])
    kept = [(n, record) for n, record in rows if len(record) >= len(header)]
    if rows and not kept:
        raise TraceError(f"{path}: no line has the {len(header)} tab-separated cells {', '.join(header)}")
    cells = {name: [record[k] for _, record in kept] for k, name in enumerate(header)}
    table = CsvFile(header, cells, np.array([n for n, _ in kept], np.int64), 0)
    found = JobFile(path, table.lines, len(rows) - len(kept))
    found.dropped.clear()
    found.dropped[f"fewer than {len(header)} cells"] = len(rows) - len(kept)
    found.noted["lines with further cells, ignored"] = sum(len(record) > len(header) for _, record in kept)
    steps = table.number("total_steps")
    found.submitted(table.number("arrival_time"), "arrival_time")
    found.asks(table.number("scale_factor"), "scale_factor")
    found.drop(~np.isfinite(steps), "total_steps missing or no number")
    found.drop(steps < 0, "total_steps negative")
    found.columns["steps"] = steps
    found.clip()
    if header is NEW:
        weight = table.number("priority_weight")
        found.repair(~(weight > 0), "priority_weight not above 0: taken as 1")
        found.columns["weight"] = np.where(weight > 0, weight, 1.0)
    found.labels["kind"] = table.text("job_type")
    found.statistics = _statistics(table, [record for _, record in rows])
    return found


def _generation(records: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The cells' names, from the first line that is as long as the new generation's and has numbers where it has them."""
    for record in records:
        if len(record) >= len(NEW):
            return NEW if np.isfinite(csv_file.numbers([record[k] for k in NUMERIC_NEW])).all() else OLD
    return OLD


def _statistics(table: CsvFile, records: Sequence[Sequence[str]]) -> dict[str, Any]:
    arrival, steps = table.number("arrival_time"), table.number("total_steps")
    return {
        "rows": table.lines.size,
        "columns_per_row": statistics.counts(np.array([len(record) for record in records])),
        "column_order": list(table.columns),
        "first_row": list(records[0]) if records else [],
        "job_types": statistics.counts(table.text("job_type")),
        "scale_factor_hist": statistics.counts(table.number("scale_factor")),
        "total_steps": statistics.describe(steps),
        "n_zero_steps": int((steps == 0).sum()),
        "n_negative_steps": int((steps < 0).sum()),
        "arrival": statistics.describe(arrival),
        "sorted": statistics.is_sorted(arrival),
        "interarrival": statistics.interarrival(arrival),
    }

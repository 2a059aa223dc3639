"""Submission lists of Pollux and Sia (OSDI 2021, SOSP 2023): `name,time,application,num_replicas,batch_size`.

Times are seconds from the list's start, num_replicas is GPUs. There is no run time and no work: both follow from the
application, which a scenario's classes describe.
"""

from pathlib import Path
from typing import Any, Final

from hetenv.traces import csv_file, statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.job_file import JobFile, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.trace import Trace

REQUIRED: Final = ("time", "application", "num_replicas")
COLUMNS: Final = ("name", *REQUIRED, "batch_size")
UNITS: Final = {"time": "s", "num_replicas": "GPUs", "batch_size": "samples"}


def load(path: Path) -> Trace:
    """The trace of a file, or of all .csv files of a folder together.

    Raises:
        TraceError: nothing there, unreadable, a column missing, or no usable row.
    """
    files = [_read(file) for file in files_of(path, lambda name: name.endswith(".csv"), ".csv file")]
    return trace_of("sia", path, files, "seconds since the list's start", UNITS)


def _read(path: Path) -> JobFile:
    table = csv_file.read(path, REQUIRED)
    found = JobFile.of(path, table, COLUMNS)
    found.submitted(table.number("time"), "time")
    found.asks(table.number("num_replicas"), "num_replicas")
    application = table.text("application")
    found.drop(application == "", "application missing: the work is unknown")
    found.clip()
    found.labels["kind"] = application
    found.statistics = _statistics(table)
    return found


def _statistics(table: CsvFile) -> dict[str, Any]:
    time_s = table.number("time")
    return {
        "rows": table.lines.size,
        "columns": list(table.columns),
        "apps": statistics.counts(table.text("application")),
        "num_replicas_hist": statistics.counts(table.number("num_replicas")),
        "batch_size_hist": statistics.counts(table.number("batch_size")),
        "time": statistics.describe(time_s),
        "interarrival": statistics.interarrival(time_s),
        "sorted": statistics.is_sorted(table.number("time")),
    }

"""GAIA's job lists (Hanafy et al., ASPLOS 2024): `arrival_time,length,cpus`, in seconds or in hours, which no file states.

GAIA removed the jobs of less than five minutes. So a file whose shortest length is below 300 is in hours (in seconds
it could hold no such job), and any other is in seconds (in hours all its jobs would be longer than 12 days). The unit
that was found stands in the report. A CPU counts as one GPU.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.errors import TraceError
from hetenv.traces import csv_file, statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.job_file import JobFile, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.trace import Trace
from hetenv.units import HOUR_S

COLUMNS: Final = ("arrival_time", "length", "cpus")
SHORTEST_S: Final = 300.0


def load(path: Path) -> Trace:
    """The trace of a file, or of all .csv files of a folder together; each file's unit is found by itself.

    Raises:
        TraceError: nothing there, unreadable, a column missing, files of unlike units, or no usable row.
    """
    found = [_read(file) for file in files_of(path, lambda name: name.endswith(".csv"), ".csv file")]
    units = {file.statistics["units"] for file in found}
    if len(units) > 1:
        raise TraceError(f"{path}: files in seconds and in hours; give them one by one")
    (unit,) = units
    names = {"arrival_time": unit, "length": unit, "cpus": "CPUs, read as GPUs"}
    return trace_of("gaia", path, found, f"{unit} since the trace's start (unit found from the shortest length)", names)


def _read(path: Path) -> JobFile:
    table = csv_file.read(path, COLUMNS)
    length = table.number("length")
    in_hours = bool((length[length > 0] < SHORTEST_S).any())
    unit_s = HOUR_S if in_hours else 1.0
    found = JobFile.of(path, table, COLUMNS)
    found.submitted(table.number("arrival_time") * unit_s, "arrival_time")
    found.asks(table.number("cpus"), "cpus")
    found.runs(length * unit_s, "length")
    found.statistics = _statistics(table, unit_s)
    return found


def _statistics(table: CsvFile, unit_s: float) -> dict[str, Any]:
    arrival_s, length_s, cpus = table.number("arrival_time") * unit_s, table.number("length") * unit_s, table.number("cpus")
    return {
        "rows": table.lines.size,
        "columns": list(table.columns),
        "units": "seconds" if unit_s == 1.0 else "hours",
        "arrival": statistics.describe(arrival_s),
        "length_s": statistics.describe(length_s),
        "cpus_hist": statistics.counts(cpus),
        "total_cpu_hours": statistics.rounded(np.nansum(length_s * cpus) / HOUR_S),
        "interarrival": statistics.interarrival(arrival_s),
    }

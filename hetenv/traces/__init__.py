"""Trace formats, one file each. A format module has `load(path) -> Trace`.

A new one is its file and one line in TRACE_FORMATS. pandas is imported when a trace is read, not before.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from hetenv.cluster import Cluster
from hetenv.errors import TraceError, unknown
from hetenv.traces import philly_csv
from hetenv.traces.paths import resolve
from hetenv.traces.trace import TRACE_ROW, LoadReport, Trace


class TraceFormat(Protocol):
    """A module that reads one format."""

    def load(self, path: Path) -> Trace:
        """The trace of a file, or of all files of the format in a folder. Raises TraceError."""


TRACE_FORMATS: Final[dict[str, TraceFormat]] = {"philly_csv": philly_csv}
"""Name in a scenario's `workload.format` -> module."""


def trace_format(name: str) -> TraceFormat:
    """The format of that name; TraceError lists the known ones."""
    if name not in TRACE_FORMATS:
        raise TraceError(unknown("trace format", name, TRACE_FORMATS))
    return TRACE_FORMATS[name]


def show(paths: Sequence[str | Path], format: str, cluster: Cluster | None = None) -> dict[str, Any]:
    """Load report and statistics of traces, as plain data.

    Returns:
        {"report", "statistics"}: of the trace where there is one path, else by file name.
    """
    reader = trace_format(format)
    traces = {Path(path).name: reader.load(Path(path)) for path in paths}
    if not traces:
        raise TraceError("no path given; name a trace file or a folder with trace files")
    reports = {name: (t.report if cluster is None else t.against(cluster)).as_dict() for name, t in traces.items()}
    statistics = {name: trace.statistics for name, trace in traces.items()}
    if len(traces) == 1:
        (report,), (numbers,) = reports.values(), statistics.values()
        return {"report": report, "statistics": numbers}
    return {"report": reports, "statistics": statistics}


__all__ = ["TRACE_FORMATS", "TRACE_ROW", "LoadReport", "Trace", "TraceFormat", "resolve", "show", "trace_format"]

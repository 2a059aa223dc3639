"""Trace formats, one file each. A format module has `load(path) -> Trace` (jobs) or `-> CapacityTrace` (nodes).

A new one is its file and one line in TRACE_FORMATS or CAPACITY_FORMATS. pandas is imported when a trace is read, not before.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from hetenv.cluster import Cluster
from hetenv.errors import TraceError, unknown
from hetenv.traces import (
    acme,
    azure_llm,
    bamboo,
    dlrm2025,
    gaia,
    gavel,
    helios,
    muri,
    openb2023,
    pai2020,
    philly,
    philly_csv,
    rubick,
    sacct,
    sia,
    skypilot_spot,
    spot2026,
    swf,
    tiresias,
)
from hetenv.traces.capacity import STAY, CapacityTrace
from hetenv.traces.energy import aemo, eia_mix, electricitymaps, electricitymaps_wide, epw, prices, vessim, watttime_mci
from hetenv.traces.nodes import CountSeries, NodePool, NodeTable, SideTable
from hetenv.traces.paths import resolve
from hetenv.traces.series import Series, SeriesFile
from hetenv.traces.trace import TRACE_ROW, LoadReport, Outcome, Trace


class TraceFormat(Protocol):
    """A module that reads one format."""

    def load(self, path: Path) -> Trace | SideTable:
        """The trace of a file, or of all files of the format in a folder; a SideTable where they hold no jobs. Raises TraceError."""


TRACE_FORMATS: Final[dict[str, TraceFormat]] = {
    "acme": acme,
    "azure_llm": azure_llm,
    "dlrm2025": dlrm2025,
    "gaia": gaia,
    "gavel": gavel,
    "helios": helios,
    "muri": muri,
    "openb2023": openb2023,
    "pai2020": pai2020,
    "philly": philly,
    "philly_csv": philly_csv,
    "rubick": rubick,
    "sacct": sacct,
    "sia": sia,
    "spot2026": spot2026,
    "swf": swf,
    "tiresias": tiresias,
}
"""Name in a scenario's `workload.format` -> module."""


class CapacityFormat(Protocol):
    """A module that reads one format of capacity traces."""

    def load(self, path: Path) -> CapacityTrace:
        """The trace of one file. Raises TraceError."""


CAPACITY_FORMATS: Final[dict[str, CapacityFormat]] = {"bamboo": bamboo, "skypilot_spot": skypilot_spot}
"""Name in the `format` of a `capacity_replay` -> module."""


class SeriesFormat(Protocol):
    """A module that reads one format of signal files."""

    def load(self, path: Path, zone: str | None = None) -> SeriesFile:
        """The series of a file (of some formats also of a folder); `zone` is that of naive stamps. Raises TraceError."""


SERIES_FORMATS: Final[dict[str, SeriesFormat]] = {
    "aemo": aemo,
    "eia_mix": eia_mix,
    "electricitymaps": electricitymaps,
    "electricitymaps_wide": electricitymaps_wide,
    "epw": epw,
    "prices": prices,
    "vessim": vessim,
    "watttime_mci": watttime_mci,
}
"""Name in the `format` of a cause `series` -> module."""


def trace_format(name: str) -> TraceFormat:
    """The format of that name; TraceError lists the known ones."""
    if name not in TRACE_FORMATS:
        raise TraceError(unknown("trace format", name, TRACE_FORMATS))
    return TRACE_FORMATS[name]


def load_jobs(format: str, path: Path) -> Trace:
    """The jobs of a file or folder; TraceError where it holds none."""
    found = trace_format(format).load(path)
    if not isinstance(found, Trace):
        raise TraceError(f"{path}: holds no jobs ({', '.join(found.report.files)}); name a job table of format {format}")
    return found


def capacity_format(name: str) -> CapacityFormat:
    """The capacity format of that name; TraceError lists the known ones."""
    if name not in CAPACITY_FORMATS:
        raise TraceError(unknown("capacity format", name, CAPACITY_FORMATS))
    return CAPACITY_FORMATS[name]


def series_format(name: str) -> SeriesFormat:
    """The signal format of that name; TraceError lists the known ones."""
    if name not in SERIES_FORMATS:
        raise TraceError(unknown("signal format", name, SERIES_FORMATS))
    return SERIES_FORMATS[name]


def show(
    paths: Sequence[str | Path], format: str, cluster: Cluster | None = None, zone: str | None = None
) -> dict[str, Any]:
    """Load report and statistics of traces, as plain data.

    Args:
        zone: of a signal file's naive stamps.

    Returns:
        {"report", "statistics"}: of the trace where there is one path, else by file name.
    """
    readers: dict[str, TraceFormat | CapacityFormat | SeriesFormat] = {**TRACE_FORMATS, **CAPACITY_FORMATS, **SERIES_FORMATS}
    if format not in readers:
        raise TraceError(unknown("trace format", format, readers))
    reader = readers[format]
    if zone is not None and format not in SERIES_FORMATS:
        raise TraceError(f"zone {zone!r}: only signal formats take one ({', '.join(SERIES_FORMATS)})")
    options = {} if zone is None else {"zone": zone}
    traces = {Path(path).name: reader.load(Path(path), **options) for path in paths}
    if not traces:
        raise TraceError("no path given; name a trace file or a folder with trace files")
    reports = {name: (t.report if cluster is None else t.against(cluster)).as_dict() for name, t in traces.items()}
    statistics = {name: trace.statistics for name, trace in traces.items()}
    if len(traces) == 1:
        (report,), (numbers,) = reports.values(), statistics.values()
        return {"report": report, "statistics": numbers}
    return {"report": reports, "statistics": statistics}


__all__ = [
    "CAPACITY_FORMATS",
    "SERIES_FORMATS",
    "STAY",
    "TRACE_FORMATS",
    "TRACE_ROW",
    "CapacityFormat",
    "CapacityTrace",
    "CountSeries",
    "LoadReport",
    "NodePool",
    "NodeTable",
    "Outcome",
    "Series",
    "SeriesFile",
    "SeriesFormat",
    "SideTable",
    "Trace",
    "TraceFormat",
    "capacity_format",
    "load_jobs",
    "resolve",
    "series_format",
    "show",
    "trace_format",
]

"""What a loaded trace is, whatever its format: rows in SI units, a report of the load, statistics."""

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hetenv.cluster import Cluster
from hetenv.units import DAY_S, HOUR_S

TRACE_ROW: Final = np.dtype(
    [
        ("submit_s", "f8"),  # since the trace's origin
        ("duration_s", "f8"),  # run time on the trace's own GPUs, >= 0
        ("gpus", "i4"),  # > 0, whole
        ("group", "i4"),  # index into Trace.groups
        ("line", "i4"),  # line in the file, for reports
    ],
    align=True,
)

LISTED_ROWS: Final = 20
"""Rejected rows that a report lists by line."""
UNTYPED: Final = "any"
"""GPU type of rows whose format names none."""


@dataclass(frozen=True)
class LoadReport:
    """What became of the rows of a file. Reasons are plain sentences; counts are rows."""

    format: str
    files: tuple[str, ...]
    time_base: str
    units: dict[str, str]
    rows_read: int
    rows_kept: int
    repaired: dict[str, int]
    dropped: dict[str, int]
    noted: dict[str, int]
    """Oddities that were left as they are."""
    first: str
    last: str
    gpu_hours: dict[str, float]
    """Asked, by GPU type."""
    capacity_gpu_hours: dict[str, float] = field(default_factory=dict)
    """GPUs of the given cluster x the trace's span, by GPU type; empty without a cluster."""
    offered_load: dict[str, float] = field(default_factory=dict)
    """Asked over capacity, by GPU type; empty without a cluster."""
    overloaded: tuple[str, ...] = ()
    """GPU types with an offered load above 1."""
    rejected: dict[str, int] = field(default_factory=dict)
    """Rows that fit nowhere in the given cluster."""
    rejected_lines: tuple[int, ...] = ()
    """Their first lines in the file."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Trace:
    """A loaded trace; `rows` are sorted by submit time and read-only. Equal only to itself."""

    rows: NDArray[np.void]
    origin: np.datetime64
    """Midnight that begins the first day; submit times count from here."""
    groups: tuple[str, ...]
    """Virtual clusters, queues or users."""
    report: LoadReport
    statistics: dict[str, Any]
    """Under the names that the format's published statistics use."""

    @cached_property
    def days(self) -> tuple[np.datetime64, ...]:
        """Dates on which at least one job was submitted."""
        numbers = np.unique((self.rows["submit_s"] // DAY_S).astype(np.int64))
        return tuple(self.origin.astype("datetime64[D]") + numbers)

    def against(self, cluster: Cluster) -> LoadReport:
        """The report with offered load and what fits nowhere, against a cluster's nominal capacity."""
        span_h = max(float(np.ptp(self.rows["submit_s"])), 1.0) / HOUR_S
        capacity = dict.fromkeys(self.report.gpu_hours, cluster.n_gpus * span_h)
        load = {kind: asked / capacity[kind] for kind, asked in self.report.gpu_hours.items()}
        largest = int((cluster.pool_nodes * cluster.gpus_per_node).max())
        too_big = self.rows["gpus"] > largest
        return replace(
            self.report,
            capacity_gpu_hours=capacity,
            offered_load=load,
            overloaded=tuple(kind for kind, value in load.items() if value > 1.0),
            rejected={f"more GPUs than the largest pool has ({largest})": int(too_big.sum())} if too_big.any() else {},
            rejected_lines=tuple(int(line) for line in self.rows["line"][too_big][:LISTED_ROWS]),
        )

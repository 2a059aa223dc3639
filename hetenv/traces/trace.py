"""What a loaded trace is, whatever its format: rows in SI units, a report of the load, statistics."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import IntEnum
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
        ("wait_s", "f8"),  # recorded, >= 0; NaN where the trace states none
        ("limit_s", "f8"),  # run time that the user declared, > 0; NaN where none
        ("steps", "f8"),  # work in the format's own unit, >= 0; NaN where none
        ("weight", "f8"),  # > 0; 1 where none
        ("kind", "i4"),  # index into Trace.kinds
        ("gpu_type", "i4"),  # index into Trace.gpu_types
        ("plan", "i4"),  # index into Trace.plans
        ("outcome", "i1"),  # Outcome
    ],
    align=True,
)
"""`duration_s` is NaN for formats that state work only (Gavel, Sia, Azure's requests)."""


def trace_rows(n: int) -> NDArray[np.void]:
    """n rows that state nothing: no wait, limit or steps (NaN), weight 1."""
    rows = np.zeros(n, TRACE_ROW)
    rows["wait_s"] = rows["limit_s"] = rows["steps"] = np.nan
    rows["weight"] = 1.0
    return rows


class Outcome(IntEnum):
    """How the recorded job ended; the duration is the time that it ran, whatever the outcome."""

    UNKNOWN = 0
    COMPLETED = 1
    FAILED = 2
    CANCELLED = 3
    RUNNING = 4
    """Still running when the record ends: the duration is cut there."""
    TIMEOUT = 5


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
    gpus: dict[str, int] = field(default_factory=dict)
    """Of a node table, by GPU type."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Trace:
    """A loaded trace; `rows` are sorted by submit time and read-only. Equal only to itself."""

    rows: NDArray[np.void]
    origin: np.datetime64
    """Midnight that begins the first day; submit times count from here. NaT where the trace's times are relative."""
    groups: tuple[str, ...]
    """Virtual clusters, queues or users."""
    report: LoadReport
    statistics: dict[str, Any]
    """Under the names that the format's published statistics use."""
    kinds: tuple[str, ...] = ("",)
    """Models or applications."""
    gpu_types: tuple[str, ...] = (UNTYPED,)
    """Types asked for; `A|B`: either."""
    plans: tuple[str, ...] = ("",)
    """Parallel plans."""

    @cached_property
    def days(self) -> tuple[np.datetime64, ...]:
        """Dates on which at least one job was submitted; none where times are relative."""
        numbers = np.unique((self.rows["submit_s"] // DAY_S).astype(np.int64))
        return () if np.isnat(self.origin) else tuple(self.origin.astype("datetime64[D]") + numbers)

    @cached_property
    def span_s(self) -> float:
        """From the first submit to the last; to the last end where all were submitted at once. At least 1 s."""
        submit_s = self.rows["submit_s"]
        span_s = float(np.ptp(submit_s)) or float((submit_s - submit_s[0] + np.nan_to_num(self.rows["duration_s"])).max())
        return max(span_s, 1.0)

    def against(self, cluster: Cluster) -> LoadReport:
        """The report with offered load and what fits nowhere, against a cluster's nominal capacity.

        A GPU type of the trace is held against the pools of that name or accelerator; where there are none, as for rows
        that name no type, against all GPUs.
        """
        gpus = dict.fromkeys(cluster.pool_names, 0)
        aliases: dict[str, list[str]] = {}
        for name, config, n in zip(cluster.pool_names, cluster.pool_configs, cluster.pool_nodes * cluster.gpus_per_node):
            gpus[name] = int(n)
            aliases.setdefault(config.accelerator, []).append(name)
        by_type = {alias: sum(gpus[name] for name in names) for alias, names in aliases.items()} | gpus
        report = offered(self.report, self.span_s, by_type, cluster.n_gpus)
        largest = int((cluster.pool_nodes * cluster.gpus_per_node).max())
        too_big = self.rows["gpus"] > largest
        return replace(
            report,
            rejected={f"more GPUs than the largest pool has ({largest})": int(too_big.sum())} if too_big.any() else {},
            rejected_lines=tuple(int(line) for line in self.rows["line"][too_big][:LISTED_ROWS]),
        )


def offered(report: LoadReport, span_s: float, gpus_by_type: Mapping[str, int], n_gpus: int) -> LoadReport:
    """A report with capacity and offered load. Rows of types with no GPU at all are held against all `n_gpus`."""
    types = {kind: sum(gpus_by_type.get(name, 0) for name in set(kind.split("|"))) for kind in report.gpu_hours}
    capacity = {kind: (found or n_gpus) * span_s / HOUR_S for kind, found in types.items()}
    load = {kind: asked / capacity[kind] for kind, asked in report.gpu_hours.items() if capacity[kind]}
    unknown = sum(kind != UNTYPED and not found for kind, found in types.items())
    noted = {"GPU types without a pool of that name, held against all GPUs": unknown} if unknown else {}
    return replace(
        report,
        noted={**report.noted, **noted},
        capacity_gpu_hours=capacity,
        offered_load=load,
        overloaded=tuple(kind for kind, value in load.items() if value > 1.0),
    )

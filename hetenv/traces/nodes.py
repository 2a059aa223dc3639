"""Tables that stand beside jobs: nodes by GPU type and size, counts over time; each with a report and statistics."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetenv.cluster import Cluster
from hetenv.errors import TraceError
from hetenv.traces.trace import LoadReport


@dataclass(frozen=True)
class NodePool:
    """Equal nodes."""

    gpu_type: str
    nodes: int
    gpus_per_node: int


@dataclass(frozen=True, eq=False)
class SideTable:
    """A table that holds no jobs."""

    report: LoadReport
    statistics: dict[str, Any]
    """Under the names that the format's published statistics use."""

    def against(self, cluster: Cluster) -> LoadReport:
        """The report; such a table asks for nothing."""
        return self.report


@dataclass(frozen=True, eq=False)
class NodeTable(SideTable):
    """A cluster as recorded; nodes without a GPU are counted in the report and belong to no pool."""

    pools: tuple[NodePool, ...]
    """By GPU type, then size."""


@dataclass(frozen=True, eq=False)
class CountSeries(SideTable):
    """Counts over time, one row a step."""

    when: NDArray[np.datetime64]
    """[R] starts of the steps, naive local time of the site."""
    columns: dict[str, NDArray[np.float64]]
    """Name -> [R]."""


def together(tables: Sequence[SideTable]) -> SideTable:
    """The tables of one folder: rows summed, statistics by file name."""
    if len(tables) == 1:
        return tables[0]
    reports = [table.report for table in tables]
    gpus = sum((Counter(report.gpus) for report in reports), Counter[str]())
    report = replace(
        reports[0],
        files=tuple(name for report in reports for name in report.files),
        rows_read=sum(report.rows_read for report in reports),
        rows_kept=sum(report.rows_kept for report in reports),
        dropped=dict(sum((Counter(report.dropped) for report in reports), Counter[str]())),
        noted=dict(sum((Counter(report.noted) for report in reports), Counter[str]())),
        units={name: unit for report in reports for name, unit in report.units.items()},
        gpus=dict(gpus),
    )
    return SideTable(report, {table.report.files[0]: table.statistics for table in tables})


def node_table(
    format: str, path: Path, gpu_types: Sequence[str], gpus: NDArray[np.float64], statistics: dict[str, Any], units: Mapping[str, str]
) -> NodeTable:
    """Pools of equal nodes.

    Args:
        gpu_types: [R].
        gpus: [R] of each node; NaN, negative or fractional: dropped and counted.

    Raises:
        TraceError: no usable row.
    """
    usable = np.isfinite(gpus) & (gpus >= 0) & (gpus == np.floor(gpus))
    if not usable.any():
        raise TraceError(f"{path}: no node among {gpus.size} rows")
    kept = [(kind, int(n)) for kind, n, good in zip(gpu_types, gpus, usable) if good]
    pools = Counter(pair for pair in kept if pair[1])
    gpus_by_type = Counter[str]()
    for (kind, size), n in pools.items():
        gpus_by_type[kind] += size * n
    n_empty = sum(not size for _, size in kept)
    bad = int((~usable).sum())
    report = LoadReport(
        format=format,
        files=(path.name,),
        time_base="none: a node table",
        units=dict(units),
        rows_read=gpus.size,
        rows_kept=len(kept),
        repaired={},
        dropped={"GPUs of the node: no whole number": bad} if bad else {},
        noted={"nodes without a GPU: in no pool": n_empty} if n_empty else {},
        first="",
        last="",
        gpu_hours={},
        gpus=dict(sorted(gpus_by_type.items())),
    )
    return NodeTable(report, statistics, tuple(NodePool(kind, n, size) for (kind, size), n in sorted(pools.items())))


def by_type(gpu_types: NDArray[np.str_], gpus: NDArray[np.float64]) -> tuple[dict[str, int], dict[str, int]]:
    """Nodes and GPUs of each type, types of no GPU too."""
    names, which = np.unique(gpu_types, return_inverse=True)
    nodes, sums = np.bincount(which), np.bincount(which, np.nan_to_num(gpus))
    return {str(name): int(n) for name, n in zip(names, nodes)}, {str(name): int(n) for name, n in zip(names, sums)}

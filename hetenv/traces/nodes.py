"""What a loaded node table is: nodes by GPU type and size, a report, statistics."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
class NodeTable:
    """A cluster as recorded; nodes without a GPU are counted in the report and belong to no pool."""

    pools: tuple[NodePool, ...]
    """By GPU type, then size."""
    report: LoadReport
    statistics: dict[str, Any]
    """Under the names that the format's published statistics use."""

    def against(self, cluster: Cluster) -> LoadReport:
        """The report; a node table asks for nothing."""
        return self.report


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
    by_type = Counter[str]()
    for (kind, size), n in pools.items():
        by_type[kind] += size * n
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
        gpus=dict(sorted(by_type.items())),
    )
    return NodeTable(tuple(NodePool(kind, n, size) for (kind, size), n in sorted(pools.items())), report, statistics)

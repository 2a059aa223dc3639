"""What a loaded capacity trace is, whatever its format: who was there from when to when, a report, statistics."""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hetenv.cluster import Cluster
from hetenv.traces.trace import LoadReport

STAY: Final = np.dtype(
    [
        ("place", "i4"),  # which of the `n_places` nodes of a pool, from 0
        ("from_s", "f8"),  # s since the trace's start, >= 0
        ("to_s", "f8"),  # > from_s; inf where the node never left
    ],
    align=True,
)


@dataclass(frozen=True, eq=False)
class CapacityTrace:
    """Nodes that come and go. Stays of one place do not overlap; rows are by (from_s, place) and read-only."""

    stays: NDArray[np.void]
    """[R] STAY."""
    n_places: int
    """Most nodes at any time."""
    span_s: float
    """Length of the record, > 0; what comes after is not known."""
    report: LoadReport
    statistics: dict[str, Any]
    """Under the names that the format's published statistics use."""

    def against(self, cluster: Cluster) -> LoadReport:
        """The report, with a note if no pool of the cluster has a node for each place."""
        largest = int(cluster.pool_nodes.max())
        if self.n_places <= largest:
            return self.report
        note = {f"places beyond the nodes of the largest pool ({largest})": self.n_places - largest}
        return replace(self.report, noted={**self.report.noted, **note})


def stays_of_counts(at_s: NDArray[np.float64], counts: ArrayLike) -> NDArray[np.void]:
    """Stays of nodes of which only the number is known: place k is taken while more than k are there.

    So the node that came last leaves first, and stays are the longest that the numbers allow.

    Args:
        at_s: [R] ascending strictly.
        counts: [R] nodes from at_s[i] on, >= 0.
    """
    numbers = np.asarray(counts, np.int64)
    found = []
    for place in range(int(numbers.max(initial=0))):
        there = np.concatenate([[False], numbers > place, [False]])
        from_s = at_s[np.flatnonzero(~there[:-2] & there[1:-1])]
        ends = np.append(at_s, np.inf)
        to_s = ends[np.flatnonzero(there[1:-1] & ~there[2:]) + 1]
        rows = np.zeros(from_s.size, STAY)
        rows["place"], rows["from_s"], rows["to_s"] = place, from_s, to_s
        found.append(rows)
    return ordered(np.concatenate(found) if found else np.zeros(0, STAY))


def ordered(stays: NDArray[np.void]) -> NDArray[np.void]:
    """Stays by (from_s, place), read-only."""
    result = stays[np.lexsort((stays["place"], stays["from_s"]))]
    result.flags.writeable = False
    return result

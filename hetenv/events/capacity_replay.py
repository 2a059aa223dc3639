"""Replay of recorded capacity: a trace of nodes that come and go, laid onto the nodes of a pool."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from hetenv.errors import ScenarioError, TraceError, unknown
from hetenv.events.cause import Cause
from hetenv.events.spells import away
from hetenv.events.stream import EventContext
from hetenv.traces import CAPACITY_FORMATS, CapacityTrace, capacity_format, resolve
from hetenv.units import HOUR_S

SWAP_S: Final = 1.0
"""Absence of a node whose place is taken over at the very time it leaves: what ran on it is lost all the same."""


def _known_format(name: str) -> str:
    if name not in CAPACITY_FORMATS:
        raise ValueError(unknown("capacity format", name, CAPACITY_FORMATS))
    return name


class CapacityReplay(Cause):
    """A pool has the nodes that a trace had at that time.

    `map: nodes`: place k of the trace is node k of the pool; nodes beyond the trace's places are never there. `map:
    share`: the places are spread over all nodes of the pool, so that the same share of it is there. Time 0 lies
    `start_h` into the trace, or anywhere (`start_h: seeded`). After the trace's end the last state stays (`hold`), the
    trace begins again (`wrap`), or a longer horizon is refused (`raise`). Effect: NODE_DOWN, value = seconds until the
    node is back (inf: never). Sources: Wu et al., NSDI 2024; Thorpe et al., NSDI 2023.
    """

    kind: Literal["capacity_replay"] = "capacity_replay"
    format: Annotated[str, AfterValidator(_known_format)]
    path: str = Field(description="`shared:` and a path in the shared data folder, or a path in the scenario's folder")
    pool: str
    map: Literal["nodes", "share"] = "nodes"
    start_h: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | Literal["seeded"] = 0.0
    end: Literal["hold", "wrap", "raise"] = "hold"
    notice_s: float = Field(default=0.0, ge=0.0, allow_inf_nan=False, description="NODE_NOTICE before a node leaves")

    def load(self, folder: Path | None) -> CapacityTrace:
        """The trace, read once per file and process. Raises TraceError."""
        try:
            path = resolve(self.path, folder)
        except TraceError as error:
            raise TraceError(f"events.{self.source_name}.path: {error}") from None
        return _load(self.format, path, path.stat().st_mtime_ns)

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """Rows of the pool's nodes, node by node."""
        cluster = context.cluster
        first = int(cluster.pool_first_node[self.pool_of(cluster, self.pool, "pool")])
        n = int(cluster.pool_nodes[cluster.pool(self.pool)])
        trace = self.load(context.folder)
        if self.map == "nodes" and trace.n_places > n:
            raise ScenarioError(
                f"events.{self.source_name}.pool: {self.pool!r} has {n} nodes, the trace up to {trace.n_places}; "
                f"give it {trace.n_places} nodes, or state `map: share`"
            )
        start_s = self._start_s(rng, trace.span_s, context.horizon_s)
        place_of = np.arange(n) if self.map == "nodes" else np.arange(n) * trace.n_places // n
        found: list[tuple[int, float, float]] = []
        absences = {place: self._absences(trace, int(place), start_s, context.horizon_s) for place in np.unique(place_of)}
        for node, place in enumerate(place_of):
            found.extend((first + node, from_s, to_s) for from_s, to_s in absences[place])
        table = np.array(found, np.float64).reshape(-1, 3)
        return away(table[:, 0].astype(np.int64), table[:, 1], table[:, 2], self.notice_s)

    def _start_s(self, rng: np.random.Generator, span_s: float, horizon_s: float) -> float:
        """Where in the trace time 0 lies, s."""
        if self.start_h == "seeded":
            latest_s = span_s if self.end == "wrap" else max(span_s - horizon_s, 0.0)
            start_s = float(rng.random()) * latest_s
        else:
            start_s = float(self.start_h) * HOUR_S
        if start_s >= span_s:
            raise ScenarioError(
                f"events.{self.source_name}.start_h: {start_s / HOUR_S:g} h lies beyond the trace of {span_s / HOUR_S:g} h"
            )
        if self.end == "raise" and start_s + horizon_s > span_s:
            raise ScenarioError(
                f"events.{self.source_name}.end: the horizon of {horizon_s / HOUR_S:g} h reaches beyond the trace "
                f"({span_s / HOUR_S:g} h from {start_s / HOUR_S:g} h); shorten it, or state `end: hold` or `end: wrap`"
            )
        return start_s

    def _absences(
        self, trace: CapacityTrace, place: int, start_s: float, horizon_s: float
    ) -> list[tuple[float, float]]:
        """Absences of one place that begin before the horizon, s since the episode's start."""
        stays = trace.stays[trace.stays["place"] == place]
        spans = list(zip(stays["from_s"].tolist(), stays["to_s"].tolist()))
        if self.end == "wrap":
            n_laps = int(np.ceil((start_s + horizon_s) / trace.span_s)) + 1
            spans = _laps(spans, trace.span_s, n_laps)
        found = []
        since_s = start_s
        for from_s, to_s in spans:
            if to_s <= start_s:
                continue
            if from_s > since_s:
                found.append((since_s, from_s))
            elif from_s == since_s and from_s > start_s:
                found.append((since_s, from_s + SWAP_S))
            since_s = to_s
        if since_s < np.inf:
            found.append((since_s, np.inf))
        return [(a - start_s, b - start_s) for a, b in found if a - start_s < horizon_s]


def _laps(spans: list[tuple[float, float]], span_s: float, n: int) -> list[tuple[float, float]]:
    """Stays of n repetitions of a trace; one that lasts to the end and one that begins at 0 become one."""
    found: list[tuple[float, float]] = []
    for lap in range(n):
        for from_s, to_s in spans:
            begin_s, end_s = lap * span_s + from_s, lap * span_s + min(to_s, span_s)
            if found and from_s == 0.0 and found[-1][1] == begin_s:
                found[-1] = (found[-1][0], end_s)
            elif begin_s < end_s:
                found.append((begin_s, end_s))
    return found


@lru_cache(maxsize=16)
def _load(format: str, path: Path, modified_ns: int) -> CapacityTrace:
    return capacity_format(format).load(path)

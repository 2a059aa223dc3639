"""Node failures: unequal hazards over nodes, log-normal repair. Correlated domains and detection delay are not here."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from hetenv.cluster import Cluster
from hetenv.errors import ScenarioError, unknown
from hetenv.events.stream import Effect, EventClock, EventContext, rows
from hetenv.units import HOUR_S


class Failures(BaseModel):
    """Nodes fail as Poisson processes of unequal rate and come back after a repair.

    Node n fails at rate exp(spread_sigma x z_n) / mtbf_h per hour, z_n standard normal, drawn anew in each episode: a
    few nodes fail much more often than the median one (the "lemon nodes" of Kokolis et al., arXiv 2410.21680; their
    clusters show 6.5 and 2.3 failures per 1,000 node-days, an mtbf_h of 3,700 to 10,000). On the `wall` clock a node
    ages whether used or not, but not during its repair; on the `busy` clock only while a job holds it, so a policy
    that leaves a node idle spares it. Effect: NODE_DOWN, value = seconds of repair.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["failures"] = "failures"
    name: str | None = Field(default=None, min_length=1, description="source name; default: the kind")
    mtbf_h: float = Field(gt=0.0, allow_inf_nan=False, description="mean time between failures of the median node")
    spread_sigma: float = Field(default=0.8, ge=0.0, le=4.0, description="sigma of ln(hazard) over nodes")
    clock: Literal["wall", "busy"] = "wall"
    repair_median_h: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    repair_sigma: float = Field(default=0.8, ge=0.0, le=4.0, description="sigma of ln(repair time)")
    pools: tuple[str, ...] | None = Field(default=None, min_length=1, description="whose nodes fail; default: all")

    @property
    def source_name(self) -> str:
        return self.name or self.kind

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """NODE_DOWN rows; on the wall clock a Poisson process in up time, each point later by the repairs before it."""
        nodes, horizon_s = self._nodes(context.cluster), context.horizon_s
        hazard_per_s = np.exp(self.spread_sigma * rng.standard_normal(nodes.size)) / (self.mtbf_h * HOUR_S)
        counts = rng.poisson(hazard_per_s * horizon_s)
        owner = np.repeat(np.arange(nodes.size), counts)
        up_s = horizon_s * (1.0 - rng.random(owner.size))  # in (0, horizon_s]
        up_s = up_s[np.lexsort((up_s, owner))]
        repair_s = self.repair_median_h * HOUR_S * np.exp(self.repair_sigma * rng.standard_normal(owner.size))
        if self.clock == "busy":
            return rows(Effect.NODE_DOWN, up_s, nodes[owner], repair_s, EventClock.NODE_BUSY)
        before = np.cumsum(repair_s) - repair_s
        first = np.cumsum(counts) - counts
        at_s = up_s + before - np.repeat(before[first[counts > 0]], counts[counts > 0])
        kept = at_s < horizon_s
        return rows(Effect.NODE_DOWN, at_s[kept], nodes[owner[kept]], repair_s[kept])

    def _nodes(self, cluster: Cluster) -> NDArray[np.int64]:
        """Indices of the nodes that may fail, ascending."""
        if self.pools is None:
            return np.arange(cluster.n_nodes)
        for pool in self.pools:
            if pool not in cluster.pool_names:
                raise ScenarioError(f"events.{self.source_name}.pools: {unknown('pool', pool, cluster.pool_names)}")
        return np.flatnonzero(np.isin(cluster.node_pool, [cluster.pool(pool) for pool in self.pools]))

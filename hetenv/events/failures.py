"""Node failures: unequal hazards, ageing, repair, detection, and domains (rack, switch, power, site) that fail together."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hetenv.cluster import Cluster
from hetenv.events.cause import Part, PublishedCause
from hetenv.events.spells import members
from hetenv.events.stream import Effect, EventClock, EventContext, rows
from hetenv.units import HOUR_S

Floats = NDArray[np.float64]
STALL_SPEED = 1e-9
"""Speed factor of a node that is dead or hangs and is not yet known to: jobs on it keep their GPUs and do no work."""


class Repair(Part):
    """How long a failed node stays away: log-normal, exponential or always the same, by its median."""

    repair: Literal["lognormal", "exponential", "deterministic"] = "lognormal"
    repair_median_h: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    repair_sigma: float = Field(default=0.8, ge=0.0, le=4.0, description="sigma of ln(repair time); lognormal only")

    def repair_s(self, rng: np.random.Generator, n: int) -> Floats:
        """[n] repair times, s, > 0."""
        median_s = self.repair_median_h * HOUR_S
        if self.repair == "lognormal":
            factor: Floats = np.exp(self.repair_sigma * rng.standard_normal(n))
            return median_s * factor
        if self.repair == "exponential":
            mean_s = float(median_s / np.log(2.0))
            return np.maximum(mean_s * rng.standard_exponential(n), 1e-3)
        return np.full(n, median_s, np.float64)


class Domain(Repair):
    """Nodes that fail together: those behind one switch, in one rack, on one feed, of one pool or site.

    All nodes of a domain go down at one time and come back at one time. Wall clock, a Poisson process per domain.
    """

    label: str = Field(min_length=1, description="what the domain is, e.g. rack, switch, power")
    of: Literal["nodes", "pool", "site"] = "nodes"
    nodes: int | None = Field(default=None, gt=0, description="consecutive nodes of a pool in one domain; `of: nodes`")
    mtbf_h: float = Field(gt=0.0, allow_inf_nan=False, description="mean time between failures of one domain")

    @model_validator(mode="after")
    def _sized(self) -> "Domain":
        if (self.nodes is None) == (self.of == "nodes"):
            raise ValueError("nodes: state how many with `of: nodes`, and only there")
        return self

    def members(self, cluster: Cluster, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """[n] number of the domain of each of `nodes`, from 0."""
        pool = cluster.node_pool[nodes].astype(np.int64)
        if self.of == "site":
            key = cluster.pool_site[pool].astype(np.int64)
        elif self.nodes is None:
            key = pool
        else:
            key = pool * (cluster.n_nodes + 1) + (nodes - cluster.pool_first_node[pool]) // self.nodes
        return np.unique(key, return_inverse=True)[1].reshape(-1)


class Detection(Part):
    """How long a failure goes unseen. Until then the node is held: at `slow_factor` if slow, without progress otherwise.

    A failure is a hang with `hang_share`, a fail-slow with `slow_share`, else a crash. Collectives of a dead or hanging
    member wait for a time-out (PyTorch's default for NCCL: 600 s); heartbeats see a crash sooner (MegaScale, Jiang et
    al., NSDI 2024: detection and diagnosis under 10 minutes); fail-slows last from tens of seconds to ten hours
    (Falcon, arXiv 2410.12588).
    """

    crash_s: float = Field(default=60.0, ge=0.0, allow_inf_nan=False)
    hang_share: float = Field(default=0.0, ge=0.0, le=1.0)
    hang_s: float = Field(default=600.0, ge=0.0, allow_inf_nan=False)
    slow_share: float = Field(default=0.0, ge=0.0, le=1.0)
    slow_s: float = Field(default=1800.0, ge=0.0, allow_inf_nan=False)
    slow_factor: float = Field(default=0.5, gt=0.0, le=1.0)

    @model_validator(mode="after")
    def _shares(self) -> "Detection":
        if self.hang_share + self.slow_share > 1.0:
            raise ValueError("hang_share and slow_share together are above 1; the rest are crashes")
        return self

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        """[n] delays, s, and speed factors until then."""
        place = rng.random(n)
        is_hang, is_slow = place < self.hang_share, place >= 1.0 - self.slow_share
        delay_s = np.where(is_slow, self.slow_s, np.where(is_hang, self.hang_s, self.crash_s))
        return delay_s, np.where(is_slow, self.slow_factor, STALL_SPEED)


class Failures(Repair, PublishedCause):
    """Nodes fail as Poisson processes of unequal rate and come back after a repair.

    Node n fails at rate exp(spread_sigma x z_n) / mtbf_h per hour, z_n standard normal, drawn anew in each episode: a
    few nodes fail much more often than the median one (the "lemon nodes" of Kokolis et al., arXiv 2410.21680; their
    clusters show 6.5 and 2.3 failures per 1,000 node-days, an mtbf_h of 3,700 to 10,000). With a `shape` other than 1
    the expected failures of a node grow as ((age + t) / mtbf_h)^shape: infant mortality below 1, wear-out above (the
    power-law process of Crow, 1974; a repair makes nothing new). On the `wall` clock a node ages whether used or not,
    but not from its failure to its repair; on the `busy` clock only while a job holds it, so a policy that leaves a
    node idle spares it. Effects: NODE_DOWN, value = seconds of repair; with `detection` NODE_SPEED before it.
    """

    kind: Literal["failures"] = "failures"
    mtbf_h: float | None = Field(
        default=None, gt=0.0, allow_inf_nan=False, description="mean time between failures of the median node"
    )
    spread_sigma: float = Field(default=0.8, ge=0.0, le=4.0, description="sigma of ln(hazard) over nodes")
    shape: float = Field(default=1.0, ge=0.1, le=5.0, description="below 1: infant mortality")
    age_h: float = Field(default=0.0, ge=0.0, allow_inf_nan=False, description="of all nodes at time 0; with `shape`")
    clock: Literal["wall", "busy"] = "wall"
    detection: Detection | None = None
    domains: tuple[Domain, ...] = ()
    pools: tuple[str, ...] | None = Field(default=None, min_length=1, description="whose nodes fail; default: all")

    @model_validator(mode="after")
    def _consistent(self) -> "Failures":
        if self.mtbf_h is None and not self.domains:
            raise ValueError("mtbf_h: missing; state it, or domains that fail")
        if self.detection is not None and (self.clock != "wall" or self.mtbf_h is None):
            raise ValueError("detection: needs mtbf_h and `clock: wall`")
        return self

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """Rows of single nodes, then of each domain; a further domain moves no row of those before it."""
        nodes = self.nodes_of(context.cluster, self.pools)
        drawn = [] if self.mtbf_h is None else [self._single(rng, nodes, self.mtbf_h * HOUR_S, context.horizon_s)]
        for domain in self.domains:
            drawn.append(_together(rng, domain, domain.members(context.cluster, nodes), nodes, context.horizon_s))
        return np.concatenate(drawn)

    def _single(
        self, rng: np.random.Generator, nodes: NDArray[np.int64], mtbf_s: float, horizon_s: float
    ) -> NDArray[np.void]:
        """On the wall clock a Poisson process in up time, each point later by the outages before it."""
        factor = np.exp(self.spread_sigma * rng.standard_normal(nodes.size))
        if self.shape == 1.0:
            expected = factor / mtbf_s * horizon_s
        else:
            new = (self.age_h * HOUR_S / mtbf_s) ** self.shape
            expected = factor * (((self.age_h * HOUR_S + horizon_s) / mtbf_s) ** self.shape - new)
        counts = rng.poisson(expected)
        owner = np.repeat(np.arange(nodes.size), counts)
        share = 1.0 - rng.random(owner.size)  # in (0, 1]
        if self.shape == 1.0:
            up_s = horizon_s * share
        else:
            power = share * (expected / factor)[owner] + new
            up_s = np.clip(mtbf_s * power ** (1.0 / self.shape) - self.age_h * HOUR_S, 1e-9, horizon_s)
        up_s = up_s[np.lexsort((up_s, owner))]
        repair_s = self.repair_s(rng, owner.size)
        if self.clock == "busy":
            return rows(Effect.NODE_DOWN, up_s, nodes[owner], repair_s, EventClock.NODE_BUSY)
        if self.detection is None:
            at_s = _later(up_s, repair_s, counts)
            kept = at_s < horizon_s
            return rows(Effect.NODE_DOWN, at_s[kept], nodes[owner[kept]], repair_s[kept])
        delay_s, speed = self.detection.draw(rng, owner.size)
        at_s = _later(up_s, delay_s + repair_s, counts)
        return _unseen(at_s, nodes[owner], delay_s, speed, repair_s, horizon_s)


def _later(up_s: Floats, outage_s: Floats, counts: NDArray[np.int64]) -> Floats:
    """Times in up time made wall times: later by the outages before, of the same owner; rows owner by owner."""
    before = np.cumsum(outage_s) - outage_s
    first = np.cumsum(counts) - counts
    found: Floats = up_s + before - np.repeat(before[first[counts > 0]], counts[counts > 0])
    return found


def _unseen(
    at_s: Floats, nodes: NDArray[np.int64], delay_s: Floats, speed: Floats, repair_s: Floats, horizon_s: float
) -> NDArray[np.void]:
    """Rows of failures that are seen after a delay: slow from the failure on, back at full speed and down when seen."""
    seen_s, hidden = at_s + delay_s, delay_s > 0
    begins, ends = hidden & (at_s < horizon_s), hidden & (seen_s < horizon_s)
    down = seen_s < horizon_s
    return np.concatenate(
        [
            rows(Effect.NODE_SPEED, at_s[begins], nodes[begins], speed[begins]),
            rows(Effect.NODE_SPEED, seen_s[ends], nodes[ends], 1.0),
            rows(Effect.NODE_DOWN, seen_s[down], nodes[down], repair_s[down]),
        ]
    )


def _together(
    rng: np.random.Generator, domain: Domain, member: NDArray[np.int64], nodes: NDArray[np.int64], horizon_s: float
) -> NDArray[np.void]:
    """Rows of one kind of domain: `member` is the domain of each of `nodes`."""
    counts = rng.poisson(np.full(int(member.max()) + 1, horizon_s / (domain.mtbf_h * HOUR_S)))
    owner = np.repeat(np.arange(counts.size), counts)
    up_s = horizon_s * (1.0 - rng.random(owner.size))
    up_s = up_s[np.lexsort((up_s, owner))]
    repair_s = domain.repair_s(rng, owner.size)
    at_s = _later(up_s, repair_s, counts)
    kept = np.flatnonzero(at_s < horizon_s)
    event, place = members(owner[kept], member)
    return rows(Effect.NODE_DOWN, at_s[kept][event], nodes[place], repair_s[kept][event])

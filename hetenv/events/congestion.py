"""Congested links: a pool's network has less bandwidth for a while, by others' traffic or by colliding flows."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hetenv.events.cause import Cause, Part
from hetenv.events.spells import off_spells
from hetenv.events.stream import Effect, EventContext, empty_rows, rows
from hetenv.units import HOUR_S

Steps = tuple[NDArray[np.float64], NDArray[np.float64]]


class BusySpells(Part):
    """Others' traffic: exponential times between and within spells, a bandwidth factor drawn uniformly per spell."""

    kind: Literal["spells"] = "spells"
    apart_mean_h: float = Field(gt=0.0, allow_inf_nan=False)
    lasting_mean_h: float = Field(gt=0.0, allow_inf_nan=False)
    lowest: float = Field(default=0.3, gt=0.0, le=1.0)
    highest: float = Field(default=0.9, gt=0.0, le=1.0)

    @model_validator(mode="after")
    def _ordered(self) -> "BusySpells":
        if self.lowest > self.highest:
            raise ValueError(f"lowest {self.lowest} is above highest {self.highest}; swap them")
        return self

    def steps(self, rng: np.random.Generator, horizon_s: float) -> Steps:
        """Times and bandwidth factors from then on."""
        _, from_s, to_s = off_spells(rng, 1, self.apart_mean_h * HOUR_S, self.lasting_mean_h * HOUR_S, horizon_s)
        factor = self.lowest + (self.highest - self.lowest) * rng.random(from_s.size)
        ends = to_s[to_s < horizon_s]
        return np.concatenate([from_s, ends]), np.concatenate([factor, np.ones(ends.size)])


class HashCollisions(Part):
    """Flows hashed onto uplinks (ECMP): the slowest flow shares its uplink with the most others.

    Each of `flows` takes one of `uplinks` at random, anew each time flows are set up (a Poisson process of mean
    `rehash_mean_h`). The factor is the even load over the worst: (flows / uplinks) / largest number of flows on one
    uplink, at most 1. Four flows on four uplinks: no collision with probability 4!/4^4 = 9.4 %, a worst load of 2.13 in
    the mean (vClos, Computer Networks 2025).
    """

    kind: Literal["hash"] = "hash"
    flows: int = Field(default=4, ge=1, le=4096)
    uplinks: int = Field(default=4, ge=1, le=4096)
    rehash_mean_h: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)

    def worst_loads(self, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        """[n] largest number of flows on one uplink."""
        uplink = rng.integers(self.uplinks, size=(n, self.flows)) + np.arange(n)[:, None] * self.uplinks
        loads = np.bincount(uplink.ravel(), minlength=n * self.uplinks).reshape(n, self.uplinks)
        worst: NDArray[np.int64] = loads.max(axis=1)
        return worst

    def steps(self, rng: np.random.Generator, horizon_s: float) -> Steps:
        """Times and bandwidth factors from then on; the first at 0."""
        n_later = int(rng.poisson(horizon_s / (self.rehash_mean_h * HOUR_S)))
        at_s = np.concatenate([[0.0], np.sort(horizon_s * rng.random(n_later))])
        factor = np.minimum(self.flows / self.uplinks / self.worst_loads(rng, at_s.size), 1.0)
        return at_s, factor


class Congestion(Cause):
    """The links of some pools lose bandwidth, each pool on its own. Effect: LINK_BANDWIDTH."""

    kind: Literal["congestion"] = "congestion"
    process: Annotated[BusySpells | HashCollisions, Field(discriminator="kind")]
    level: Literal["intra", "inter"] = Field(default="inter", description="inside nodes, or between nodes")
    pools: tuple[str, ...] | None = Field(default=None, min_length=1, description="default: all")

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """Rows pool by pool."""
        cluster = context.cluster
        drawn = [empty_rows()]
        for name in cluster.pool_names if self.pools is None else self.pools:
            at_s, factor = self.process.steps(rng, context.horizon_s)
            target = 2 * self.pool_of(cluster, name, "pools") + (self.level == "inter")
            drawn.append(rows(Effect.LINK_BANDWIDTH, at_s, target, factor))
        return np.concatenate(drawn)

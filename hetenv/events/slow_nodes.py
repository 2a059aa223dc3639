"""Nodes that are slow for a while: stragglers, co-tenants."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hetenv.events.cause import Cause
from hetenv.events.spells import groups, members, off_spells
from hetenv.events.stream import Effect, EventContext, rows
from hetenv.units import HOUR_S


class SlowNodes(Cause):
    """Nodes are now and then slower, by a factor drawn per spell; exponential times between and within spells.

    Stragglers: fail-slows last from tens of seconds to ten hours and lengthened jobs 1.34 times on a cluster of 10,000
    GPUs (Falcon, arXiv 2410.12588). Co-tenants: the same with short times and mild factors, all nodes of a group
    (sharing a host, a file server) at once. Use two sources with names of their own for both; their factors multiply.
    Effect: NODE_SPEED at both ends of a spell.
    """

    kind: Literal["slow_nodes"] = "slow_nodes"
    apart_mean_h: float = Field(gt=0.0, allow_inf_nan=False, description="mean time between two spells")
    lasting_mean_h: float = Field(gt=0.0, allow_inf_nan=False)
    slowest: float = Field(default=0.5, gt=0.0, le=1.0, description="lower end of the speed factor, uniform")
    fastest: float = Field(default=0.9, gt=0.0, le=1.0, description="upper end")
    group_nodes: float = Field(default=1.0, ge=1.0, description="mean nodes that are slow together")
    pools: tuple[str, ...] | None = Field(default=None, min_length=1, description="default: all")

    @model_validator(mode="after")
    def _ordered(self) -> "SlowNodes":
        if self.slowest > self.fastest:
            raise ValueError(f"slowest {self.slowest} is above fastest {self.fastest}; swap them")
        return self

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """Rows of begins, then of ends within the horizon."""
        nodes, horizon_s = self.nodes_of(context.cluster, self.pools), context.horizon_s
        group = groups(rng, nodes.size, self.group_nodes)
        n_groups = int(group.max()) + 1
        owner, from_s, to_s = off_spells(
            rng, n_groups, self.apart_mean_h * HOUR_S, self.lasting_mean_h * HOUR_S, horizon_s
        )
        factor = self.slowest + (self.fastest - self.slowest) * rng.random(owner.size)
        spell, node = members(owner, group)
        ends = to_s[spell] < horizon_s
        return np.concatenate(
            [
                rows(Effect.NODE_SPEED, from_s[spell], nodes[node], factor[spell]),
                rows(Effect.NODE_SPEED, to_s[spell][ends], nodes[node][ends], 1.0),
            ]
        )

"""Elastic capacity: nodes that are lent to others by calendar or at random, and come back."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hetenv.events.cause import Cause, Part
from hetenv.events.day_windows import DayWindow, Week
from hetenv.events.spells import away, groups, members, off_spells
from hetenv.events.stream import EventContext, empty_rows
from hetenv.units import HOUR_S


class LoanWindow(DayWindow):
    """Hours of the day, on some weekdays, in which the last `nodes` nodes of each pool are lent."""

    nodes: int = Field(gt=0)


class RandomLoans(Part):
    """Groups of nodes are lent and return with exponential times; any node is home home / (home + lent) of the time."""

    home_mean_h: float = Field(gt=0.0, allow_inf_nan=False)
    lent_mean_h: float = Field(gt=0.0, allow_inf_nan=False)
    group_nodes: float = Field(default=1.0, ge=1.0, description="mean nodes that are lent together")


class Lending(Cause):
    """Nodes of some pools are lent to others, by calendar and at random.

    Effects: NODE_DOWN, value = seconds until the node returns, and NODE_NOTICE before it.
    """

    kind: Literal["lending"] = "lending"
    pools: tuple[str, ...] = Field(min_length=1)
    calendar: tuple[LoanWindow, ...] = ()
    random: RandomLoans | None = None
    week: Week = Week()
    notice_s: float = Field(default=600.0, ge=0.0, allow_inf_nan=False, description="before a node is lent")

    @model_validator(mode="after")
    def _lends(self) -> "Lending":
        if not self.calendar and self.random is None:
            raise ValueError("calendar: missing; state windows, or random loans")
        return self

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """Rows of the calendar, then of random loans, pool by pool."""
        drawn = [empty_rows()]
        for pool in self.pools:
            nodes = self.nodes_of(context.cluster, (pool,))
            for window in self.calendar:
                lent = nodes[-window.nodes :]
                spans = np.array(window.spans_s(self.week, context.horizon_s), np.float64).reshape(-1, 2)
                from_s, to_s = np.repeat(spans, lent.size, axis=0).T
                drawn.append(away(np.tile(lent, len(spans)), from_s, to_s, self.notice_s))
            if self.random is not None:
                drawn.append(_loans(rng, self.random, nodes, context.horizon_s, self.notice_s))
        return np.concatenate(drawn)


def _loans(
    rng: np.random.Generator, loans: RandomLoans, nodes: NDArray[np.int64], horizon_s: float, notice_s: float
) -> NDArray[np.void]:
    group = groups(rng, nodes.size, loans.group_nodes)
    n_groups = int(group.max()) + 1
    owner, from_s, to_s = off_spells(rng, n_groups, loans.home_mean_h * HOUR_S, loans.lent_mean_h * HOUR_S, horizon_s)
    event, node = members(owner, group)
    return away(nodes[node], from_s[event], to_s[event], notice_s)

"""Elastic capacity: nodes that are lent to others by calendar or at random, and come back."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hetenv.events.cause import Cause, Part
from hetenv.events.spells import away, groups, members, off_spells
from hetenv.events.stream import EventContext, empty_rows
from hetenv.units import DAY_S, HOUR_S

WEEK_DAYS = 7


class Window(Part):
    """Hours of the day, on some weekdays, in which the last `nodes` nodes of each pool are lent."""

    from_hour: float = Field(ge=0.0, lt=24.0)
    to_hour: float = Field(ge=0.0, le=24.0, description="at or before from_hour: of the next day")
    nodes: int = Field(gt=0)
    weekdays: tuple[int, ...] = Field(default=tuple(range(WEEK_DAYS)), min_length=1, description="0 is Monday")

    @model_validator(mode="after")
    def _weekdays_exist(self) -> "Window":
        wrong = [day for day in self.weekdays if not 0 <= day < WEEK_DAYS]
        if wrong:
            raise ValueError(f"weekdays: {wrong[0]} is none; Monday is 0, Sunday is 6")
        return self

    def spans_s(self, start_weekday: int, start_hour: float, horizon_s: float) -> list[tuple[float, float]]:
        """(from, to) of each time that the window is open before the horizon, s; cut off at 0."""
        length_h = (self.to_hour - self.from_hour) % 24.0 or 24.0
        n_days = int(np.ceil(horizon_s / DAY_S)) + 2
        found = []
        for day in range(-1, n_days):
            from_s = day * DAY_S + (self.from_hour - start_hour) * HOUR_S
            to_s = from_s + length_h * HOUR_S
            if (start_weekday + day) % WEEK_DAYS in self.weekdays and to_s > 0.0 and from_s < horizon_s:
                found.append((max(from_s, 0.0), to_s))
        return found


class RandomLoans(Part):
    """Groups of nodes are lent and return with exponential times; any node is home home / (home + lent) of the time."""

    home_mean_h: float = Field(gt=0.0, allow_inf_nan=False)
    lent_mean_h: float = Field(gt=0.0, allow_inf_nan=False)
    group_nodes: float = Field(default=1.0, ge=1.0, description="mean nodes that are lent together")


class Lending(Cause):
    """Nodes of some pools are lent to others, by calendar and at random.

    Effect: NODE_DOWN, value = seconds until the node returns.
    """

    kind: Literal["lending"] = "lending"
    pools: tuple[str, ...] = Field(min_length=1)
    calendar: tuple[Window, ...] = ()
    random: RandomLoans | None = None
    start_weekday: int = Field(default=0, ge=0, le=6, description="of time 0; 0 is Monday")
    start_hour: float = Field(default=0.0, ge=0.0, lt=24.0, description="of time 0")

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
                for from_s, to_s in window.spans_s(self.start_weekday, self.start_hour, context.horizon_s):
                    drawn.append(away(lent, np.full(lent.size, from_s), np.full(lent.size, to_s)))
            if self.random is not None:
                drawn.append(_loans(rng, self.random, nodes, context.horizon_s))
        return np.concatenate(drawn)


def _loans(rng: np.random.Generator, loans: RandomLoans, nodes: NDArray[np.int64], horizon_s: float) -> NDArray[np.void]:
    group = groups(rng, nodes.size, loans.group_nodes)
    n_groups = int(group.max()) + 1
    owner, from_s, to_s = off_spells(rng, n_groups, loans.home_mean_h * HOUR_S, loans.lent_mean_h * HOUR_S, horizon_s)
    event, node = members(owner, group)
    return away(nodes[node], from_s[event], to_s[event])

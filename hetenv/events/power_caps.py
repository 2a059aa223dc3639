"""Limits on what a site may draw: by calendar, and called by the grid operator (demand response)."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hetenv.events.cause import Cause, Part
from hetenv.events.day_windows import DayWindow, Week
from hetenv.events.spells import off_spells
from hetenv.events.stream import SIGNAL_EFFECTS, Effect, EventContext, empty_rows, rows
from hetenv.units import HOUR_S

Span = tuple[float, float, float]
"""From, to (s) and the cap between them, W."""


class CapWindow(DayWindow):
    """Hours of the day, on some weekdays, in which the site may draw `cap_w` at most."""

    cap_w: float = Field(gt=0.0, allow_inf_nan=False)


class CapCalls(Part):
    """The grid operator calls for less power now and then: exponential times between and within calls."""

    apart_mean_h: float = Field(gt=0.0, allow_inf_nan=False)
    lasting_mean_h: float = Field(gt=0.0, allow_inf_nan=False)
    cap_w: float = Field(gt=0.0, allow_inf_nan=False)


class SiteCap(Part):
    """Caps of one site; where several hold, the lowest counts."""

    always_w: float | None = Field(default=None, gt=0.0, allow_inf_nan=False, description="default: none")
    calendar: tuple[CapWindow, ...] = ()
    calls: CapCalls | None = None

    @model_validator(mode="after")
    def _caps(self) -> "SiteCap":
        if self.always_w is None and not self.calendar and self.calls is None:
            raise ValueError("always_w: no cap at all; state always_w, calendar or calls")
        return self


class PowerCaps(Cause):
    """Sites may draw only so much power. Effect: SITE_POWER_CAP, value = W; where none of them holds, that of the
    site's own `power_cap_w` (none: inf)."""

    kind: Literal["power_caps"] = "power_caps"
    sites: dict[str, SiteCap] = Field(min_length=1, description="site name -> caps")
    week: Week = Week()

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """Rows where the cap of a site changes, site by site."""
        drawn = [empty_rows()]
        for name, cap in self.sites.items():
            site = self.site_of(context.cluster, name, "sites")
            own_w = float(context.cluster.site_start[site, SIGNAL_EFFECTS.index(Effect.SITE_POWER_CAP)])
            at_s, cap_w = _lowest(self._spans(rng, cap, context.horizon_s), own_w, context.horizon_s)
            drawn.append(rows(Effect.SITE_POWER_CAP, at_s, site, cap_w))
        return np.concatenate(drawn)

    def _spans(self, rng: np.random.Generator, cap: SiteCap, horizon_s: float) -> list[Span]:
        """All times with a cap."""
        spans: list[Span] = [] if cap.always_w is None else [(0.0, np.inf, cap.always_w)]
        for window in cap.calendar:
            spans.extend((a, b, window.cap_w) for a, b in window.spans_s(self.week, horizon_s))
        if cap.calls is not None:
            calls = cap.calls
            _, from_s, to_s = off_spells(rng, 1, calls.apart_mean_h * HOUR_S, calls.lasting_mean_h * HOUR_S, horizon_s)
            spans.extend((a, b, calls.cap_w) for a, b in zip(from_s.tolist(), to_s.tolist()))
        return spans


def _lowest(spans: list[Span], own_w: float, horizon_s: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times before the horizon at which the lowest cap changes, and that cap from then on, W; own_w: always."""
    table = np.array(spans, np.float64).reshape(-1, 3)
    at_s = np.unique(np.concatenate([table[:, 0], table[:, 1]]))
    at_s = at_s[at_s < horizon_s]
    holds = (table[None, :, 0] <= at_s[:, None]) & (at_s[:, None] < table[None, :, 1])
    cap_w = np.where(holds, table[None, :, 2], np.inf).min(axis=1, initial=own_w)
    changes = cap_w != np.concatenate([[own_w], cap_w[:-1]])
    return at_s[changes], cap_w[changes]

"""Where in recorded signals an episode begins: at a stated instant, or at one drawn from the days of its seed's split."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from hetenv.errors import ScenarioError
from hetenv.events.signals import gap_edges
from hetenv.traces.series import Series
from hetenv.units import DAY_S, HOUR_S
from hetenv.workload.trace import split_of

Days = tuple[date, date]
"""First and last day, both included; UTC."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StartAt(_Part):
    """Time 0 is one instant in every episode."""

    kind: Literal["at"] = "at"
    utc: AwareDatetime = Field(description="with its zone, e.g. 2023-06-01T00:00:00Z")


class SeededStart(_Part):
    """Time 0 is drawn: a multiple of `step_h` after midnight UTC, so that the whole episode lies within days of the seed's split.

    Which split a seed reads: see `hetenv.workload.trace.split_of`. Windows that a record does not cover, or in which too much
    is missing, are never drawn.
    """

    kind: Literal["seeded"] = "seeded"
    step_h: float = Field(default=1.0, gt=0.0, le=24.0)
    train: tuple[Days, ...] = Field(min_length=1)
    validation: tuple[Days, ...] = Field(min_length=1)
    test: tuple[Days, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _disjoint(self) -> "SeededStart":
        ranges = sorted([*self.train, *self.validation, *self.test])
        for first, last in ranges:
            if last < first:
                raise ValueError(f"days {first} to {last} end before they begin")
        for (_, last), (following, _) in zip(ranges, ranges[1:]):
            if following <= last:
                raise ValueError(f"day {following} stands in two places; make train, validation and test disjoint")
        return self

    def draw(
        self, rng: np.random.Generator, seed: int, horizon_s: float, records: Iterable[tuple[Series, float]], where: str
    ) -> datetime:
        """Time 0 of an episode.

        Args:
            records: the series with dates that must cover it, and the longest gap that each may have, s.

        Raises:
            ScenarioError: no window of this length in these days.
        """
        split = split_of(seed)
        ranges: Sequence[Days] = getattr(self, split)
        origin = np.datetime64(min(first for first, _ in ranges), "ms")
        starts = np.concatenate([_starts(origin, days, horizon_s, self.step_h * HOUR_S) for days in ranges])
        for series, max_gap_s in records:
            starts = starts[_covered(series, max_gap_s, origin, starts, horizon_s)]
        if not starts.size:
            raise ScenarioError(f"{where}.{split}: no stretch of {horizon_s / HOUR_S:g} h in these days that the files cover")
        begin = datetime.combine(min(first for first, _ in ranges), datetime.min.time(), UTC)
        return begin + timedelta(seconds=float(starts[rng.integers(starts.size)]))


StartConfig = Annotated[StartAt | SeededStart, Field(discriminator="kind")]


def _starts(origin: np.datetime64, days: Days, horizon_s: float, step_s: float) -> NDArray[np.float64]:
    """Starts of windows within a range of days, s since `origin`."""
    from_s = float((np.datetime64(days[0], "ms") - origin) / np.timedelta64(1, "s"))
    to_s = float((np.datetime64(days[1], "ms") - origin) / np.timedelta64(1, "s")) + DAY_S
    return np.arange(from_s, to_s - horizon_s + 1e-6, step_s)


def _covered(
    series: Series, max_gap_s: float, origin: np.datetime64, starts: NDArray[np.float64], horizon_s: float
) -> NDArray[np.bool_]:
    """Whether a record covers each window with no longer gap."""
    assert series.origin is not None
    shift_s = float((origin - series.origin) / np.timedelta64(1, "ms")) / 1e3
    from_s, to_s = starts + shift_s, starts + shift_s + horizon_s
    good: NDArray[np.bool_] = (from_s >= series.at_s[0]) & (to_s <= series.at_s[-1] + series.step_s)
    for begin_s, end_s in gap_edges(series.at_s, series.values, series.step_s, max_gap_s):
        good &= (to_s <= begin_s) | (from_s >= end_s)
    return good



"""Signals: piecewise constant values over time, with one query.

Value i holds from at_s[i] on to at_s[i + 1], the last one to end_s. Times are seconds; `origin` is their zero in UTC where the
signal has dates. What lies before the first and after the last value is said by the end policy, the same for every query.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hetenv.errors import TraceError
from hetenv.events.stream import EventClock
from hetenv.traces.series import Series
from hetenv.units import DAY_S, HOUR_S

Array = NDArray[np.float64]
EndPolicy = Literal["hold", "wrap", "raise"]
"""Outside the record: hold the first or last value, repeat the record, or raise TraceError."""

YEARS_S: Final = (365 * DAY_S, 366 * DAY_S)
SLACK: Final = 1e-6
"""Share of a step by which stamps may be off it."""


@dataclass(frozen=True, eq=False)
class Signal:
    """A piecewise constant function of time.

    Attributes:
        at_s: [R] strictly increasing.
        values: [R] finite.
        end_s: end of the last value, > at_s[-1].
        end: what holds before at_s[0] and from end_s on.
        origin: UTC instant of 0 s, None for a signal without dates.
        n_filled: steps that were missing and filled.
    """

    at_s: Array
    values: Array
    end_s: float
    end: EndPolicy = "raise"
    origin: np.datetime64 | None = None
    name: str = "signal"
    n_filled: int = 0

    def __post_init__(self) -> None:
        if self.at_s.ndim != 1 or self.at_s.shape != self.values.shape or not self.at_s.size:
            raise TraceError(f"{self.name}: at_s and values must be two equal rows of at least one number")
        if not (np.isfinite(self.values).all() and np.isfinite(self.at_s).all() and np.isfinite(self.end_s)):
            raise TraceError(f"{self.name}: times and values must be finite; fill gaps with Signal.of")
        if np.any(np.diff(self.at_s) <= 0) or self.end_s <= self.at_s[-1]:
            raise TraceError(f"{self.name}: times must increase, and end_s lie after them")

    @classmethod
    def of(
        cls,
        series: Series,
        end: EndPolicy = "raise",
        max_gap_s: float = 6 * HOUR_S,
        within_s: tuple[float, float] | None = None,
    ) -> "Signal":
        """The signal of a loaded series.

        Missing values and missing rows are filled on the line between the values before and after them, so never with 0 and
        never outside these two; at the ends of the record with the nearest value. A whole typical year wraps, whatever `end`.

        Args:
            max_gap_s: most that may be missing in one stretch.
            within_s: a stretch of the record that is needed; the record is cut at longer gaps before and after it.

        Raises:
            TraceError: naive stamps without a stated zone, no value at all, or a longer gap.
        """
        if series.origin is None and series.is_naive:
            raise TraceError(
                f"{series.name}: its stamps are naive and no zone is stated; state the file's `zone` (UTC, or a name such as Europe/Berlin)"
            )
        at_s, values, n_filled = _filled(_cut(series, max_gap_s, within_s), max_gap_s)
        end_s = float(at_s[-1]) + series.step_s
        is_year = series.is_typical_year and any(abs(end_s - at_s[0] - year_s) < 1.0 for year_s in YEARS_S)
        return cls(at_s, values, end_s, "wrap" if is_year else end, series.origin, series.name, n_filled)

    @classmethod
    def of_rows(cls, events: NDArray[np.void], effect: int, target: int, start_value: float, end_s: float) -> "Signal":
        """What a target meets in an episode, from all its EVENT rows of one effect on the WALL clock; holds after end_s.

        Args:
            events: [E] rows in `merge` order.
            start_value: until the first row.
        """
        chosen = events[(events["effect"] == effect) & (events["target"] == target) & (events["clock"] == EventClock.WALL)]
        at_s = np.concatenate([[0.0], chosen["at"]])
        values = np.concatenate([[start_value], chosen["value"]])
        last = np.append(np.diff(at_s) > 0, True)  # of several rows of one time the last counts
        return cls(at_s[last], values[last], max(end_s, float(np.nextafter(at_s[-1], np.inf))), "hold", name=f"effect {effect}")

    @property
    def first_s(self) -> float:
        """Begin of the record."""
        return float(self.at_s[0])

    @property
    def span_s(self) -> float:
        """Length of the record; the period of `wrap`."""
        return self.end_s - self.first_s

    def seconds(self, instant: datetime) -> float:
        """Seconds since `origin` of an instant with a stated zone. TraceError if either has none."""
        if self.origin is None:
            raise TraceError(f"{self.name}: has no dates; say in seconds where it begins")
        return seconds_between(self.origin, instant)

    def value(self, at_s: ArrayLike) -> Array:
        """Values at times of any shape."""
        times = np.asarray(at_s, np.float64)
        inside = self._inside(times)
        found: Array = self.values[np.clip(np.searchsorted(self.at_s, inside, "right") - 1, 0, None)]
        return found

    def steps(self, from_s: float, to_s: float) -> tuple[Array, Array]:
        """Times [K] and values [K] of the constant stretches of [from_s, to_s); the first time is from_s."""
        if not to_s > from_s:
            raise ValueError(f"{self.name}: an interval must end after it begins (got {from_s:g} to {to_s:g})")
        self._check(from_s)
        self._check(np.nextafter(to_s, from_s))
        borders, values = self.at_s, self.values
        if self.end == "wrap":
            turns = np.arange(np.floor((from_s - self.first_s) / self.span_s), np.floor((to_s - self.first_s) / self.span_s) + 1)
            borders = (self.at_s + turns[:, None] * self.span_s).ravel()
            values = np.tile(self.values, turns.size)
        first, last = np.searchsorted(borders, from_s, "right"), np.searchsorted(borders, to_s, "left")
        return np.append(from_s, borders[first:last]), np.append(self.value(from_s), values[first:last])

    def integrals(self, edges_s: ArrayLike) -> Array:
        """[K - 1] value x seconds between each two of K increasing times."""
        edges = np.asarray(edges_s, np.float64)
        if edges.size < 2 or np.any(np.diff(edges) <= 0):
            raise ValueError(f"{self.name}: needs at least two increasing times")
        times, values = self.steps(float(edges[0]), float(edges[-1]))
        cuts = np.union1d(times, edges)
        parts = values[np.searchsorted(times, cuts[:-1], "right") - 1] * np.diff(cuts)
        sums: Array = np.add.reduceat(parts, np.searchsorted(cuts, edges[:-1]))
        return sums

    def integral(self, from_s: float, to_s: float) -> float:
        """Of value x seconds over [from_s, to_s); 0 where they are equal."""
        if to_s == from_s:
            self._check(from_s)
            return 0.0
        return float(self.integrals([from_s, to_s])[0])

    def mean(self, from_s: float, to_s: float) -> float:
        """Mean over [from_s, to_s)."""
        return self.integral(from_s, to_s) / (to_s - from_s)

    def shifted(self, by_s: float) -> "Signal":
        """The same signal `by_s` later on its clock; it has no dates then."""
        return replace(self, at_s=self.at_s + by_s, end_s=self.end_s + by_s, origin=None)

    def _inside(self, times: Array) -> Array:
        """Times within the record that have the values of the given ones."""
        self._check(times)
        if self.end == "wrap":
            turned = self.first_s + np.mod(times - self.first_s, self.span_s)
            return np.where((times >= self.first_s) & (times < self.end_s), times, turned)
        return np.clip(times, self.first_s, None)

    def _check(self, times: ArrayLike) -> None:
        asked = np.asarray(times, np.float64)
        if np.isnan(asked).any():
            raise ValueError(f"{self.name}: a time is no number")
        if self.end != "raise":
            return
        outside = (asked < self.first_s) | (asked >= self.end_s)
        if outside.any():
            raise TraceError(
                f"{self.name}: {float(asked[outside][0]):g} s lies outside the record, {self.first_s:g} to {self.end_s:g} s;"
                " choose another window or the end policy hold or wrap"
            )


def seconds_between(origin: np.datetime64, instant: datetime) -> float:
    """Seconds from `origin` (UTC) to an instant; TraceError if it states no zone."""
    if instant.tzinfo is None or instant.utcoffset() is None:
        raise TraceError(f"instant {instant.isoformat()} states no zone; write e.g. {instant.isoformat()}Z")
    utc = np.datetime64(instant.astimezone(UTC).replace(tzinfo=None), "us")
    return float((utc - origin) / np.timedelta64(1, "us")) / 1e6


def gap_edges(at_s: Array, values: Array, step_s: float, max_gap_s: float) -> Array:
    """[G, 2] begin and end of the stretches without values that are longer than max_gap_s."""
    known = np.isfinite(values)
    times, n = at_s[known], int(known.sum())
    if not n:
        return np.array([[at_s[0], at_s[-1] + step_s]])
    begins = np.concatenate([[at_s[0]], times + step_s])
    ends = np.concatenate([times, [at_s[-1] + step_s]])
    long = ends - begins > max(max_gap_s, SLACK * step_s)
    return np.stack([begins[long], ends[long]], axis=1)


def _cut(series: Series, max_gap_s: float, within_s: tuple[float, float] | None) -> Series:
    """The part of a series between the long gaps around a stretch of its record."""
    if within_s is None or within_s[0] < series.at_s[0] or within_s[1] > series.at_s[-1] + series.step_s:
        return series
    gaps = gap_edges(series.at_s, series.values, series.step_s, max_gap_s)
    before, after = gaps[gaps[:, 1] <= within_s[0], 1], gaps[gaps[:, 0] >= within_s[1], 0]
    from_s, to_s = max(before, default=-np.inf), min(after, default=np.inf)
    kept = (series.at_s >= from_s) & (series.at_s < to_s)
    return replace(series, at_s=series.at_s[kept], values=series.values[kept])


def _filled(series: Series, max_gap_s: float) -> tuple[Array, Array, int]:
    """Times, values and number of filled steps."""
    gaps = gap_edges(series.at_s, series.values, series.step_s, max_gap_s)
    known = np.isfinite(series.values)
    if not known.any():
        raise TraceError(f"{series.name}: no value at all")
    if gaps.size:
        begin_s, end_s = (float(edge) for edge in gaps[0])
        raise TraceError(
            f"{series.name}: nothing known for {(end_s - begin_s) / HOUR_S:g} h from {_instant(series, begin_s)} on, more than max_gap"
            f" {max_gap_s / HOUR_S:g} h; choose a window without it or raise max_gap_h"
        )
    distance = np.diff(series.at_s)
    n_absent = np.where(distance > (1 + SLACK) * series.step_s, np.ceil(distance / series.step_s - SLACK) - 1, 0).astype(np.int64)
    before = np.repeat(series.at_s[:-1], n_absent)
    which = np.arange(n_absent.sum()) - np.repeat(np.cumsum(n_absent) - n_absent, n_absent) + 1
    at_s = np.sort(np.concatenate([series.at_s, before + which * series.step_s]))
    values = np.interp(at_s, series.at_s[known], series.values[known])
    return at_s, values, int(at_s.size - known.sum())


def _instant(series: Series, at_s: float) -> str:
    if series.origin is None:
        return f"{at_s:g} s"
    return str((series.origin + np.timedelta64(round(at_s), "s")).astype("datetime64[s]")) + "Z"

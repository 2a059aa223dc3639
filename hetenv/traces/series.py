"""What a loaded signal file is, whatever its format: series of values over UTC intervals, a report, statistics.

One convention: a value holds from its stamp on, for one step. Loaders shift period-ending stamps and convert to UTC, once.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hetenv.cluster import Cluster
from hetenv.errors import TraceError, unknown
from hetenv.units import KILO

Array = NDArray[np.float64]

REGION_MARK: Final = "@"
"""Between column and region in the name of a series of a file with several regions."""


class Column(NamedTuple):
    """One column of a file, as numbers."""

    unit: str
    """The file's own: g/kWh, USD/MWh, MW, W/m2, m/s, deg C, % or 1 (a share)."""
    values: Array
    """[R] NaN where missing."""


@dataclass(frozen=True, eq=False)
class Series:
    """One column of one region in time order. Value i holds on [at_s[i], at_s[i] + step_s)."""

    name: str
    unit: str
    at_s: Array
    """[R] strictly increasing, s since `origin`."""
    values: Array
    """[R] NaN where missing."""
    step_s: float
    """The most common distance of two stamps."""
    origin: np.datetime64 | None
    """UTC midnight at or before the first stamp; None where the file says no instant (see `time_base`)."""
    time_base: str
    """How the stamps were read, for reports and errors."""
    is_naive: bool = False
    """The stamps have dates, but nothing states their zone: no signal can be made of them."""
    is_typical_year: bool = False
    """at_s counts from 1 January of any year; the series repeats each year."""


@dataclass(frozen=True)
class SeriesReport:
    """What became of the rows of a file. Reasons are plain sentences; counts are rows unless they say otherwise."""

    format: str
    files: tuple[str, ...]
    time_base: str
    interval: str
    """What a stamp of the file means."""
    units: dict[str, str]
    """By series."""
    rows_read: int
    rows_kept: int
    repaired: dict[str, int]
    dropped: dict[str, int]
    noted: dict[str, int]
    """Oddities that were left as they are."""
    first: str
    """Begin of the first interval, UTC (or s)."""
    last: str
    """Begin of the last interval."""
    step_s: float
    n_gaps: int
    """Stretches of missing rows."""
    longest_gap_s: float
    missing: dict[str, int]
    """Missing values by series, where there are any."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class SeriesFile:
    """A loaded signal file."""

    series: Mapping[str, Series]
    """By column; by `column@region` where the file holds several regions."""
    report: SeriesReport
    statistics: dict[str, Any]
    """Under the names that the format's published statistics use."""
    default: str | None = None
    """The series meant where none is named."""

    def pick(self, column: str | None = None) -> Series:
        """A series by name; the only or the usual one without a name. TraceError lists the choices."""
        name = column or self.default or (next(iter(self.series)) if len(self.series) == 1 else None)
        if name is None:
            raise TraceError(f"several series; name one of: {', '.join(sorted(self.series))}")
        if name not in self.series:
            raise TraceError(unknown("column", name, self.series))
        return self.series[name]

    def against(self, cluster: Cluster) -> SeriesReport:
        """The report; a cluster adds nothing to it."""
        return self.report


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file before they become series; formats fill this in."""

    format: str
    files: tuple[str, ...]
    when: NDArray[Any]
    """[R] datetime64[ms], UTC where `is_utc`; or s as float64, for files without dates. NaT or NaN: dropped, and counted."""
    is_utc: bool
    columns: Mapping[str, Column]
    time_base: str
    interval: str = "a value holds from its stamp on"
    regions: NDArray[Any] | None = None
    """[R] region names, "" in none."""
    shift_s: float = 0.0
    """Taken off the stamps: the step where they are period-ending."""
    is_typical_year: bool = False
    n_left_out: int = 0
    """Lines of the file that are no rows here, counted in `dropped`."""
    repaired: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)


def assemble(rows: Rows, statistics: dict[str, Any], default: str | None = None) -> SeriesFile:
    """Series of rows: sorted by time, rows of one stamp merged (unlike values: their mean), both counted.

    Raises:
        TraceError: no usable row.
    """
    is_date = np.issubdtype(rows.when.dtype, np.datetime64)
    good = ~np.isnat(rows.when) if is_date else np.isfinite(rows.when)
    if not good.any():
        raise TraceError(f"{', '.join(rows.files)}: empty series: no usable row among {good.size}")
    if not rows.columns:
        raise TraceError(f"{', '.join(rows.files)}: empty series: no column holds a number")
    origin, at_s = _seconds(rows.when, good, rows.shift_s)
    region_of = np.full(good.size, "") if rows.regions is None else rows.regions.astype(str)
    names = np.unique(region_of[good])
    series: dict[str, Series] = {}
    gaps_s = []
    for region in names:
        chosen = np.flatnonzero(good & (region_of == region))
        unique_s, columns = _merged(at_s[chosen], {name: c.values[chosen] for name, c in rows.columns.items()}, rows)
        step_s = common_step_s(unique_s)
        distance = np.diff(unique_s)
        gaps_s.extend((distance[distance > 1.5 * step_s] - step_s).tolist())
        for name, values in columns.items():
            label = name if names.size == 1 else f"{name}{REGION_MARK}{region}"
            series[label] = Series(
                label, rows.columns[name].unit, unique_s, values, step_s,
                origin if rows.is_utc else None, rows.time_base, is_date and not rows.is_utc, rows.is_typical_year,
            )  # fmt: skip
    missing = {name: int(np.isnan(found.values).sum()) for name, found in series.items()}
    stamps = {float(found.at_s[0]) for found in series.values()}, {float(found.at_s[-1]) for found in series.values()}
    report = SeriesReport(
        format=rows.format,
        files=rows.files,
        time_base=rows.time_base,
        interval=rows.interval,
        units={name: found.unit for name, found in series.items()},
        rows_read=int(good.size + rows.n_left_out),
        rows_kept=int(good.sum()),
        repaired={reason: count for reason, count in rows.repaired.items() if count},
        dropped={reason: count for reason, count in rows.dropped.items() if count},
        noted={reason: count for reason, count in rows.noted.items() if count},
        first=stamp(origin, min(stamps[0])),
        last=stamp(origin, max(stamps[1])),
        step_s=next(iter(series.values())).step_s,
        n_gaps=len(gaps_s),
        longest_gap_s=max(gaps_s, default=0.0),
        missing={name: count for name, count in missing.items() if count},
    )
    return SeriesFile(series, report, statistics, default)


def common_step_s(at_s: Array) -> float:
    """The most common distance of consecutive stamps (the smallest of several); 3600 s for a single row."""
    if at_s.size < 2:
        return 3600.0
    steps, counts = np.unique(np.round(np.diff(at_s), 3), return_counts=True)
    return float(steps[counts.argmax()])


def stamp(origin: np.datetime64 | None, at_s: float) -> str:
    """An instant as text, or seconds where there is no date."""
    if origin is None:
        return f"{at_s:.12g} s"
    return str((origin + np.timedelta64(round(at_s * KILO), "ms")).astype("datetime64[s]")).replace("T", " ")


def _seconds(when: NDArray[Any], good: NDArray[np.bool_], shift_s: float) -> tuple[np.datetime64 | None, Array]:
    """Origin and [R] seconds since it, of the intervals' begins; NaN where bad. Exact: whole milliseconds."""
    at_s = np.full(when.size, np.nan)
    if not np.issubdtype(when.dtype, np.datetime64):
        at_s[good] = when[good] - shift_s
        return None, at_s
    begins = when - np.timedelta64(round(shift_s * KILO), "ms")
    origin = begins[good].min().astype("datetime64[D]").astype("datetime64[ms]")
    at_s[good] = (begins[good] - origin) / np.timedelta64(1, "ms") / KILO
    return origin, at_s


def _merged(at_s: Array, columns: Mapping[str, Array], rows: Rows) -> tuple[Array, dict[str, Array]]:
    """Rows in time order, one a stamp; counts what was moved and merged."""
    rows.repaired["rows out of time order: sorted"] += int((np.diff(at_s) < 0).sum())
    order = np.argsort(at_s, kind="stable")
    unique_s, first, counts = np.unique(at_s[order], return_index=True, return_counts=True)
    doubled = counts > 1
    unlike = np.zeros(unique_s.size, bool)
    merged: dict[str, Array] = {}
    for name, values in columns.items():
        ordered = values[order]
        present = np.isfinite(ordered)
        number = np.add.reduceat(present.astype(np.float64), first)
        total = np.add.reduceat(np.where(present, ordered, 0.0), first)
        lowest = np.minimum.reduceat(np.where(present, ordered, np.inf), first)
        highest = np.maximum.reduceat(np.where(present, ordered, -np.inf), first)
        mean = np.where(number > 0, total / np.maximum(number, 1.0), np.nan)
        merged[name] = np.where(doubled, mean, ordered[first])
        unlike |= doubled & (highest > lowest)
    rows.repaired["rows of one stamp with equal values: one kept"] += int((counts - 1)[doubled & ~unlike].sum())
    rows.repaired["rows of one stamp with unlike values: their mean taken"] += int((counts - 1)[unlike].sum())
    for array in (unique_s, *merged.values()):
        array.flags.writeable = False
    return unique_s, merged


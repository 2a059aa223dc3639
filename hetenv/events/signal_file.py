"""A series of a signal file as scenarios name it, and the signal of an episode's window that it gives."""

from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final

import numpy as np
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from hetenv.errors import ScenarioError, TraceError, unknown
from hetenv.events.signals import EndPolicy, Signal, seconds_between
from hetenv.traces import SERIES_FORMATS, SeriesFile, resolve
from hetenv.traces.series import Series
from hetenv.units import HOUR_S

SHARE, MEGAWATT, IRRADIANCE, SPEED, CELSIUS, INTENSITY = "1", "MW", "W/m2", "m/s", "deg C", "g/kWh"
"""Units of series, as loaders name them."""


def _known_format(name: str) -> str:
    if name not in SERIES_FORMATS:
        raise ValueError(unknown("signal format", name, SERIES_FORMATS))
    return name


FormatName = Annotated[str, AfterValidator(_known_format)]


class SignalFile(BaseModel):
    """One series of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(description="`shared:` and a path in the shared data folder, or a path in the scenario's folder")
    format: FormatName
    column: str | None = Field(default=None, description="default: the format's usual one")
    zone: str | None = Field(default=None, description="of naive stamps: UTC, an IANA name or an offset such as +10:00")
    first_utc: AwareDatetime | None = Field(default=None, description="instant of second 0, for files without dates")
    shift_h: float = Field(default=0.0, ge=-24.0, le=24.0, description="added to the file's stamps, where its publisher erred")
    max_gap_h: float = Field(default=6.0, ge=0.0, description="most that may be missing in a stretch; filled between its neighbours")

    def series(self, folder: Path | None, units: tuple[str, ...], where: str, column: str | None = None) -> Series:
        """The series, in one of `units` ("*/MWh": any currency).

        Raises:
            TraceError: the file cannot be found or read.
            ScenarioError: it is in another unit, or has no dates and none are stated.
        """
        try:
            path = resolve(self.path, folder)
            found = _load(self.format, path, path.stat().st_mtime_ns, self.zone).pick(column or self.column)
            found = replace(found, at_s=found.at_s + self.shift_h * HOUR_S) if self.shift_h else found
        except TraceError as error:
            raise TraceError(f"{where}: {error}") from None
        if found.unit not in units and not ("*/MWh" in units and found.unit.endswith("/MWh")):
            raise ScenarioError(f"{where}.column: series {found.name!r} is in {found.unit}; needed is {' or '.join(units)}")
        return found

    def clock(self, series: Series, start: datetime, where: str) -> float:
        """Seconds of the series' own clock at the instant `start`."""
        if series.is_typical_year:
            year = np.datetime64(f"{start.year}-01-01", "ms")
            return seconds_between(year, start)
        if series.origin is not None:
            return seconds_between(series.origin, start)
        if series.is_naive:
            raise ScenarioError(f"{where}.zone: the stamps of {self.path} are naive; state their zone (UTC, Europe/Berlin, +10:00)")
        if self.first_utc is None:
            raise ScenarioError(f"{where}.first_utc: {self.path} has no dates; state the instant of its second 0")
        return (start - self.first_utc).total_seconds()

    def signal(self, series: Series, start: datetime, horizon_s: float, end: EndPolicy, where: str) -> Signal:
        """The signal on a clock whose 0 is `start`; it answers in [0, horizon_s) at least.

        Raises:
            TraceError: the record does not cover this and `end` is raise, or a gap in it is too long.
        """
        begin_s = self.clock(series, start, where)
        try:
            signal = Signal.of(series, end, self.max_gap_s, (begin_s, begin_s + horizon_s)).shifted(-begin_s)
            signal.value([0.0, np.nextafter(horizon_s, 0.0)])
        except TraceError as error:
            raise TraceError(f"{where}: {error}") from None
        return signal

    @property
    def max_gap_s(self) -> float:
        return self.max_gap_h * HOUR_S


KEPT_FILES: Final = 32


@lru_cache(maxsize=KEPT_FILES)
def _load(format: str, path: Path, modified_ns: int, zone: str | None) -> SeriesFile:
    return SERIES_FORMATS[format].load(path, zone)

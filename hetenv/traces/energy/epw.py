"""EnergyPlus weather (.epw): 8 header lines, then one hour a line: irradiance, wind speed, temperature, and more.

A typical year: its months come from several years, so the year field is not used and the series repeats each year from 1 January.
Hour 1..24 ends its hour, in local standard time (no summer time); hours are shifted to their begin and by the zone of LOCATION
to UTC. Codes for missing values: temperature 99.9, irradiance 9999, wind 999 (EnergyPlus, Auxiliary Programs: EPW data dictionary).
"""

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.errors import TraceError
from hetenv.traces import csv_file, stamps
from hetenv.traces.series import Array, Column, Rows, SeriesFile, assemble
from hetenv.traces.series_statistics import describe, rounded
from hetenv.units import DAY_S, HOUR_S, KILO

N_HEADER: Final = 8
FIELDS: Final = {"ghi": (13, "W/m2", 9999.0), "wind": (21, "m/s", 999.0), "temp": (6, "deg C", 99.9)}
"""Series -> (place in a line, unit, code for missing). Irradiance is Wh/m2 in the hour, so its mean in W/m2."""
ZONE_FIELD: Final = 8
"""Of LOCATION: hours of local standard time ahead of UTC."""


def load(path: Path, zone: str | None = None) -> SeriesFile:
    """Series `ghi` (the default; global horizontal irradiance), `wind` (10 m above ground) and `temp`.

    Raises:
        TraceError: unreadable, no EPW header, more than one record an hour, a zone stated, or no usable row.
    """
    stamps.refuse(zone, "LOCATION states it", path)
    if path.is_dir():
        raise TraceError(f"{path}: a folder; name one .epw file")
    lines = csv_file.text(path).splitlines()
    offset_h = _offset_h(path, lines)
    records = [record for record in csv.reader(io.StringIO("\n".join(lines[N_HEADER:]))) if any(map(str.strip, record))]
    n_fields = max(place for place, _, _ in FIELDS.values()) + 1
    dropped, notes = Counter[str](), Counter[str]()
    kept = [record for record in records if len(record) >= n_fields]
    dropped["fewer fields than an EPW line has"] = len(records) - len(kept)
    if not kept:
        raise TraceError(f"{path}: empty series: no EPW line below the header")
    raw = {name: csv_file.numbers([record[place] for record in kept]) for name, (place, _, _) in FIELDS.items()}
    n_bright = int((raw["ghi"] >= FIELDS["ghi"][2]).sum())
    values = {name: np.where(raw[name] >= code, np.nan, raw[name]) for name, (_, _, code) in FIELDS.items()}
    at_s = _begin_s(*(csv_file.numbers([record[place] for record in kept]) for place in (1, 2, 3)))
    dropped["month, day or hour is none"] = int(np.isnan(at_s).sum())
    notes["years that the typical months come from"] = len({record[0].strip() for record in kept})
    statistics: dict[str, Any] = {
        "rows": len(kept),
        "header_lines": N_HEADER,
        "location": lines[0].strip(),
        "ghi_wm2": describe(values["ghi"]),
        "ghi_kwh_m2_year": rounded(float(np.nansum(values["ghi"])) / KILO),
        "wind_ms": describe(values["wind"]),
        "temp_c": describe(values["temp"]),
        "n_ghi_missing_9999": n_bright,
    }
    rows = Rows(
        format="epw",
        files=(path.name,),
        when=at_s - offset_h * HOUR_S,
        is_utc=False,
        columns={name: Column(FIELDS[name][1], array) for name, array in values.items()},
        time_base=f"s since 1 January 0:00 UTC of any year, from local standard time UTC{offset_h:+g}",
        interval="hours 1..24 end at their stamp: shifted by 3600 s",
        is_typical_year=True,
        n_left_out=len(records) - len(kept),
        dropped=dropped,
        noted=notes,
    )
    return assemble(rows, statistics, default="ghi")


def _offset_h(path: Path, lines: list[str]) -> float:
    """Zone of LOCATION; checks the header."""
    if len(lines) < N_HEADER or not lines[0].upper().startswith("LOCATION,") or not lines[N_HEADER - 1].upper().startswith("DATA PERIODS"):
        raise TraceError(f"{path}: no EPW file: its 8 header lines must run from LOCATION to DATA PERIODS")
    location, periods = lines[0].split(","), lines[N_HEADER - 1].split(",")
    offset_h = csv_file.numbers([location[ZONE_FIELD] if len(location) > ZONE_FIELD else ""])[0]
    if not -14.0 <= offset_h <= 14.0:
        raise TraceError(f"{path}: LOCATION states no zone in hours (field {ZONE_FIELD + 1}): {lines[0].strip()}")
    per_hour = periods[2].strip() if len(periods) > 2 else ""
    if per_hour != "1":
        raise TraceError(f"{path}: {per_hour or 'no'} records an hour (DATA PERIODS); only hourly files are read")
    return float(offset_h)


def _begin_s(month: Array, day: Array, hour: Array) -> Array:
    """[R] begin of each hour, s since 1 January 0:00 local standard time; NaN where the fields say no hour."""
    good = np.isfinite(month) & np.isfinite(day) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (hour >= 1) & (hour <= 24)
    month_, day_ = np.where(good, month, 1).astype(np.int64), np.where(good, day, 1).astype(np.int64)
    is_leap = bool(((month_ == 2) & (day_ == 29)).any())
    first = np.datetime64("2000-01" if is_leap else "2001-01", "M")
    days = ((first + (month_ - 1)).astype("datetime64[D]") - first.astype("datetime64[D]")).astype(np.int64) + day_ - 1
    return np.where(good, days * DAY_S + (hour - 1.0) * HOUR_S, np.nan)

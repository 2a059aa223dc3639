"""Electricity Maps' old research export: about a hundred columns `..._avg`, of which carbon intensity and power are read.

Stamps (`datetime`) state their offset; `timestamp` says the same in Unix seconds, and rows where the two differ are counted.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from hetenv.traces import columns, stamps
from hetenv.traces.series import Column, SeriesFile, assemble
from hetenv.traces.series_statistics import describe, first_last, mean, n_missing

CARBON = r"carbon_intensity(_\w+)?_avg"
POWER = r"(power_\w+|total_\w+)_avg"


def load(path: Path, zone: str | None = None) -> SeriesFile:
    """Series under the file's names: `carbon_intensity_avg` (the default), its other intensities and powers.

    Raises:
        TraceError: unreadable, a column missing, or no usable row.
    """
    table = columns.read(path)
    when_column = columns.require(table, "datetime", "datetime")
    carbon_column = columns.require(table, "carbon_intensity_avg", "carbon_intensity_avg")
    solar_column = columns.require(table, "power_production_solar_avg", "power_production_solar_avg")
    wind_column = columns.require(table, "power_production_wind_avg", "power_production_wind_avg")
    unix_column = columns.find(table, "timestamp")
    zone_column = columns.find(table, "zone_name")
    dropped, notes = table.dropped(), Counter[str]()
    read = stamps.read(table.cells[when_column], notes, dropped, zone)
    if unix_column is not None and read.is_utc:
        stated_s = table.numbers(unix_column)
        unlike = np.isfinite(stated_s) & ~np.isnat(read.when) & (read.when.astype(np.int64) != stated_s * 1000.0)
        notes["stamps whose datetime and Unix time differ: datetime taken"] += int(unlike.sum())
    carbon, solar, wind = (table.numbers(column) for column in (carbon_column, solar_column, wind_column))
    first, last = first_last(table.cells[when_column], read.when)
    statistics: dict[str, Any] = {
        "rows": read.when.size,
        "n_columns": len(table.columns),
        "first": first,
        "last": last,
        "carbon_intensity_avg": describe(carbon),
        "n_missing_ci": n_missing(carbon),
        "solar_mean": mean(solar),
        "solar_n_missing": n_missing(solar),
        "wind_mean": mean(wind),
    }
    kinds = {"g/kWh": CARBON, "MW": POWER}
    found = {
        name: Column(unit, table.numbers(name))
        for unit, pattern in kinds.items()
        for name in columns.all_like(table, pattern)
        if "_percent_" not in name
    }
    filled = {name: column for name, column in found.items() if np.isfinite(column.values).any()}
    rows = table.rows("electricitymaps_wide", read, filled, dropped, notes, zone_column)
    return assemble(rows, statistics, default="carbon_intensity_avg")

"""Hourly power by fuel of a US balancing area (EIA-930) with its average carbon intensity: `timestamp,WND,SUN,...,avg_CI`.

Stamps state their offset. Fuels are in MW under EIA's codes, avg_CI in g/kWh. Empty cells are missing, never 0.
"""

from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.errors import TraceError
from hetenv.traces import columns, stamps
from hetenv.traces.series import Column, SeriesFile, assemble
from hetenv.traces.series_statistics import describe, first_last, largest, mean, n_missing, rounded

FUELS: Final = ("WND", "SUN", "WAT", "OIL", "NG", "COL", "NUC", "OTH", "GEO", "BAT", "PS", "SNB", "UES", "WNB", "OES", "UNK")
"""Codes of EIA-930's energy sources."""
STATED: Final = "MW per fuel; avg_CI g/kWh; UTC"


def load(path: Path, zone: str | None = None) -> SeriesFile:
    """Series `avg_CI` (the default) and one per fuel.

    Args:
        zone: of naive stamps; those of the published files state their offset.

    Raises:
        TraceError: unreadable, a column missing, or no usable row.
    """
    table = columns.read(path)
    when_column = columns.require(table, "timestamp|datetime|period", "timestamp")
    carbon_column = columns.require(table, "avg_ci", "avg_CI")
    fuels = [name for name in table.columns if name.upper() in FUELS]
    if not fuels:
        raise TraceError(f"{table.files[0]}: no column of a fuel (known: {', '.join(FUELS)})")
    dropped, notes = table.dropped(), Counter[str]()
    read = stamps.read(table.cells[when_column], notes, dropped, zone)
    carbon = table.numbers(carbon_column)
    power = {name: table.numbers(name) for name in fuels}
    green = [np.nansum(power[name]) for name in fuels if name.upper() in ("WND", "SUN")]
    total = sum(float(np.nansum(values)) for values in power.values())
    first, last = first_last(table.cells[when_column], read.when)
    statistics: dict[str, Any] = {
        "rows": read.when.size,
        "columns": list(table.columns),
        "units": STATED,
        "first": first,
        "last": last,
        "n_missing": sum(n_missing(values) for values in (*power.values(), carbon)),
        "n_negative_cells": sum(int((values < 0).sum()) for values in (*power.values(), carbon)),
        "avg_CI": describe(carbon),
        "mean_mw": {name: mean(values) for name, values in power.items()},
        "max_mw": {name: largest(values) for name, values in power.items()},
        "solar_wind_share": rounded(sum(map(float, green)) / total) if total else None,
    }
    notes["cells below zero"] += statistics["n_negative_cells"]
    found = {"avg_CI": Column("g/kWh", carbon), **{name: Column("MW", values) for name, values in power.items()}}
    return assemble(table.rows("eia_mix", read, found, dropped, notes), statistics, default="avg_CI")

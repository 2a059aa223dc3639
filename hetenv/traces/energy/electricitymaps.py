"""Electricity Maps' yearly export: `Datetime (UTC), ..., Carbon Intensity gCO₂eq/kWh (direct), ... (LCA), ...`, hourly.

Naive stamps are UTC, as their column says. The words of the header changed over the years (2025: "(Life cycle)",
"Carbon-free energy percentage (CFE%)"); both are read, as are plain `CO2` and other cases.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetenv.traces import columns, stamps
from hetenv.traces.series import Array, Column, SeriesFile, assemble
from hetenv.traces.series_statistics import describe, first_last, mean, n_duplicates, n_gaps

INTENSITY = r"carbon intensity gco2 ?eq/kwh \((?:{})\)"


def load(path: Path, zone: str | None = None) -> SeriesFile:
    """Series `direct` (the default), `lca`, `low_carbon_pct`, `renewable_pct`; by zone where a folder holds several.

    Raises:
        TraceError: unreadable, a column missing, a zone stated, or no usable row.
    """
    stamps.refuse(zone, "the stamps' column says UTC", path)
    table = columns.read(path)
    when_column = columns.require(table, r"datetime \(utc\)", "Datetime (UTC)")
    found = {
        "direct": columns.require(table, INTENSITY.format("direct"), "Carbon Intensity gCO₂eq/kWh (direct)"),
        "lca": columns.require(table, INTENSITY.format("lca|life cycle"), "Carbon Intensity gCO₂eq/kWh (LCA)"),
        "low_carbon_pct": columns.require(
            table, r"low carbon percentage|carbon-free energy percentage \(cfe%\)", "Low Carbon Percentage"
        ),
        "renewable_pct": columns.require(
            table, r"renewable percentage|renewable energy percentage \(re%\)", "Renewable Percentage"
        ),
    }
    estimated_column = columns.find(table, "data estimated")
    zone_column = columns.find(table, "zone id")
    dropped, notes = table.dropped(), Counter[str]()
    read = stamps.read(table.cells[when_column], notes, dropped, "UTC")
    when = read.when
    values = {name: table.numbers(column) for name, column in found.items()}
    estimated = [] if estimated_column is None else [cell.capitalize() for cell in table.cells[estimated_column]]
    first, last = first_last(table.cells[when_column], when)
    statistics: dict[str, Any] = {
        "rows": when.size,
        "columns": list(table.columns),
        "first": first,
        "last": last,
        "n_duplicate_timestamps": n_duplicates(when),
        "n_gaps": n_gaps(when),
        "n_missing": {name: table.cells[name].count("") for name in table.columns},
        **{name: describe(array) for name, array in values.items()},
        "estimated": {kind: estimated.count(kind) for kind in sorted(set(estimated) - {""})},
        "mean_direct_by_utc_hour": by_hour(when, values["direct"]),
    }
    notes["values that the publisher estimated"] += estimated.count("True")
    unit_of = {"direct": "g/kWh", "lca": "g/kWh"}
    columns_ = {name: Column(unit_of.get(name, "%"), array) for name, array in values.items()}
    return assemble(table.rows("electricitymaps", read, columns_, dropped, notes, zone_column), statistics, default="direct")


def by_hour(when: NDArray[Any], values: Array) -> list[float | None]:
    """[24] mean by UTC hour of the day; None where there is no row."""
    hour = when.astype("datetime64[h]").astype(np.int64) % 24
    return [mean(values[~np.isnat(when) & (hour == h)]) for h in range(24)]

"""Marginal carbon intensity by region as WattTime gives it: `point_time,REGION,...`, every 5 minutes, g/kWh.

Stamps state their offset. Low values mean that renewable power is being curtailed (arXiv 2602.22760, threshold 100 g/kWh).
"""

from collections import Counter
from pathlib import Path
from typing import Any, Final

from hetenv.errors import TraceError
from hetenv.traces import columns, stamps
from hetenv.traces.series import Column, SeriesFile, assemble
from hetenv.traces.series_statistics import first_last, largest, mean, n_missing, share, smallest

CURTAILED_BELOW_G_PER_KWH: Final = 100.0


def load(path: Path, zone: str | None = None) -> SeriesFile:
    """Series by region.

    Args:
        zone: of naive stamps; those of the published file state their offset.

    Raises:
        TraceError: unreadable, a column missing, or no usable row.
    """
    table = columns.read(path)
    when_column = columns.require(table, "point_time", "point_time")
    regions = {name: table.numbers(name) for name in table.columns if name != when_column}
    if not regions:
        raise TraceError(f"{table.files[0]}: no column of a region besides {when_column!r}")
    dropped, notes = table.dropped(), Counter[str]()
    read = stamps.read(table.cells[when_column], notes, dropped, zone)
    first, last = first_last(table.cells[when_column], read.when)
    statistics: dict[str, Any] = {
        "rows": read.when.size,
        "columns": list(table.columns),
        "first": first,
        "last": last,
        "per_column": {
            name: {
                "mean": mean(values),
                "min": smallest(values),
                "max": largest(values),
                "share_below_100": share(values < CURTAILED_BELOW_G_PER_KWH),
                "n_missing": n_missing(values),
            }
            for name, values in regions.items()
        },
    }
    found = {name: Column("g/kWh", values) for name, values in regions.items()}
    return assemble(table.rows("watttime_mci", read, found, dropped, notes), statistics)

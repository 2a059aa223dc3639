"""The data sets of Vessim (Wiesner et al.): a time column, then one column per place, 5 minutes apart.

`solar_example`: `time` in seconds from the start of the record (no date: they stay relative), power as a share of peak power.
`watttime_example`: naive dates, whose zone must be stated, marginal carbon intensity. Its unit is not stated; all values are
whole multiples of 0.45359237, so they are lb/MWh turned into kg/MWh, which is g/kWh.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from hetenv.errors import TraceError
from hetenv.traces import columns, stamps
from hetenv.traces.series import Array, Column, SeriesFile, assemble, common_step_s
from hetenv.traces.series_statistics import first_last, largest, mean, n_missing, share, smallest
from hetenv.traces.stamps import Stamps

TIME = r"time|\w*time(stamp)?|date"


def load(path: Path, zone: str | None = None) -> SeriesFile:
    """Series by place.

    Args:
        zone: of naive dates; refused where the time column holds seconds.

    Raises:
        TraceError: unreadable, a column missing, or no usable row.
    """
    table = columns.read(path)
    when_column = columns.require(table, TIME, "time")
    places = {name: table.numbers(name) for name in table.columns if name != when_column}
    if not places:
        raise TraceError(f"{table.files[0]}: no column besides {when_column!r}")
    dropped, notes = table.dropped(), Counter[str]()
    seconds = table.numbers(when_column)
    if np.isfinite(seconds).any():
        stamps.refuse(zone, "the time column counts seconds from the start of the record", path)
        step_s = common_step_s(np.unique(seconds[np.isfinite(seconds)]))
        first, last = first_last(table.cells[when_column], seconds)
        dropped["time is no number"] += n_missing(seconds)
        read = Stamps(seconds, False, "s from the start of the record, no date")
        unit = "1"
    else:
        read = stamps.read(table.cells[when_column], notes, dropped, zone)
        good = read.when[~np.isnat(read.when)]
        step_s = common_step_s(np.unique(good).astype(np.float64) / 1e3)
        first, last = first_last(table.cells[when_column], read.when)
        unit = "g/kWh"
    statistics: dict[str, Any] = {
        "rows": seconds.size,
        "columns": list(table.columns),
        "first": first,
        "last": last,
        "step": f"{step_s:g} s",
        "per_column": {name: _figures(values) for name, values in places.items()},
    }
    found = {name: Column(unit, values) for name, values in places.items()}
    return assemble(table.rows("vessim", read, found, dropped, notes), statistics)


def _figures(values: Array) -> dict[str, float | int | None]:
    return {
        "mean": mean(values),
        "max": largest(values),
        "min": smallest(values),
        "share_zero": share(values == 0),
        "n_missing": n_missing(values),
    }



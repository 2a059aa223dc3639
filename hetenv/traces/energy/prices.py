"""Hourly market prices in two layouts: `Datetime (UTC),Datetime (Local),Price (USD/MWh)` and `Datetime,Price (EUR/MWh)`.

The first states its offsets; local time is only compared with it, and rows where they differ are counted. The stamps of the
second are naive: its publisher calls them local time, yet they skip and repeat no hour, so the zone must be stated by whoever
uses them. In the Californian files of the first layout prices peak at 2-4 h local
time: stamps already in UTC were converted once more (HewlettPackard/sustain-cluster, issue 7); read as stated, they are 8 h
late (7 in summer). The currency is the header's (an Australian file says USD where it means AUD; nothing in it tells).
"""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from hetenv.traces import columns, stamps
from hetenv.traces.series import Column, SeriesFile, assemble
from hetenv.traces.series_statistics import describe, first_last, n_duplicates, n_missing, share, step_histogram

PRICE = r"price \((\w{3})/mwh\)"


def load(path: Path, zone: str | None = None) -> SeriesFile:
    """Series `price`.

    Args:
        zone: of naive stamps (second layout).

    Raises:
        TraceError: unreadable, a column missing, no such zone, or no usable row.
    """
    table = columns.read(path)
    utc_column = columns.find(table, r"datetime \(utc\)")
    local_column = columns.find(table, r"datetime \(local\)")
    when_column = utc_column or columns.require(table, "datetime", "Datetime")
    price_column = columns.require(table, PRICE, "Price (.../MWh)")
    dropped, notes = table.dropped(), Counter[str]()
    if utc_column is not None:
        stamps.refuse(zone, "the stamps' column says UTC", path)
        zone = "UTC"
    read = stamps.read(table.cells[when_column], notes, dropped, zone)
    if utc_column is not None and local_column is not None:
        local = stamps.read(table.cells[local_column], notes.copy(), dropped.copy(), None)
        unlike = ~np.isnat(local.when) & ~np.isnat(read.when) & (local.when != read.when)
        notes["stamps whose UTC and local time differ: UTC taken"] += int(unlike.sum()) if local.is_utc else 0
    price = table.numbers(price_column)
    first, last = first_last(table.cells[when_column], read.when)
    statistics: dict[str, Any] = {
        "rows": read.when.size,
        "columns": list(table.columns),
        "first": first,
        "last": last,
        "n_bad_timestamps": int(np.isnat(read.when).sum()),
        "n_duplicate_timestamps": n_duplicates(read.when),
        "step_hist": step_histogram(read.when),
        "price": describe(price),
        "n_missing": n_missing(price),
        "n_negative": int((price < 0).sum()),
        "share_negative": share(price < 0),
        "n_zero": int((price == 0).sum()),
    }
    notes["prices below zero"] += statistics["n_negative"]
    matched = re.fullmatch(PRICE, columns.normal(price_column))
    assert matched is not None
    found = {"price": Column(f"{matched.group(1).upper()}/MWh", price)}
    return assemble(table.rows("prices", read, found, dropped, notes), statistics)

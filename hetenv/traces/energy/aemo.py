"""Price and demand of the Australian market as AEMO publishes them: `REGION,SETTLEMENTDATE,TOTALDEMAND,RRP,PERIODTYPE`.

SETTLEMENTDATE ends its period and is market time, UTC+10 without summer time; periods last 30 minutes (5 since October 2021):
stamps are shifted by one period. A folder is read as one series (monthly files). RRP is in AUD/MWh.
"""

from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.traces import columns, csv_file, stamps
from hetenv.traces.series import Column, Rows, SeriesFile, assemble, common_step_s
from hetenv.traces.series_statistics import describe, first_last
from hetenv.units import MINUTE_S

ZONE: Final = "+10:00"
STAMP: Final = "%Y/%m/%d %H:%M:%S"
TIME_BASE: Final = "UTC, from market time UTC+10 without summer time"


def load(path: Path, zone: str | None = None) -> SeriesFile:
    """Series `RRP` (the default) and `TOTALDEMAND`.

    Raises:
        TraceError: unreadable, a column missing, a zone stated, or no usable row.
    """
    stamps.refuse(zone, "AEMO stamps are UTC+10", path)
    table = columns.read(path)
    when_column = columns.require(table, "settlementdate", "SETTLEMENTDATE")
    demand_column = columns.require(table, "totaldemand", "TOTALDEMAND")
    price_column = columns.require(table, "rrp", "RRP")
    region_column = columns.find(table, "region(id)?")
    demand, price = table.numbers(demand_column), table.numbers(price_column)
    dropped, notes = table.dropped(), Counter[str]()
    cells = table.cells[when_column]
    local = stamps.read(cells, Counter(), Counter(), None, STAMP).when
    utc = stamps.read(cells, notes, dropped, ZONE, STAMP).when
    seconds = np.unique(local[~np.isnat(local)]).astype(np.float64) / 1e3
    step_s = common_step_s(seconds)
    first, last = first_last(cells, local)
    statistics: dict[str, Any] = {
        "rows": local.size,
        "columns": list(table.columns),
        "crlf": any("\r\n" in csv_file.text(file) for file in columns.files(path)),
        "step_minutes": int(step_s / MINUTE_S),
        "first": first,
        "last": last,
        "demand": describe(demand),
        "rrp": describe(price),
        "n_negative_price": int((price < 0).sum()),
        "period_ending": True,
    }
    notes["prices below zero"] += statistics["n_negative_price"]
    rows = Rows(
        format="aemo",
        files=table.files,
        when=utc,
        is_utc=True,
        columns={"RRP": Column("AUD/MWh", price), "TOTALDEMAND": Column("MW", demand)},
        time_base=TIME_BASE,
        interval=f"stamps end their period: shifted by {step_s:g} s",
        regions=None if region_column is None else table.texts(region_column),
        shift_s=step_s,
        n_left_out=table.n_overlong,
        dropped=dropped,
        noted=notes,
    )
    return assemble(rows, statistics, default="RRP")

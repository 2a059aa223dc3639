"""Spot traces of Bamboo (Thorpe et al., NSDI 2023), two layouts without a header, told apart by their lines.

`ms,add|remove,node` (AWS): a node id comes once and never returns. `date, time, count` (Google): how many were there.
Rules, each counted in the report: a line of another form, or with a bad time, event or count: dropped; a node added while
it is there, or removed while it is not: ignored; lines whose time goes back: the events are sorted by time, a count
replaces those that lines before it state for its time and later (a probe that was overtaken by a newer one).
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import TraceError
from hetenv.traces import csv_file
from hetenv.traces.capacity import STAY, CapacityTrace, ordered, stays_of_counts
from hetenv.traces.statistics import describe
from hetenv.traces.trace import LoadReport
from hetenv.units import HOUR_S, KILO

DECIMALS: Final = 6
EVENTS: Final = ("add", "remove")
MAX_NODES: Final = 1_000_000


def load(path: Path) -> CapacityTrace:
    """The trace of one file.

    Raises:
        TraceError: unreadable, not of this format, or no usable line.
    """
    records, _ = csv_file.records(path)
    for cells in records:
        while cells and not cells[-1]:
            cells.pop()
    n_events = sum(len(cells) == 3 and cells[1].lower() in EVENTS for cells in records)
    return _events(path, records) if 2 * n_events > len(records) else _counts(path, records)


def _events(path: Path, records: list[list[str]]) -> CapacityTrace:
    """The layout `ms,add|remove,node`."""
    dropped, repaired = Counter[str](), Counter[str]()
    has_header = len(records[0]) == 3 and np.isnan(csv_file.numbers(records[0][:1])[0])
    body = records[1:] if has_header else records
    kept = [cells for cells in body if len(cells) == 3]
    dropped["not three cells"] = len(body) - len(kept)
    time_s = csv_file.numbers([cells[0] for cells in kept]) / KILO
    is_event = np.array([cells[1].lower() in EVENTS and bool(cells[2]) for cells in kept], bool)
    is_good = np.isfinite(time_s) & is_event
    dropped["time is no number, or event neither add nor remove"] = int((~is_good).sum())
    rows = [cells for cells, good in zip(kept, is_good) if good]
    time_s, is_add = time_s[is_good], np.array([cells[1].lower() == "add" for cells in rows], bool)
    is_sorted = bool(np.all(np.diff(time_s) >= 0))
    order = np.argsort(time_s, kind="stable")
    if not rows or time_s.min() == time_s.max():
        raise TraceError(f"{path}: empty trace: {len(rows)} usable lines of {len(body)} span no time")
    stays, counts, n_again, n_absent = _places(time_s[order] - time_s.min(), is_add[order], [rows[i][2] for i in order])
    repaired["node added while it is there: ignored"] = n_again
    repaired["node removed while it is not there: ignored"] = n_absent
    repaired["lines out of order: sorted by time"] = int((np.diff(time_s) < 0).sum())
    span_s = float(np.ptp(time_s))
    _, per_event = np.unique(time_s[~is_add], return_counts=True)
    statistics = {
        "rows": len(rows),
        "header": bool(has_header),
        "columns": "timestamp_ms,event,node",
        "events": {"add": int(is_add.sum()), "remove": int((~is_add).sum())},
        "span_s": round(span_s, DECIMALS),
        "sorted": is_sorted,
        "n_nodes": len({cells[2] for cells in rows}),
        "peak_nodes": int(counts.max()),
        "final_nodes": int(counts[-1]),
        "n_double_add": n_again,
        "n_remove_absent": n_absent,
        "removal_events": int(per_event.size),
        "mean_nodes_per_removal_event": round(float(per_event.mean()), DECIMALS) if per_event.size else 0.0,
        "max_nodes_per_removal_event": int(per_event.max(initial=0)),
        "removals_per_hour": round(float((~is_add).sum()) / span_s * HOUR_S, DECIMALS),
    }
    report = LoadReport(
        format="bamboo",
        files=(path.name,),
        time_base="milliseconds since the trace's start",
        units={"timestamp": "ms"},
        rows_read=len(body),
        rows_kept=len(rows),
        repaired=_counted(repaired),
        dropped=_counted(dropped),
        noted={},
        first=f"{time_s.min():g} s",
        last=f"{time_s.max():g} s",
        gpu_hours={},
    )
    return CapacityTrace(stays, int(counts.max()), span_s, report, statistics)


def _places(
    at_s: NDArray[np.float64], is_add: NDArray[np.bool_], nodes: list[str]
) -> tuple[NDArray[np.void], NDArray[np.int64], int, int]:
    """Stays (a node that comes takes the lowest free place), nodes after each line, double adds, absent removals."""
    place_of: dict[str, tuple[int, float]] = {}
    taken: set[int] = set()
    stays: list[tuple[int, float, float]] = []
    counts = np.zeros(at_s.size, np.int64)
    n_again = n_absent = 0
    for line, (now_s, adds, node) in enumerate(zip(at_s.tolist(), is_add.tolist(), nodes)):
        if adds and node in place_of:
            n_again += 1
        elif adds:
            place = next(place for place in range(len(taken) + 1) if place not in taken)
            taken.add(place)
            place_of[node] = (place, now_s)
        elif node in place_of:
            place, from_s = place_of.pop(node)
            taken.remove(place)
            if now_s > from_s:
                stays.append((place, from_s, now_s))
        else:
            n_absent += 1
        counts[line] = len(place_of)
    stays.extend((place, from_s, np.inf) for place, from_s in place_of.values())
    return ordered(np.array(stays, STAY)), counts, n_again, n_absent


def _counts(path: Path, records: list[list[str]]) -> CapacityTrace:
    """The layout `date, time, count`."""
    dropped, repaired = Counter[str](), Counter[str]()
    kept = [cells for cells in records if len(cells) == 3]
    dropped["not three cells"] = len(records) - len(kept)
    when = csv_file.instants([f"{cells[0]} {cells[1]}" for cells in kept])
    numbers = csv_file.numbers([cells[2] for cells in kept])
    is_good = ~np.isnat(when) & (numbers >= 0) & (numbers <= MAX_NODES)
    dropped["no date and time, or no count"] = int((~is_good).sum())
    when, numbers = when[is_good], numbers[is_good]
    if when.size == 0 or when.min() == when.max():
        raise TraceError(f"{path}: empty trace: {when.size} usable lines of {len(records)} span no time")
    repaired["fraction of a node: rounded down"] = int((numbers != np.floor(numbers)).sum())
    counts = np.floor(numbers).astype(np.int64)
    is_back = np.diff(when) < np.timedelta64(0, "ms")
    latest_after = np.minimum.accumulate(when[::-1])[::-1]
    stands = np.append(when[:-1] < latest_after[1:], True)
    repaired["count overtaken by a later line of the same or an earlier time: left out"] = int((~stands).sum())
    at_s = (when[stands] - when.min()) / np.timedelta64(1, "s")
    span_s = float((when.max() - when.min()) / np.timedelta64(1, "s"))
    first, last = _stamp(when[0]), _stamp(when[-1])
    statistics: dict[str, Any] = {
        "rows": int(when.size),
        "header": False,
        "columns": "date, time, node count (comma+space)",
        "first": first,
        "last": last,
        "sorted": not bool(is_back.any()),
        "n_time_going_back": int(is_back.sum()),
        "count": describe(counts.astype(np.float64)),
    }
    report = LoadReport(
        format="bamboo",
        files=(path.name,),
        time_base="naive date and time, zone not stated",
        units={"count": "nodes"},
        rows_read=len(records),
        rows_kept=int(when.size),
        repaired=_counted(repaired),
        dropped=_counted(dropped),
        noted=_counted({"lines whose time goes back": int(is_back.sum())}),
        first=first,
        last=last,
        gpu_hours={},
    )
    stays = stays_of_counts(at_s, counts[stands])
    return CapacityTrace(stays, int(counts[stands].max()), span_s, report, statistics)


def _counted(reasons: Mapping[str, int]) -> dict[str, int]:
    """Reasons that occurred."""
    return {reason: count for reason, count in reasons.items() if count}


def _stamp(instant: np.datetime64) -> str:
    return str(instant.astype("datetime64[s]")).replace("T", " ")

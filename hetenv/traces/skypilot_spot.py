"""Spot traces of SkyPilot (Wu et al., NSDI 2024): JSON with `metadata.gap_seconds` and `data`, instances per tick.

Availability traces say how many instances could be had, preemption traces how many were alive; both are read alike.
Tick i holds from i x gap to (i + 1) x gap. Rules, each counted in the report: a tick that is no number, negative or
above MAX_NODES takes the value of the tick before it (0 at the start); a fraction is rounded down.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import TraceError
from hetenv.traces import csv_file
from hetenv.traces.capacity import CapacityTrace, stays_of_counts
from hetenv.traces.trace import LoadReport
from hetenv.units import DAY_S

DECIMALS: Final = 6
MAX_NODES: Final = 1_000_000
_BAD: Final = "tick that is no count: value of the tick before"


def load(path: Path) -> CapacityTrace:
    """The trace of one file.

    Raises:
        TraceError: unreadable, not of this format, or no usable tick.
    """
    content, gap_s = _content(path)
    repaired = Counter[str]()
    counts = _counts(content["data"], repaired)
    if counts.size == 0 or repaired[_BAD] == counts.size:
        raise TraceError(f"{path}: empty trace: no usable tick among {counts.size}")
    at_s = np.arange(counts.size, dtype=np.float64) * gap_s
    report = LoadReport(
        format="skypilot_spot",
        files=(path.name,),
        time_base="seconds since the first tick; the file names no date",
        units={"data": "nodes", "gap_seconds": "s"},
        rows_read=counts.size,
        rows_kept=counts.size,
        repaired={reason: count for reason, count in repaired.items() if count},
        dropped={},
        noted={},
        first="0 s",
        last=f"{at_s[-1]:g} s",
        gpu_hours={},
    )
    span_s = float(counts.size * gap_s)
    statistics = _statistics(content, counts, gap_s)
    return CapacityTrace(stays_of_counts(at_s, counts), int(counts.max()), span_s, report, statistics)


def _content(path: Path) -> tuple[dict[str, Any], float]:
    """The file's object and its gap, s."""
    try:
        content = json.loads(csv_file.text(path))
    except ValueError as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError(f"{path}: not JSON: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("data"), list):
        raise TraceError(f"{path}: no list `data`; the format is {{metadata: {{gap_seconds}}, data: [...]}}")
    metadata = content.get("metadata")
    gap_s = metadata.get("gap_seconds") if isinstance(metadata, dict) else None
    if isinstance(gap_s, bool) or not isinstance(gap_s, int | float) or not 0 < gap_s < np.inf:
        raise TraceError(f"{path}: metadata.gap_seconds must be a number of seconds above 0 (got {gap_s!r})")
    return content, float(gap_s)


def _counts(data: list[Any], repaired: Counter[str]) -> NDArray[np.int64]:
    """[ticks] nodes per tick."""
    numbers = np.array([x if isinstance(x, int | float) and abs(x) < 1e18 else np.nan for x in data], np.float64)
    good = (numbers >= 0) & (numbers <= MAX_NODES)
    last_good = np.maximum.accumulate(np.where(good, np.arange(numbers.size), -1))
    held = np.where(last_good >= 0, numbers[last_good], 0.0)
    repaired[_BAD] = int((~good).sum())
    repaired["fraction of a node: rounded down"] = int((good & (numbers != np.floor(numbers))).sum())
    return np.floor(held).astype(np.int64)


def _statistics(content: dict[str, Any], counts: NDArray[np.int64], gap_s: float) -> dict[str, Any]:
    """Drops and rises are ticks whose count is below or above that of the tick before; runs are of ticks with any node."""
    steps = np.diff(counts)
    span_days = counts.size * gap_s / DAY_S
    sizes, ticks = np.unique(counts, return_counts=True)
    return {
        "keys": list(content),
        "metadata": content["metadata"],
        "n": int(counts.size),
        "span_days": round(span_days, DECIMALS),
        "max_capacity": int(counts.max()),
        "mean_available": round(float(counts.mean()), DECIMALS),
        "share_full": round(float((counts == counts.max()).mean()), DECIMALS),
        "share_zero": round(float((counts == 0).mean()), DECIMALS),
        "n_drops": int((steps < 0).sum()),
        "n_nodes_lost": int(-steps[steps < 0].sum()),
        "n_rises": int((steps > 0).sum()),
        "drops_per_day": round(float((steps < 0).sum()) / span_days, DECIMALS),
        "mean_up_run_s": _mean_run_s(counts > 0, gap_s),
        "mean_down_run_s": _mean_run_s(counts == 0, gap_s),
        "hist": {str(size): int(n) for size, n in zip(sizes, ticks)},
    }


def _mean_run_s(is_in: NDArray[np.bool_], gap_s: float) -> float:
    """Mean length of a run of ticks, those cut off by the ends included; 0 where there is none."""
    n_runs = int((is_in & ~np.concatenate([[False], is_in[:-1]])).sum())
    return round(float(is_in.sum()) * gap_s / n_runs, DECIMALS) if n_runs else 0.0

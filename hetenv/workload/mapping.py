"""Which class a traced job without a profile belongs to: seeded mappings from GPU count and run time to a model.

Three ship (catalog/trace_mappings.csv): `vision`, `language`, `mixed`. None is in any trace: claim a result on a trace
only if it holds under all three. A job falls into the first group whose `max_gpus` and `max_h` it does not exceed
(empty: no bound) and takes one of the group's models by share. The draw depends on the seed and the job's place in the
trace alone: one job has one class in every window and episode. A job keeps the trace's run time and GPU count: its work
is that run time at the speed of its class's fastest configuration of that size.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.units import HOUR_S
from hetenv.workload.job_class import AnalyticClass

TABLE: Final = Path(__file__).resolve().parent.parent / "catalog/trace_mappings.csv"
GPU_COUNTS: Final = (1, 2, 4, 8, 16, 32, 64)
"""Sizes of the mappings' classes; a job of another size fits nowhere."""


@dataclass(frozen=True)
class Group:
    """Jobs of one range and the shares of their classes."""

    max_gpus: float
    max_s: float
    shares: Mapping[str, float]


@cache
def mappings() -> dict[str, tuple[Group, ...]]:
    """Name -> groups in the order in which a job tries them."""
    found: dict[str, dict[tuple[float, float], dict[str, float]]] = {}
    for row in _rows():
        bounds = float(row["max_gpus"] or np.inf), float(row["max_h"] or np.inf) * HOUR_S
        found.setdefault(row["mapping"], {}).setdefault(bounds, {})[class_name(row)] = float(row["share"])
    return {name: tuple(Group(*bounds, shares) for bounds, shares in groups.items()) for name, groups in found.items()}


def classes(mapping: str) -> dict[str, AnalyticClass]:
    """The classes of a mapping, by name; a scenario's own of the same name go before them."""
    rows = [row for row in _rows() if row["mapping"] == mapping]
    return {
        class_name(row): AnalyticClass(model=row["model"], global_batch=int(row["global_batch"]), gpu_counts=GPU_COUNTS)
        for row in rows
    }


def class_name(row: Mapping[str, str]) -> str:
    """Of a row of the table: model and batch."""
    return f"{row['model']}_b{row['global_batch']}"


def assign(mapping: str, gpus: NDArray[np.int32], duration_s: NDArray[np.float64], seed: int) -> NDArray[np.str_]:
    """[R] class names of a whole trace's jobs.

    Args:
        gpus: [R].
        duration_s: [R]; a NaN counts as longer than any bound.
    """
    drawn = np.random.default_rng(seed).random(gpus.size)
    found = np.empty(gpus.size, dtype="U64")
    is_open = np.ones(gpus.size, bool)
    for group in mappings()[mapping]:
        mine = is_open & (gpus <= group.max_gpus) & (np.nan_to_num(duration_s, nan=np.inf) <= group.max_s)
        names, shares = np.array(list(group.shares)), np.cumsum(list(group.shares.values()))
        found[mine] = names[np.searchsorted(shares[:-1], drawn[mine] * shares[-1], side="right")]
        is_open &= ~mine
    return found


@cache
def _rows() -> tuple[dict[str, str], ...]:
    with TABLE.open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))

"""How the CONFIG rows of a class compare: the order in which they are offered, and the columns that say how good one is."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.cluster import NO_POOL

ALL_PAIRS: Final = -2
"""Where `preference` counts every row of two pools."""
GPU_PRICES: Final = (0.0, np.inf, 0.25, 0.05)
"""Prices of a GPU against a job's own time for which `preference` picks the best row of each pool, in turn."""


def fill_comparisons(table: NDArray[np.void], classes: NDArray[np.void], n_pools: int) -> None:
    """Write the columns that compare a row with others: efficiency and advantage."""
    per_gpu = table["rate"] / table["n_gpus"]
    best = np.zeros((classes.size, n_pools))
    alone = table["pool_b"] == NO_POOL
    alone |= ~np.isin(table["job_class"], table["job_class"][alone])
    np.maximum.at(best, (table["job_class"][alone], table["pool_a"][alone]), per_gpu[alone])
    relative = best / best.max(axis=1, keepdims=True)
    suited = relative > 0
    mean = relative.sum(axis=0) / np.maximum(suited.sum(axis=0), 1)
    table["efficiency"] = per_gpu / best.max(axis=1)[table["job_class"]]
    table["advantage"] = relative[table["job_class"], table["pool_a"]] / mean[table["pool_a"]]


def preference(rows: NDArray[np.void], work_weight: float, energy_weight: NDArray[np.float64]) -> NDArray[np.int64]:
    """Order of one class's rows: for each GPU price in turn the best row of each pool and of all pairs, then the rest by cost.

    The cost of a row per unit of work is (work_weight x (1 + price x GPUs) / rate + energy); price 0 is the fastest way,
    an infinite price the way with the most work per GPU, and the prices between give the sizes between.
    """
    place = np.where(rows["pool_b"] == NO_POOL, rows["pool_a"], ALL_PAIRS)
    energy = rows["energy_per_work_j"] * energy_weight[rows["pool_a"]]
    order: list[int] = []
    for price in GPU_PRICES:
        held = rows["n_gpus"] if np.isinf(price) else 1 + price * rows["n_gpus"]
        cost = max(work_weight, 1e-12) * held / rows["rate"] + energy
        ranked = np.lexsort((rows["n_gpus"], rows["tier"], cost))
        best = {int(place[k]): int(k) for k in ranked[::-1]}
        order.extend(k for k in sorted(best.values(), key=lambda k: (cost[k], k)) if k not in order)
    cost = work_weight / rows["rate"] + energy
    taken = set(order)
    order.extend(int(k) for k in np.lexsort((rows["n_gpus"], rows["tier"], cost)) if int(k) not in taken)
    return np.array(order, np.int64)

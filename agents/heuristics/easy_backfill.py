"""EASY backfilling (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; Mu'alem and Feitelson, TPDS 2001)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.view import View

from .sizing import gpu_prices


@dataclass(frozen=True)
class Reservation:
    """Where and when the head of the queue is to start.

    Attributes:
        config: CONFIG row.
        start_s: believed; now if it can start at once.
        spare: [P] GPUs that others may hold beyond start_s.
    """

    config: int
    start_s: float
    spare: NDArray[np.float64]


class EasyBackfill:
    """EASY: the head of the FIFO queue has a reservation, others start before it if they do not delay it.

    The head's reservation is the configuration with the least (wait + run time x (1 + price x GPUs)), where a pool has room once enough
    running jobs have ended, as believed; the head starts when that is now. While it waits, later jobs start in order of submit if they
    end by its start, as believed, or take only GPUs that it does not need then. Only the head has a reservation. A running job that
    outlives its estimate may delay it. Nothing that runs is changed.
    """

    name = "easy_backfill"

    def reset(self, seed: int) -> None:
        """Nothing to begin."""

    def plan(self, view: View) -> Iterator[Order]:
        """Start heads, then backfill around the first that has to wait."""
        while (queue := view.queue()).size:
            prices = gpu_prices(view, queue.size - 1)
            reserved = reserve(view, int(queue[0]), prices)
            if reserved is not None and reserved.start_s <= view.now_s:
                yield Order(Command.START, int(queue[0]), reserved.config)
                continue
            until_s, spare = (np.inf, None) if reserved is None else (reserved.start_s, reserved.spare)
            start = view.first_fit(queue[1:], prices, until_s=until_s, spare=spare)
            if start is None:
                return
            yield Order(Command.START, *start)


def reserve(view: View, job: int, prices: NDArray[np.float64]) -> Reservation | None:
    """The reservation of a queued job; None if it fits nowhere even when all running jobs have ended."""
    releases = _releases(view)
    legal = set(view.options(job).tolist())
    left = view.jobs([job])["believed_left_work"][0]
    best: Reservation | None = None
    best_cost = np.inf
    for config in view.allowed(job).tolist():
        row = view.configs[config]
        parts = [(int(row["pool_a"]), int(row["gpus_a"]))]
        if row["pool_b"] >= 0:
            parts.append((int(row["pool_b"]), int(row["gpus_b"])))
        start_s = view.now_s
        if config not in legal:
            start_s = max(_room_s(*releases[pool], gpus, view.now_s) for pool, gpus in parts)
        held = 1.0 + sum(prices[pool] * gpus for pool, gpus in parts)
        cost = start_s - view.now_s + held * (left / row["rate"] + view.start_overhead_s(job, config))
        if cost < best_cost:
            spare = np.full(prices.size, np.inf)
            for pool, gpus in parts:
                ends_s, free = releases[pool]
                spare[pool] = free[np.searchsorted(ends_s, start_s, "right") - 1] - gpus
            best, best_cost = Reservation(config, start_s, spare), cost
    return best


def _releases(view: View) -> list[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """For each pool the believed ends of its running jobs, now first, and how many GPUs are free from each on."""
    running = view.jobs(view.running())
    ends_s = view.now_s + running["present_left_s"]
    configs = view.configs[running["config"]]
    found = []
    for pool, free in enumerate(view.free_gpus):
        gpus = np.where(configs["pool_a"] == pool, configs["gpus_a"], 0)
        gpus = gpus + np.where(configs["pool_b"] == pool, configs["gpus_b"], 0)
        order = np.argsort(ends_s, kind="stable")
        order = order[gpus[order] > 0]
        found.append((np.concatenate([[view.now_s], ends_s[order]]), free + np.concatenate([[0], np.cumsum(gpus[order])])))
    return found


def _room_s(ends_s: NDArray[np.float64], free: NDArray[np.int64], gpus: int, now_s: float) -> float:
    """When a pool that cannot take the GPUs now has that many free, after now; inf if never."""
    later = np.flatnonzero((free >= gpus) & (ends_s > now_s))
    return float(ends_s[later[0]]) if later.size else np.inf

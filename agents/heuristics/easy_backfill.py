"""EASY backfilling (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; Mu'alem and Feitelson, TPDS 2001)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.view import View

from .queue_scores import Score, submit
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
    """EASY: the head of the queue has a reservation, others start before it if they do not delay it.

    The head is the job with the least score (FIFO: the oldest), ties by submit; scores are taken afresh whenever a job came or went
    or capacity changed, so that an instant at which nothing happened changes nothing. The head's
    reservation is the configuration with the least (wait + run time x (1 + price x GPUs)), where a pool has room once enough running
    jobs have ended, as believed; the head starts when that is now. While it waits, the others start in order of score if they end by
    its start, as believed, or take only GPUs that it does not need then. Only the head has a reservation. A running job that outlives
    its estimate may delay it. Nothing that runs is changed.
    """

    def __init__(self, name: str = "easy_backfill", score: Score = submit) -> None:
        self.name, self._score = name, score
        self._left: tuple[list[int], list[int]] | None = None

    def reset(self, seed: int) -> None:
        """Nothing was left."""
        self._left = None

    def plan(self, view: View) -> Iterator[Order]:
        """Start heads, then backfill around the first that has to wait."""
        if not view.free_gpus.any():
            return
        queue = view.queue()
        if self._score is not submit:
            if self._left == (queue.tolist(), view.free_gpus.tolist()):
                return
            rows = view.jobs(queue)
            queue = queue[np.argsort(self._score(rows, view.now_s - rows["submit_s"]), kind="stable")]
        while queue.size:
            prices = gpu_prices(view, queue.size - 1)
            reserved = reserve(view, int(queue[0]), prices)
            if reserved is not None and reserved.start_s <= view.now_s:
                start = (int(queue[0]), reserved.config)
            else:
                until_s, spare = (np.inf, None) if reserved is None else (reserved.start_s, reserved.spare)
                found = view.first_fit(queue[1:], prices, until_s=until_s, spare=spare)
                if found is None:
                    self._left = (np.sort(queue).tolist(), view.free_gpus.tolist())
                    return
                start = found
            queue = queue[queue != start[0]]
            yield Order(Command.START, *start)
            if not view.free_gpus.any():
                return


def reserve(view: View, job: int, prices: NDArray[np.float64]) -> Reservation | None:
    """The reservation of a queued job; None if it fits nowhere even when all running jobs have ended."""
    allowed = view.allowed(job)
    rows = view.configs[allowed]
    held = 1.0 + prices[rows["pool_a"]] * rows["gpus_a"] + np.where(rows["pool_b"] >= 0, prices[rows["pool_b"]] * rows["gpus_b"], 0.0)
    costs = held * (view.jobs([job])["believed_left_work"][0] / rows["rate"] + view.start_overheads_s(job, allowed))
    cheapest = int(np.argmin(costs))
    if view.is_legal(Command.START, job, int(allowed[cheapest])):
        return Reservation(int(allowed[cheapest]), view.now_s, np.full(prices.size, np.inf))
    (ends_s, free), legal = view.releases(), set(view.options(job).tolist())
    best: Reservation | None = None
    best_cost = np.inf
    for config, row, cost in zip(allowed.tolist(), rows, costs.tolist()):
        parts = [(int(row["pool_a"]), int(row["gpus_a"]))]
        if row["pool_b"] >= 0:
            parts.append((int(row["pool_b"]), int(row["gpus_b"])))
        start_s = view.now_s
        if config not in legal:
            start_s = max(_room_s(ends_s, free[pool], gpus, view.now_s) for pool, gpus in parts)
        if start_s - view.now_s + cost < best_cost:
            spare = np.full(prices.size, np.inf)
            for pool, gpus in parts:
                spare[pool] = free[pool, np.searchsorted(ends_s, start_s, "right") - 1] - gpus
            best, best_cost = Reservation(config, start_s, spare), start_s - view.now_s + cost
    return best


def _room_s(ends_s: NDArray[np.float64], free: NDArray[np.int64], gpus: int, now_s: float) -> float:
    """When a pool that cannot take the GPUs now has released some and has that many free, after now; inf if never."""
    releases = np.diff(free, prepend=free[0]) > 0
    later = np.flatnonzero((free >= gpus) & (ends_s > now_s) & releases)
    return float(ends_s[later[0]]) if later.size else np.inf

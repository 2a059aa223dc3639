"""A queue whose head is fixed until it starts: the rule of RLScheduler's simulator (Zhang et al., SC 2020)."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.view import View

from . import queue_scores
from .queue_scores import Score
from .standing import updated

UNSCHEDULED_S: Final = -1.0
"""Start time of a job that has none, in the original."""
NOBODY: Final = -1


class ReservedHead:
    """The job with the least score starts or, where it does not fit, is the head until it does; then the next is chosen.

    Scores are compared when a head is chosen, ties in the order in which the queue stood before. With `backfill`, while the head
    waits, jobs start in order of submit that fit now and end, as estimated, strictly before the head's reservation: the estimated
    end (start + estimate) of the running job at which enough GPUs are released in that order, computed once, when the head is
    chosen; a head that then waits longer keeps it. Nothing that runs is changed. Source: DIR-LAB/deep-batch-scheduler,
    HPCSimPickJobs.py; the clock that goes with it is `one_by_one`.

    `unscheduled_wait` takes the wait of a job as the original does, with -1 for the start of a job that has not started: WFP3 and
    UNICEP become rules of the submit time.
    """

    def __init__(self, name: str, score: Score, backfill: bool = False, unscheduled_wait: bool = False) -> None:
        self.name, self._score, self._backfill, self._unscheduled_wait = name, score, backfill, unscheduled_wait
        self.reset(0)

    def reset(self, seed: int) -> None:
        """An empty queue."""
        self._queue = np.empty(0, np.int64)
        self._head, self._reserved_s = NOBODY, np.inf
        self._ends_s: dict[int, float] = {}

    def plan(self, view: View) -> Iterator[Order]:
        """Start heads; backfill around the one that has to wait."""
        self._queue = updated(self._queue, view.queue())
        while True:
            if self._head not in self._queue:
                if not self._queue.size:
                    return
                self._choose(view)
            start = view.first_fit(np.array([self._head]))
            if start is None:
                break
            yield self._start(view, *start)
        if not self._backfill:
            return
        self._queue = self._queue[np.argsort(view.jobs(self._queue)["submit_s"], kind="stable")]
        while True:
            others = self._queue[self._queue != self._head]
            start = view.first_fit(others, until_s=float(np.nextafter(self._reserved_s, -np.inf)))
            if start is None:
                return
            yield self._start(view, *start)

    def _start(self, view: View, job: int, config: int) -> Order:
        """The order, noted before it is carried out."""
        self._queue = self._queue[self._queue != job]
        run_s = view.jobs([job])["believed_left_work"][0] / view.configs["rate"][config]
        self._ends_s[job] = view.now_s + view.start_overhead_s(job, config) + float(run_s)
        return Order(Command.START, job, config)

    def _choose(self, view: View) -> None:
        rows = view.jobs(self._queue)
        wait_s = (UNSCHEDULED_S if self._unscheduled_wait else view.now_s) - rows["submit_s"]
        self._queue = self._queue[np.argsort(self._score(rows, wait_s), kind="stable")]
        self._head = int(self._queue[0])
        self._reserved_s = self._reserve_s(view) if self._backfill else np.inf

    def _reserve_s(self, view: View) -> float:
        """Estimated time at which the head has room in one of its configurations; inf if none is in sight."""
        running = view.running()
        rows = view.jobs(running)
        ends_s = np.array([self._ends_s.get(job, np.inf) for job in running.tolist()])
        order = np.argsort(ends_s, kind="stable")
        present, ends_s = view.configs[rows["config"]][order], ends_s[order]
        return min((_room_s(view, option, present, ends_s) for option in view.configs[view.allowed(self._head)]), default=np.inf)


def _room_s(view: View, option: np.void, present: NDArray[np.void], ends_s: NDArray[np.float64]) -> float:
    """When the pools of a configuration have its GPUs free, by the ends of the running ones in order; -inf: now."""
    at_s = -np.inf
    for pool, gpus in ((int(option["pool_a"]), int(option["gpus_a"])), (int(option["pool_b"]), int(option["gpus_b"]))):
        if pool < 0:
            continue
        held = np.where(present["pool_a"] == pool, present["gpus_a"], 0) + np.where(present["pool_b"] == pool, present["gpus_b"], 0)
        free = int(view.free_gpus[pool]) + np.concatenate([[0], np.cumsum(held)])
        enough = np.flatnonzero(free >= gpus)
        at_s = max(at_s, np.inf if not enough.size else -np.inf if enough[0] == 0 else float(ends_s[enough[0] - 1]))
    return at_s


def heads() -> dict[str, Callable[[str | None], ReservedHead]]:
    """NAME_head and NAME_head_backfill for the rules that the original compares; those that look at waits also as it does."""
    scores = {
        "fcfs": queue_scores.submit,
        "sjf": queue_scores.run_time,
        "wfp3": queue_scores.wfp3,
        "unicep": queue_scores.unicep,
        "f1": queue_scores.f1,
    }
    found = {}
    for name, score in scores.items():
        for backfill, unscheduled in product((False, True), (False, True) if name in ("wfp3", "unicep") else (False,)):
            full = f"{name}_head" + ("_backfill" if backfill else "") + ("_unscheduled_wait" if unscheduled else "")
            found[full] = partial(_made, full, score, backfill, unscheduled)
    return found


def _made(name: str, score: Score, backfill: bool, unscheduled_wait: bool, scenario: str | None) -> ReservedHead:
    return ReservedHead(name, score, backfill, unscheduled_wait)

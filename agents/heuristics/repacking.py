"""Sharing the cluster out afresh at every decision, in an order of all jobs: who is left out is preempted."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.view import View

from .sizing import ACCEPT, gpu_prices
from .standing import Ids, updated

Key = Callable[[NDArray[np.void]], NDArray[np.float64]]


class Repacking:
    """All jobs, running or waiting, in the order of a key; each in turn gets its GPUs if enough are left, others pass it by.

    Jobs that run and get none are preempted, jobs that wait and get some start; running jobs keep their configurations, waiting ones
    take one as in `fifo`. This happens at every decision, without thresholds, and ties keep the order of the decision before (at
    first: of submit). Where nodes are too fragmented for a start, it and the preemptions for it are left out.
    The rule of the preemptive orders in Tiresias' simulator (Gu et al., NSDI 2019).
    """

    def __init__(self, name: str, key: Key) -> None:
        self.name, self._key = name, key
        self.reset(0)

    def reset(self, seed: int) -> None:
        """No jobs."""
        self._order: Ids = np.empty(0, np.int64)

    def plan(self, view: View) -> Iterator[Order]:
        """Preempt and start."""
        order = updated(self._order, np.concatenate([view.queue(), view.running()]))
        self._order = order = order[np.argsort(self._key(view.jobs(order)), kind="stable")]
        yield from repack(view, order, share_out(view, order))


def share_out(view: View, order: Ids) -> Ids:
    """[n] the configuration that each job of an order of all jobs should have now (-1: none)."""
    return view.pack(order, gpu_prices(view, view.n_queued - 1), ACCEPT)


def repack(view: View, order: Ids, configs: Ids, wake_s: float = np.inf) -> Iterator[Order]:
    """Give every job its configuration of `share_out`, preempting those that should have none, last of the order first."""
    is_running = view.jobs(order)["is_running"] == 1
    gone = order[is_running & (configs < 0)][::-1]
    starts = np.flatnonzero(~is_running & (configs >= 0))
    for job, config in zip(order[starts].tolist(), configs[starts].tolist()):
        if not view.is_legal(Command.START, job, config):
            n = _fewest(view, job, config, gone)
            if n == 0:
                continue
            if view.commands_left <= n:
                return
            for victim in gone[:n].tolist():
                yield Order(Command.PREEMPT, victim, wake_s=wake_s)
            gone = gone[n:]
        yield Order(Command.START, job, config, wake_s)
    while (start := view.first_fit(order, gpu_prices(view, view.n_queued - 1), ACCEPT)) is not None:
        yield Order(Command.START, *start, wake_s)
    if wake_s < np.inf:
        yield Order(Command.WAIT, wake_s=wake_s)


def _fewest(view: View, job: int, config: int, gone: Ids) -> int:
    """How many of `gone`, the first ones, have to go so that a job's configuration has its place; 0 if all do not suffice."""
    if not gone.size or not view.fits(job, config, gone):
        return 0
    few, enough = 1, gone.size
    while few < enough:
        half = (few + enough) // 2
        if view.fits(job, config, gone[:half]):
            enough = half
        else:
            few = half + 1
    return int(enough)


def smallest(rows: NDArray[np.void]) -> NDArray[np.float64]:
    """Fewest GPUs first."""
    return np.asarray(rows["min_gpus"], np.float64)


def time_left(rows: NDArray[np.void]) -> NDArray[np.float64]:
    """Least believed time left over weight first: SRPT, strict."""
    return np.asarray(rows["believed_left_s"] / rows["weight"])


def service_left(rows: NDArray[np.void]) -> NDArray[np.float64]:
    """Least believed time left x GPUs over weight first: SRSF."""
    return np.asarray(rows["believed_left_s"] * rows["min_gpus"] / rows["weight"])

"""Shortest remaining time first, with preemption and growth."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.view import View
from hetenv.workload.requests import Elasticity

from .preemption import MAX_TRIED, make_room, victims
from .sizing import ACCEPT, gpu_prices

RATIO = 3.0
"""A running job gives way only to one that needs less than 1/RATIO of its time left, both over weight."""
GROWTH = 1.3
"""A malleable job is resized only if its time left, the change included, falls by this factor."""


class ShortestRemainingTimeFirst:
    """SRTF: jobs start as in `sjf`; then the shortest jobs that found no room may preempt longer ones.

    For each of the MAX_TRIED shortest waiting jobs, running jobs whose believed time left over weight is more than RATIO times its
    own (restart overhead included) give way, longest first, if that makes room for a configuration the job accepts. Where the
    queue is empty, malleable running jobs take free GPUs if that shortens them by GROWTH. A job is preempted or
    resized at most once per instant.
    """

    name = "srtf"

    def reset(self, seed: int) -> None:
        """Nothing to begin."""

    def plan(self, view: View) -> Iterator[Order]:
        """Start, preempt, grow."""
        queue = view.queue()
        rows = view.jobs(queue)
        queue = queue[np.argsort(rows["believed_left_s"] / rows["weight"], kind="stable")]
        while (start := view.first_fit(queue, gpu_prices(view, view.n_queued - 1), ACCEPT)) is not None:
            yield Order(Command.START, *start)
        yield from self._preempt(view, queue)
        if view.n_queued == 0:
            yield from self._grow(view)

    def _preempt(self, view: View, queue: NDArray[np.int64]) -> Iterator[Order]:
        if not queue.size:
            return
        waiting = view.jobs(queue)
        waiting = waiting[(waiting["is_running"] == 0) & (waiting["had_command"] == 0)]
        running = None
        for row in waiting[:MAX_TRIED]:
            if running is None:
                running = view.jobs(view.running())
                time_s = running["present_left_s"] / running["weight"]
                may_go = (running["preemptible"] == 1) & (running["had_command"] == 0)
            longer = may_go & (time_s > RATIO * self._time_s(view, row))
            order = np.flatnonzero(longer)[np.argsort(-time_s[longer], kind="stable")]
            if not order.size:
                return
            prices = gpu_prices(view, view.n_queued - 1)
            found = victims(view, int(row["job"]), running["job"][order].astype(np.int64), prices, ACCEPT)
            if found is not None:
                yield from make_room(view, int(row["job"]), found[1], found[0])
                running = None

    def _time_s(self, view: View, row: np.void) -> float:
        """Believed time left of a waiting job, restart included, over its weight."""
        overhead_s = view.start_overhead_s(int(row["job"]), int(view.allowed(int(row["job"]))[0]))
        return float((row["believed_left_s"] + overhead_s) / row["weight"])

    def _grow(self, view: View) -> Iterator[Order]:
        rows = view.jobs(view.running())
        elastic = (rows["elasticity"] == Elasticity.MALLEABLE) & (rows["preemptible"] == 1) & (rows["had_command"] == 0)
        for row in rows[elastic]:
            options = view.options(int(row["job"]))
            if not options.size:
                continue
            left_s = row["believed_left_work"] / view.configs["rate"][options] + view.start_overheads_s(int(row["job"]), options)
            best = int(np.argmin(left_s))
            if left_s[best] * GROWTH < row["present_left_s"]:
                yield Order(Command.CHANGE, int(row["job"]), int(options[best]))

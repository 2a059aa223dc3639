"""Least attained service in discrete levels, with preemption (Tiresias: Gu et al., NSDI 2019, "2D-LAS")."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.units import HOUR_S
from hetenv.view import View

from .preemption import MAX_TRIED, make_room, victims
from .sizing import ACCEPT, gpu_prices

LEVELS_GPU_S: Final = (1.0 * HOUR_S, 8.0 * HOUR_S)
"""Attained service, GPU seconds over weight, at which a job sinks one level."""
MIN_STINT_S: Final = 600.0
"""A job runs at least this long before it may be preempted."""


class LeastAttainedService:
    """LAS in three levels of attained GPU seconds over weight; knows no run times.

    Waiting jobs start by (level, submit) with greedy skip, configurations as in `fifo`. The first MAX_TRIED waiting jobs that found
    no room preempt running jobs of deeper levels that have run for MIN_STINT_S, most attained service first. Attained service only
    grows, so jobs of one level never preempt each other in turn.
    """

    name = "las"

    def reset(self, seed: int) -> None:
        """Nothing to begin."""

    def plan(self, view: View) -> Iterator[Order]:
        """Start, then preempt."""
        queue = view.queue()
        rows = view.jobs(queue)
        queue = queue[np.argsort(_level(rows), kind="stable")]
        while (start := view.first_fit(queue, gpu_prices(view, view.n_queued - 1), ACCEPT)) is not None:
            yield Order(Command.START, *start)
        waiting = view.jobs(queue)
        waiting = waiting[(waiting["is_running"] == 0) & (waiting["had_command"] == 0)]
        running = None
        for row, level in zip(waiting[:MAX_TRIED], _level(waiting)):
            if running is None:
                running = view.jobs(view.running())
                levels, served = _level(running), running["attained_gpu_s"] / running["weight"]
                may_go = (running["preemptible"] == 1) & (running["had_command"] == 0)
                may_go &= view.now_s - running["ready_s"] >= MIN_STINT_S
            deeper = may_go & (levels > level)
            order = np.flatnonzero(deeper)[np.argsort(-served[deeper], kind="stable")]
            if not order.size:
                continue
            prices = gpu_prices(view, view.n_queued - 1)
            found = victims(view, int(row["job"]), running["job"][order].astype(np.int64), prices, ACCEPT)
            if found is not None:
                yield from make_room(view, int(row["job"]), found[1], found[0])
                running = None


def _level(rows: NDArray[np.void]) -> NDArray[np.int64]:
    """[n] level of each job, 0 the first to be served."""
    return np.searchsorted(LEVELS_GPU_S, rows["attained_gpu_s"] / rows["weight"], "right").astype(np.int64)

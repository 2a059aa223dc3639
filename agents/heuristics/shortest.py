"""Shortest job first, without preemption."""

from collections.abc import Iterator

import numpy as np

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.view import View

from .sizing import ACCEPT, gpu_prices


class ShortestJobFirst:
    """SJF with greedy skip: by believed time left at the fastest configuration over weight, each job that can start now does.

    Nothing that runs is changed. Configurations as in `fifo`.
    """

    name = "sjf"

    def reset(self, seed: int) -> None:
        """Nothing to begin."""

    def plan(self, view: View) -> Iterator[Order]:
        """Start whatever fits, shortest first."""
        if not view.free_gpus.any():
            return
        queue = view.queue()
        rows = view.jobs(queue)
        shortest_first = queue[np.argsort(rows["believed_left_s"] / rows["weight"], kind="stable")]
        while (start := view.first_fit(shortest_first, gpu_prices(view, view.n_queued - 1), ACCEPT)) is not None:
            yield Order(Command.START, *start)

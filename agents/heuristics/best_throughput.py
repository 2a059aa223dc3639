"""Best throughput: the job and the configuration with the most normalised work for their GPUs."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.view import View

from .kinds import kinds_of
from .sizing import ACCEPT, gpu_prices


class BestThroughput:
    """Greedy for the sum of normalised throughputs (the aim of `max-sum-throughput` in Gavel: Narayanan et al., OSDI 2020).

    Each kind of job offers its configuration of least cost (`sizing`, as in `fifo`); the kind with the highest work per GPU
    second, over the best of its class, starts its oldest job. So pools go to the classes they suit, and whatever
    fits starts. Knows neither run times nor an order of kinds: a kind that suits no free pool waits longest. Nothing that runs
    is changed.
    """

    name = "best_throughput"

    def reset(self, seed: int) -> None:
        """Nothing to begin."""

    def plan(self, view: View) -> Iterator[Order]:
        """Start the best kind's oldest job until nothing fits."""
        while (start := best_start(view, view.queue())) is not None:
            yield Order(Command.START, *start)


def best_start(view: View, queue: NDArray[np.int64]) -> tuple[int, int] | None:
    """Job and configuration; None if nothing fits. Ties go to the kind that came first."""
    kinds = kinds_of(view.jobs(queue))
    prices = gpu_prices(view, queue.size - 1)
    starts = [view.first_fit(queue[kinds == kind], prices, ACCEPT) for kind in range(int(kinds.max(initial=-1)) + 1)]
    found = [start for start in starts if start is not None]
    return max(found, key=lambda start: float(view.configs["efficiency"][start[1]]), default=None)

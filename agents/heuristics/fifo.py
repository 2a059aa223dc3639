"""First come, first served: strict, and with greedy skipping."""

from collections.abc import Iterator

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.view import View

from .sizing import ACCEPT, gpu_prices


class Fifo:
    """Strict FIFO: jobs start in order of submit; while the head cannot start, nobody does. Nothing that runs is changed.

    The head takes the configuration of least cost (`sizing`) among those that fit now, and waits if that costs more than ACCEPT
    times its best one.
    """

    name = "fifo"

    def reset(self, seed: int) -> None:
        """Nothing to begin."""

    def plan(self, view: View) -> Iterator[Order]:
        """Start heads of the queue until one does not fit."""
        while view.free_gpus.any() and (queue := view.queue()).size:
            start = view.first_fit(queue[:1], gpu_prices(view, queue.size - 1), ACCEPT)
            if start is None:
                return
            yield Order(Command.START, *start)


class FirstFit:
    """FIFO with greedy skip: in order of submit, each job that can start now does, whether or not those before it could.

    Large jobs may starve. Configurations as in `fifo`.
    """

    name = "first_fit"

    def reset(self, seed: int) -> None:
        """Nothing to begin."""

    def plan(self, view: View) -> Iterator[Order]:
        """Start whatever fits, oldest first."""
        if not view.free_gpus.any():
            return
        queue = view.queue()
        while (start := view.first_fit(queue, gpu_prices(view, view.n_queued - 1), ACCEPT)) is not None:
            yield Order(Command.START, *start)

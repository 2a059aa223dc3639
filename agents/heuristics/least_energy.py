"""Least energy: each job as it needs the fewest joules."""

from collections.abc import Iterator
from typing import Final

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.view import View

from .energy import accepted, added_energy_j, nearly_least, quickest
from .kinds import kinds_of
from .sizing import gpu_prices

NEAR: Final = 0.1
"""Energies within this share count as equal."""


class LeastEnergy:
    """FIFO with greedy skip in which each job takes the configuration that adds least energy, of those that fit now and it accepts.

    What counts is energy above idle power, PUE included: idle GPUs draw power anyway. Of configurations within NEAR of the
    least one that with the least cost (`sizing`) is taken. A job waits where all that fits is too slow, as in `fifo`, but not for a
    thriftier pool. Nothing that runs is changed.
    """

    name = "least_energy"

    def reset(self, seed: int) -> None:
        """Nothing to begin."""

    def plan(self, view: View) -> Iterator[Order]:
        """Start whatever fits, oldest first."""
        queue = view.queue()
        kinds, full = kinds_of(view.jobs(queue)), set[int]()
        added_j = added_energy_j(view)
        for job, kind in zip(queue.tolist(), kinds.tolist()):
            if kind in full:
                continue
            prices = gpu_prices(view, view.n_queued - 1)
            options = accepted(view, job, view.options(job), prices)
            if not options.size:
                full.add(kind)
                continue
            good = nearly_least(options, added_j, NEAR)
            yield Order(Command.START, job, quickest(view, good, prices))

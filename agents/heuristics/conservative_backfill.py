"""Conservative backfilling (Mu'alem and Feitelson, TPDS 2001): nobody is delayed by who came later."""

from collections.abc import Iterator

import numpy as np

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.view import View

from .sizing import gpu_prices


class ConservativeBackfill:
    """Every waiting job has a reservation, in order of submit; whose reservation is now starts.

    A reservation is the configuration and time with the least (wait + run time x (1 + price x GPUs)) that leaves all reservations
    before it as they are, as believed. All are made anew at every decision, so that they move forward when a job ends early
    (and back when one outlives its estimate). Where nodes are too fragmented for a start it waits for the next decision.
    Nothing that runs is changed.
    """

    name = "conservative_backfill"

    def reset(self, seed: int) -> None:
        """Nothing to begin."""

    def plan(self, view: View) -> Iterator[Order]:
        """Start whose time has come."""
        if not view.free_gpus.any():
            return
        queue = view.queue()
        starts_s, configs = view.reservations(queue, gpu_prices(view, queue.size - 1))
        for place in np.flatnonzero(starts_s <= view.now_s).tolist():
            if view.is_legal(Command.START, int(queue[place]), int(configs[place])):
                yield Order(Command.START, int(queue[place]), int(configs[place]))

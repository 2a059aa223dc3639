"""Shortest remaining time first that replans running jobs for the phase they are in, and for pools that are slow now."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.view import View

from .sizing import cost_of, gpu_prices
from .srtf import ShortestRemainingTimeFirst

GAIN = 1.15
"""A job changes only if what its phase has left then costs less by this factor, the change included."""


class PhaseAware(ShortestRemainingTimeFirst):
    """SRTF, and at each decision running jobs move, resize or replan for the work that is left of their phase.

    A job that holds g GPUs for a time T costs T x (1 + sum of price x g), prices as for starts (`sizing`). It changes to the
    configuration that fits now of least cost, at the speed that its pool has now, over the smaller of its phase's and its own
    believed work left, the change's overhead included, if the present one costs more than GAIN times that (HybridFlow,
    EuroSys 2025, places each phase of an RLHF job anew; the break-even is that of DynaTrain, arXiv 2605.18815). Jobs without
    phases: all the work left.
    """

    name = "phase_aware"

    def _grow(self, view: View) -> Iterator[Order]:
        return iter(())

    def plan(self, view: View) -> Iterator[Order]:
        """Start and preempt as SRTF, then change."""
        yield from super().plan(view)
        prices, speed = gpu_prices(view, view.n_queued), view.pool_speed
        rows = view.jobs(view.running())
        for row in rows[(rows["preemptible"] == 1) & (rows["had_command"] == 0)]:
            options = view.options(int(row["job"]))
            if not options.size:
                continue
            work = min(row["phase_left_work"], row["believed_left_work"])
            overhead_s = max(0.0, row["ready_s"] - view.now_s)
            now_s = (row["present_left_s"] - overhead_s) * work / row["believed_left_work"]
            configs = view.configs[options]
            here = np.minimum(speed[configs["pool_a"]], np.where(configs["pool_b"] >= 0, speed[configs["pool_b"]], np.inf))
            seconds = work / (configs["rate"] * here) + view.start_overheads_s(int(row["job"]), options)
            costs = _held(configs, prices) * seconds
            best = int(np.argmin(costs))
            if costs[best] * GAIN < now_s * _held(view.configs[[row["config"]]], prices)[0]:
                yield Order(Command.CHANGE, int(row["job"]), int(options[best]))


def _held(configs: NDArray[np.void], prices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost of a second in each of some CONFIG rows."""
    return cost_of(configs, prices) * np.asarray(configs["rate"])

"""Best throughput: each job where and as it works best."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import ScorePolicy
from hetenv.sim.commands import Command

LEVEL: Final = 0.2
"""Efficiencies within this count as equal; the faster row then wins."""
REPAY: Final = 3.0
"""A running job changes only if it ends earlier by this many times the seconds that the change costs."""


class BestThroughput(ScorePolicy):
    """Starts the row with the most work per GPU second, over the best of its class, times the pool's comparative advantage.

    Efficiency counts in steps of LEVEL, so that a job takes as many GPUs as it can use at nearly full efficiency; ties
    go to the faster row,
    then to the first. When nothing can start, a running job moves to where it ends earlier, if that pays REPAY times. Never preempts;
    knows no order of jobs.
    """

    name = "best_throughput"

    def score(self, candidates: NDArray[np.void]) -> NDArray[np.float64]:
        """Starts in [2, ...), changes in (1, 2), `wait` 0, others below."""
        suited = candidates["efficiency"] * np.minimum(candidates["advantage"], 1.0)
        starts = 2.0 + np.floor(suited / LEVEL) + 0.5 * candidates["speed"]
        gain_s = candidates["present_s"] - candidates["left_s"] - REPAY * candidates["change_s"]
        share = gain_s / np.maximum(candidates["present_s"], 1.0)
        changes = np.where(share > 0.0, 1.0 + share, -1.0)
        command = candidates["command"]
        return np.select([command == Command.START, command == Command.CHANGE, command == Command.WAIT], [starts, changes, 0.0], -1.0)

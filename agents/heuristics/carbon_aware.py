"""Carbon-aware: jobs wait for clean power, as long as their slack allows."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import ScorePolicy
from hetenv.sim.commands import Command
from hetenv.units import HOUR_S, JOULE_PER_KWH

CLEAN_KG_PER_KWH: Final = 0.1
"""Rows below this intensity, own surplus counted as zero, may start at once."""
SLACK_H: Final = 6.0
"""A job of weight 1 waits at most so long for clean power, h; heavier ones less in proportion, lighter ones up to twice as long."""


class CarbonAware(ScorePolicy):
    """Threshold rule on the carbon intensity of each row (carbon over energy: surplus renewable power counts as clean).

    A job starts on the cleanest row, among those of less than CLEAN_KG_PER_KWH, of equal intensity on the faster one; a dirtier row is
    taken only when the job's age exceeds SLACK_H over its weight, or its deadline's slack is below the job's own time.
    Heavier and older jobs go
    first. Nothing that runs is changed.
    """

    name = "carbon_aware"

    def score(self, candidates: NDArray[np.void]) -> NDArray[np.float64]:
        """Starts that need not wait are positive; `wait` is 0."""
        intensity = candidates["carbon_kg"] / np.maximum(candidates["energy_j"], 1e-9) * JOULE_PER_KWH
        patience_s = np.minimum(SLACK_H / np.maximum(candidates["weight"], 1e-9), 2.0 * SLACK_H) * HOUR_S
        urgent = (candidates["age_s"] >= patience_s) | (candidates["slack_s"] <= candidates["best_s"])
        ready = (candidates["command"] == Command.START) & ((intensity < CLEAN_KG_PER_KWH) | urgent)
        merit = np.log1p(candidates["weight"]) + 0.1 * np.log1p(candidates["age_s"] / HOUR_S)
        starts = 1.0 + merit + candidates["speed"] - 2.0 * intensity
        waits = candidates["command"] == Command.WAIT
        return np.where(ready, np.maximum(starts, 1e-3), np.where(waits, 0.0, -1.0))

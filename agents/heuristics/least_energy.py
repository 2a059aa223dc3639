"""Least energy: each job as it needs the fewest joules."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import ScorePolicy
from hetenv.sim.commands import Command

LEVEL: Final = 0.1
"""Energies within this share count as equal; the faster row then wins."""


class LeastEnergy(ScorePolicy):
    """Starts the visible job that came first, with the row that needs the least energy, PUE included, for its work left.

    Energies within LEVEL of the job's least now count as equal, and the fastest of these rows is taken. Only rows that
    fit now are compared:
    no job waits for a thriftier pool. Nothing that runs is changed.
    """

    name = "least_energy"

    def score(self, candidates: NDArray[np.void]) -> NDArray[np.float64]:
        """The job's first slot decides, then energy, then speed."""
        starts = (candidates["command"] == Command.START) & (candidates["is_legal"] == 1)
        slot = np.where(starts, candidates["slot"], -1)
        energy_j = np.where(starts, candidates["energy_j"], np.inf)
        first = np.where(starts, candidates["age_s"], -np.inf).max(axis=-1, keepdims=True)
        oldest = starts & (candidates["age_s"] == first)
        head = np.where(oldest, slot, np.iinfo(slot.dtype).max).min(axis=-1, keepdims=True)
        own = starts & (slot == head)
        least_j = np.where(own, energy_j, np.inf).min(axis=-1, keepdims=True)
        good = own & (energy_j <= (1.0 + LEVEL) * least_j)
        waits = candidates["command"] == Command.WAIT
        return np.where(good, 1.0 + candidates["speed"], np.where(waits, 0.0, -1.0))

"""The two simplest policies over candidate rows: any row, and the first one that starts a job."""

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Decision, ScorePolicy
from hetenv.sim.commands import Command


class RandomRow:
    """A legal row at random, all alike, `wait` included."""

    name = "random"

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def reset(self, seed: int) -> None:
        """Begin the episode's own random numbers."""
        self._rng = np.random.default_rng(seed)

    def act(self, decision: Decision) -> NDArray[np.int64]:
        """One row per simulation."""
        legal = decision.legal
        return np.where(legal, self._rng.random(legal.shape), -1.0).argmax(axis=1)


class FirstRow(ScorePolicy):
    """The first row that starts a job (first visible job, its first configuration in preference order), else `wait`."""

    name = "first_row"

    def score(self, candidates: NDArray[np.void]) -> NDArray[np.float64]:
        """1 for starts, 0 for `wait`, -1 for changes and preemptions."""
        command = candidates["command"]
        return np.where(command == Command.START, 1.0, np.where(command == Command.WAIT, 0.0, -1.0))

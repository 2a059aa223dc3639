"""Two policies for the benchmark's tests, importable by worker processes."""

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Decision


class FirstRow:
    """The first legal row that is not `wait`."""

    def __init__(self, name: str = "first_row") -> None:
        self.name = name

    def reset(self, seed: int) -> None:
        pass

    def act(self, decision: Decision) -> NDArray[np.int64]:
        legal = decision.legal.copy()
        legal[:, 0] = ~legal[:, 1:].any(axis=1)
        return legal.argmax(axis=1)


class Dice(FirstRow):
    """A random legal row; looks at the observation, as a network would."""

    def reset(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def act(self, decision: Decision) -> NDArray[np.int64]:
        shown = decision.observation()
        assert np.array_equal(shown["candidates"][..., 0] > 0, decision.legal)
        return np.where(decision.legal, self.rng.random(decision.legal.shape), -1.0).argmax(axis=1)

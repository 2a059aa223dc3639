"""Which world comes next: seeds and episode numbers, from local generators only."""

from typing import Self

import numpy as np

from hetenv.errors import ScenarioError
from hetenv.scenario import Compiled, World


class Episodes:
    """The worlds of one environment: episode k of seed s is `compiled.sample(s, k)`.

    Without a seed, one of the scenario's training seeds is drawn when the first world is asked for.
    """

    def __init__(self, compiled: Compiled, seed: int | None = None) -> None:
        self._compiled = compiled
        self._seed = None if seed is None else _checked(seed)
        self._next = 0

    def begin(self, seed: int | None = None) -> World:
        """The first world of `seed`, or the next one of the present seed."""
        if seed is not None:
            self._seed, self._next = _checked(seed), 0
        if self._seed is None:
            first, n = self._compiled.scenario.seeds.train
            self._seed = first + int(np.random.default_rng().integers(n))
        world = self._compiled.sample(self._seed, self._next)
        self._next += 1
        return world

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Compiled scenarios never change and are shared."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        memo[id(self)] = twin
        return twin


def _checked(seed: int) -> int:
    if seed < 0:
        raise ScenarioError(f"seed: must be at least 0 (got {seed})")
    return int(seed)

"""Which world comes next: seeds and episode numbers, from local generators only."""

import numpy as np

from hetenv.scenario import Compiled, World


class Episodes:
    """The worlds of one environment: episode k of seed s is `compiled.sample(s, k)`."""

    def __init__(self, compiled: Compiled, seed: int | None = None) -> None:
        self._compiled = compiled
        self._seed = seed
        self._next = 0

    def begin(self, seed: int | None) -> World:
        """The first world of `seed`, or the next one of the present seed; without any, one of the scenario's training seeds."""
        if seed is not None:
            self._seed, self._next = int(seed), 0
        if self._seed is None:
            first, n = self._compiled.scenario.seeds.train
            self._seed = first + int(np.random.default_rng().integers(n))
        world = self._compiled.sample(self._seed, self._next)
        self._next += 1
        return world

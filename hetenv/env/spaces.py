"""Spaces of the environments and the observations in them, from the layout of the flat buffer."""

from typing import Literal, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hetenv.env.observation import Layout
from hetenv.errors import ScenarioError, unknown

ObservationKind = Literal["dict", "flat"]
KINDS: tuple[ObservationKind, ...] = ("dict", "flat")
Observation = dict[str, NDArray[np.generic]] | NDArray[np.float32]
_FLOAT = np.dtype(np.float32)


class Observer:
    """Makes observations of one kind from flat buffers and masks. Each lives in the fresh buffers it was made from, no other does.

    Attributes:
        space: of one simulation: a flat Dict of float32 boxes in [-1, 1] with an int8 `action_mask` ("dict"), or one Box [D + A] with
            the mask at its end ("flat").
    """

    def __init__(self, layout: Layout, n_actions: int, kind: ObservationKind) -> None:
        if kind not in KINDS:
            raise ScenarioError("observation: " + unknown("kind", str(kind), KINDS))
        self._is_flat = kind == "flat"
        self._parts: list[tuple[str, tuple[int, ...], int, int]] = []
        first = 0
        for name, shape in layout.parts:
            last = first + int(np.prod(shape))
            self._parts.append((name, shape, first, last))
            first = last
        self.space = self._space(n_actions, layout.size)

    def _space(self, n_actions: int, n_features: int) -> spaces.Space[Observation]:
        if self._is_flat:
            box = spaces.Box(-1.0, 1.0, (n_features + n_actions,), np.float32)
            return cast(spaces.Space[Observation], box)
        parts: dict[str, spaces.Space[NDArray[np.generic]]] = {
            name: spaces.Box(-1.0, 1.0, shape, np.float32) for name, shape, _, _ in self._parts
        }
        parts["action_mask"] = spaces.Box(0, 1, (n_actions,), np.int8)
        return cast(spaces.Space[Observation], spaces.Dict(parts))

    def one(self, flat: NDArray[np.float32], mask: NDArray[np.int8]) -> Observation:
        """Observation of a single simulation from flat [1, D], contiguous, and mask [1, A]."""
        if self._is_flat:
            return np.concatenate((flat[0], mask[0]), dtype=np.float32)
        observation: dict[str, NDArray[np.generic]] = {
            name: np.ndarray(shape, _FLOAT, flat, first * _FLOAT.itemsize) for name, shape, first, _ in self._parts
        }
        observation["action_mask"] = mask[0]
        return observation

    def batch(self, flat: NDArray[np.float32], mask: NDArray[np.int8]) -> Observation:
        """Observations of B simulations from flat [B, D] and mask [B, A]."""
        if self._is_flat:
            return np.concatenate((flat, mask), axis=1, dtype=np.float32)
        n = flat.shape[0]
        observation: dict[str, NDArray[np.generic]] = {
            name: flat[:, first:last].reshape(n, *shape) for name, shape, first, last in self._parts
        }
        observation["action_mask"] = mask
        return observation


def row_of(observation: Observation, b: int) -> Observation:
    """A copy of row b of a batch of observations."""
    if isinstance(observation, dict):
        return {name: part[b].copy() for name, part in observation.items()}
    return observation[b].copy()

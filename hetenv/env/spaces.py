"""Spaces of the environments, from the observation's layout."""

from typing import Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hetenv.env.observation import Layout

ObservationKind = Literal["dict", "flat"]
Observation = dict[str, NDArray[np.generic]] | NDArray[np.float32]


def observation_space(layout: Layout, n_actions: int, kind: ObservationKind) -> spaces.Space[Observation]:
    """A flat Dict of float32 boxes in [-1, 1] with an int8 `action_mask`, or one Box [D + A] with the mask appended."""
    if kind == "flat":
        return spaces.Box(-1.0, 1.0, (layout.size + n_actions,), np.float32)
    parts: dict[str, spaces.Space[NDArray[np.generic]]] = {
        name: spaces.Box(-1.0, 1.0, shape, np.float32) for name, shape in layout.parts
    }
    parts["action_mask"] = spaces.Box(0, 1, (n_actions,), np.int8)
    return spaces.Dict(parts)


class Observer:
    """Turns flat buffers and masks into observations of the chosen kind; the parts are views of one fresh buffer."""

    def __init__(self, layout: Layout, kind: ObservationKind) -> None:
        if kind not in ("dict", "flat"):
            raise ValueError(f"observation: must be 'dict' or 'flat' (got {kind!r})")
        self._is_flat = kind == "flat"
        self._parts: list[tuple[str, int, int, tuple[int, ...]]] = []
        first = 0
        for name, shape in layout.parts:
            last = first + int(np.prod(shape))
            self._parts.append((name, first, last, shape))
            first = last

    def one(self, flat: NDArray[np.float32], mask: NDArray[np.int8]) -> Observation:
        """Observation of one simulation from flat [D] and mask [A]."""
        if self._is_flat:
            return np.concatenate((flat, mask), dtype=np.float32)
        observation: dict[str, NDArray[np.generic]] = {
            name: flat[first:last].reshape(shape) for name, first, last, shape in self._parts
        }
        observation["action_mask"] = mask
        return observation

    def batch(self, flat: NDArray[np.float32], mask: NDArray[np.int8]) -> Observation:
        """Observations of B simulations from flat [B, D] and mask [B, A]."""
        if self._is_flat:
            return np.concatenate((flat, mask), axis=1, dtype=np.float32)
        n = flat.shape[0]
        observation: dict[str, NDArray[np.generic]] = {
            name: flat[:, first:last].reshape(n, *shape) for name, first, last, shape in self._parts
        }
        observation["action_mask"] = mask
        return observation


def copied(observation: Observation, b: int | None = None) -> Observation:
    """A copy of an observation, or of row b of a batch of observations."""
    if isinstance(observation, dict):
        return {name: (part if b is None else part[b]).copy() for name, part in observation.items()}
    return (observation if b is None else observation[b]).copy()

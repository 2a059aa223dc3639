"""Several causes on one target: factors multiply, of caps the lowest counts. Rows say what a cause does alone."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.events.stream import Effect, EventClock

TOGETHER: Final[Mapping[Effect, np.ufunc]] = {
    Effect.NODE_SPEED: np.multiply,
    Effect.LINK_BANDWIDTH: np.multiply,
    Effect.SITE_POWER_CAP: np.minimum,
}
"""How the values of several sources join; a source without a row yet has 1 (a factor) or no cap."""


def compose(drawn: Mapping[str, NDArray[np.void]]) -> dict[str, NDArray[np.void]]:
    """The same rows, where the value of a factor (a cap) is that of all sources' latest values on that target together.

    Only rows on the wall clock, of targets on which two sources or more have such rows; all others stay as they are.
    At one time the rows count in `merge` order, so the last of them holds the whole.
    """
    result = dict(drawn)
    for effect, join in TOGETHER.items():
        chosen = {
            name: np.flatnonzero((found["effect"] == effect) & (found["clock"] == EventClock.WALL))
            for name, found in drawn.items()
        }
        chosen = {name: where for name, where in chosen.items() if where.size}
        if len(chosen) > 1:
            _join(result, chosen, join)
    return result


def _join(result: dict[str, NDArray[np.void]], chosen: Mapping[str, NDArray[np.int64]], join: np.ufunc) -> None:
    """Replace sources in `result` by copies with the joined values; `chosen` are the rows of one effect."""
    names = list(chosen)
    picked = np.concatenate([result[name][where] for name, where in chosen.items()])
    source = np.repeat(np.arange(len(names)), [chosen[name].size for name in names])
    order = np.lexsort((source, picked["at"], picked["target"]))
    target, begins = picked["target"][order], np.arange(order.size)
    is_first = np.concatenate([[True], target[1:] != target[:-1]])
    group_start = np.maximum.accumulate(np.where(is_first, begins, 0))
    neutral = 1.0 if join is np.multiply else np.inf
    together = np.full(order.size, neutral)
    for place in range(len(names)):
        own = source[order] == place
        latest = np.maximum.accumulate(np.where(own, begins, -1))
        join(together, np.where(latest >= group_start, picked["value"][order][latest], neutral), out=together)
    values = np.empty(order.size)
    values[order] = together
    for name, part in zip(names, np.split(values, np.cumsum([chosen[name].size for name in names])[:-1])):
        result[name] = result[name].copy()
        result[name]["value"][chosen[name]] = part

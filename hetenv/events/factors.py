"""Factors of several causes on one target multiply: rows say what a cause does alone, the world what holds together."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.events.stream import Effect, EventClock

FACTOR_EFFECTS: Final = (Effect.NODE_SPEED, Effect.LINK_BANDWIDTH)


def compose(drawn: Mapping[str, NDArray[np.void]]) -> dict[str, NDArray[np.void]]:
    """The same rows, where the value of a factor is the product over sources of their latest factors on that target.

    Only rows on the wall clock, of targets on which two sources or more have such rows; all others stay as they are.
    At one time the rows count in `merge` order, so the last of them holds the whole product.
    """
    result = dict(drawn)
    for effect in FACTOR_EFFECTS:
        chosen = {
            name: np.flatnonzero((found["effect"] == effect) & (found["clock"] == EventClock.WALL))
            for name, found in drawn.items()
        }
        chosen = {name: where for name, where in chosen.items() if where.size}
        if len(chosen) > 1:
            _multiply(result, chosen)
    return result


def _multiply(result: dict[str, NDArray[np.void]], chosen: Mapping[str, NDArray[np.int64]]) -> None:
    """Replace sources in `result` by copies with the products; `chosen` are the rows of one effect."""
    names = list(chosen)
    picked = np.concatenate([result[name][where] for name, where in chosen.items()])
    source = np.repeat(np.arange(len(names)), [chosen[name].size for name in names])
    order = np.lexsort((source, picked["at"], picked["target"]))
    target, begins = picked["target"][order], np.arange(order.size)
    is_first = np.concatenate([[True], target[1:] != target[:-1]])
    group_start = np.maximum.accumulate(np.where(is_first, begins, 0))
    product = np.ones(order.size)
    for place in range(len(names)):
        own = source[order] == place
        latest = np.maximum.accumulate(np.where(own, begins, -1))
        product *= np.where(latest >= group_start, picked["value"][order][latest], 1.0)
    values = np.empty(order.size)
    values[order] = product
    for name, part in zip(names, np.split(values, np.cumsum([chosen[name].size for name in names])[:-1])):
        result[name] = result[name].copy()
        result[name]["value"][chosen[name]] = part

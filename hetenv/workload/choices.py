"""Weighted choices: `4` (always) or `{1: 0.7, 8: 0.3}` (value -> share) in a scenario file."""

from typing import Annotated, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

Value = TypeVar("Value", int, float)


def _some_share(shares: dict[Value, float]) -> dict[Value, float]:
    if not sum(shares.values()) > 0.0:
        raise ValueError("the shares sum to 0; give at least one a positive share")
    return shares


Share = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Counts = Annotated[dict[Annotated[int, Field(gt=0)], Share], AfterValidator(_some_share)]
"""GPU count -> share (shares are scaled to sum to 1)."""
CountChoice = Annotated[int, Field(gt=0)] | Counts
Weights = Annotated[dict[Annotated[float, Field(gt=0.0, allow_inf_nan=False)], Share], AfterValidator(_some_share)]
"""Job weight -> share."""


def values_of(choice: int | dict[int, float]) -> tuple[int, ...]:
    """The values that may be chosen."""
    return (choice,) if isinstance(choice, int) else tuple(value for value, share in choice.items() if share > 0.0)


def pick(rng: np.random.Generator, shares: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """[n] indices into `shares`, drawn in proportion to them."""
    edges = np.cumsum(shares)
    chosen: NDArray[np.int64] = np.searchsorted(edges[:-1], rng.random(n) * edges[-1], side="right")
    return chosen


def draw(
    rng: np.random.Generator, choice: float | dict[int, float] | dict[float, float], n: int
) -> NDArray[np.float64]:
    """[n] values of a choice."""
    if not isinstance(choice, dict):
        return np.full(n, choice, np.float64)
    values = np.array(list(choice), np.float64)
    return values[pick(rng, np.array(list(choice.values())), n)]

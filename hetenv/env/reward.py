"""Rewards: named terms over the ledger row of a step, nothing else. The reward is minus their weighted sum."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import ScenarioError, unknown
from hetenv.objective import REWARD_TERMS, Objective


def weights_of(objective: Objective, weights: Mapping[str, float] | None = None) -> NDArray[np.float64]:
    """[N_ACCOUNTS] weights in ledger order: the scenario's objective, or the given terms in its place.

    Raises:
        ScenarioError: an unknown term.
    """
    if weights is None:
        return objective.vector()
    for name in weights:
        if name not in REWARD_TERMS:
            raise ScenarioError("reward: " + unknown("term", name, REWARD_TERMS))
    return Objective(weights=dict(weights)).vector()

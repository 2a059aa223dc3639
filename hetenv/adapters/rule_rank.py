"""A ready-made rule's order of the candidate rows, as a column that a learner can read and start from."""

from typing import Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Decision, Policy


@runtime_checkable
class ScoringRule(Protocol):
    """A rule that tells its whole order, as `index` does."""

    def scores(self, decision: Decision) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """scores: [B, A], higher is better, of legal rows; picks: [B] the best row."""


N_RANKED: Final = 8
"""Places of the rule's order that are told apart."""


def rank_shape(n: int) -> NDArray[np.float32]:
    """[n] the column's value at place 0, 1, ... of the rule's order: 1 at the pick, falling evenly to 0."""
    return np.maximum(1.0 - np.arange(n, dtype=np.float32) / N_RANKED, 0.0, dtype=np.float32)


def rule_rank(rule: Policy, decision: Decision) -> NDArray[np.float32]:
    """[B, A] `rank_shape` of each legal row's place in the rule's order, its pick first; 0 where illegal.

    Of a rule that is no ScoringRule only the pick is known: 1 there, elsewhere 0.
    """
    legal = decision.legal
    ranks: NDArray[np.float32] = np.zeros(legal.shape, np.float32)
    each = np.arange(legal.shape[0])
    if not isinstance(rule, ScoringRule):
        ranks[each, rule.act(decision)] = 1.0
        return ranks
    scores, picks = rule.scores(decision)
    keys = np.where(legal, -scores, np.inf)
    keys[each, picks] = -np.inf
    order = keys.argsort(axis=1, kind="stable")
    np.put_along_axis(ranks, order, np.broadcast_to(rank_shape(legal.shape[1]), legal.shape), axis=1)
    return np.where(legal, ranks, np.float32(0.0))

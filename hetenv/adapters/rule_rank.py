"""A ready-made rule's order of the candidate rows, as a column that a learner can read and start from."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Decision, Policy


@runtime_checkable
class ScoringRule(Protocol):
    """A rule that tells its whole order, as `index` does."""

    def scores(self, decision: Decision) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """scores: [B, A], higher is better, of legal rows; picks: [B] the best row."""


def rule_rank(rule: Policy, decision: Decision) -> NDArray[np.float32]:
    """[B, A] 1 / place of each legal row in the rule's order, its pick first; 0 where illegal.

    Of a rule that is no ScoringRule only the pick is known: 1 there, elsewhere 0.
    """
    ranks: NDArray[np.float32] = np.zeros(decision.candidates.shape, np.float32)
    if not isinstance(rule, ScoringRule):
        ranks[np.arange(ranks.shape[0]), rule.act(decision)] = 1.0
        return ranks
    scores, picks = rule.scores(decision)
    keys = np.where(decision.legal, -scores, np.inf)
    keys[np.arange(ranks.shape[0]), picks] = -np.inf
    places = 1.0 / np.arange(1, ranks.shape[1] + 1, dtype=np.float32)
    np.put_along_axis(ranks, keys.argsort(axis=1, kind="stable"), np.broadcast_to(places, ranks.shape), axis=1)
    return np.where(decision.legal, ranks, np.float32(0.0))

"""Fixed scales of training, measured once on a few training worlds under the rule that training starts from."""

from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.adapters.rule_rank import ScoringRule, rank_shape
from hetenv.policy import Policy
from hetenv.scenario import Compiled

from .play import play

N_WORLDS: Final = 16
MAX_BONUS: Final = 80.0


@dataclass(frozen=True)
class Scales:
    """What turns rewards and values of a scenario into numbers of order one, and how firmly the rule is followed at first."""

    reward_scale: float
    """Factor on rewards: 1 / (half the discounted reward of the rule)."""
    value_centre: float
    """Discounted, scaled reward of the rule: the critic's first answer."""
    rule_bonus: float
    """Start of h."""
    decisions_per_episode: float
    mean_legal_rows: float

    def asdict(self) -> dict[str, float]:
        """Plain data for a file."""
        return asdict(self)


def measure(compiled: Compiled, rule: Policy, tau_s: float, entropy: float) -> Scales:
    """Scales of a scenario.

    Args:
        tau_s: time constant of the discount.
        entropy: mean entropy (nats) over legal rows at which the policy starts.
    """
    played = play(compiled, rule, compiled.scenario.seeds.numbers("train", N_WORLDS))
    reward_per_s = -float(played.objective.sum() / played.elapsed_s.sum())
    discounted = reward_per_s * tau_s
    reward_scale = 1.0 / max(0.5 * abs(discounted), 1e-9)
    return Scales(
        reward_scale,
        discounted * reward_scale,
        bonus_for_entropy(played.n_legal, entropy, isinstance(rule, ScoringRule)),
        float(played.decisions.mean()),
        float(played.n_legal.mean()),
    )


def bonus_for_entropy(n_legal: NDArray[np.int64], entropy: float, ranked: bool = True) -> float:
    """The h at which the mean entropy of `mean_entropy` is this, by bisection."""
    low, high = 0.0, MAX_BONUS
    for _ in range(40):
        h = 0.5 * (low + high)
        low, high = (h, high) if mean_entropy(n_legal, h, ranked) > entropy else (low, h)
    return 0.5 * (low + high)


def mean_entropy(n_legal: NDArray[np.int64], bonus: float, ranked: bool = True) -> float:
    """Mean over decisions of the entropy (nats) of softmax over n rows of score h x `rank_shape`, or h x (1, 0, 0 ...)."""
    sizes, counts = np.unique(n_legal, return_counts=True)
    shape = rank_shape(sizes.max()).astype(np.float64) if ranked else np.eye(1, sizes.max())[0]
    logits = bonus * shape
    powers = np.exp(logits - bonus)
    total, mean = np.cumsum(powers)[sizes - 1], np.cumsum(powers * logits)[sizes - 1]
    entropy = np.log(total) + bonus - mean / total
    return float((entropy * counts).sum() / counts.sum())

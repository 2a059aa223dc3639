"""Plays whole episodes of a candidate-row policy in one batch: for validation while training and for the scales before it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hetenv.env.core import KEEP, EnvCore
from hetenv.policy import Decision, Policy
from hetenv.scenario import Compiled
from hetenv.sim.tables import TOTAL, Status


@dataclass(frozen=True)
class Played:
    """What one policy made of n worlds."""

    objective: NDArray[np.float64]
    """[n] of the measured window; unfinished jobs count with their age, as the objective does."""
    is_open: NDArray[np.bool_]
    """[n] the episode was truncated with jobs left."""
    decisions: NDArray[np.int64]
    """[n]."""
    elapsed_s: NDArray[np.float64]
    """[n]."""
    n_legal: NDArray[np.int64]
    """Legal rows of every decision of all episodes."""


def play(compiled: Compiled, policy: Policy, seeds: Sequence[int]) -> Played:
    """One episode per seed, all in step; `policy` must keep no memory between decisions."""
    core = EnvCore(compiled, len(seeds))
    flat, mask = core.reset_many({b: compiled.sample(seed) for b, seed in enumerate(seeds)})
    policy.reset(0)
    decisions, counts = np.zeros(len(seeds), np.int64), []
    while True:
        clock = core.simulator.state.clock
        is_open = clock["status"] == Status.OPEN
        if not is_open.any():
            break
        counts.append(mask[is_open].sum(1, dtype=np.int64))
        decisions += is_open
        decision = Decision(core.candidates, lambda shown=flat: core.layout.views(shown), clock["now"].copy())
        flat, mask, _ = core.step(np.where(is_open, policy.act(decision), KEEP))
    totals = core.simulator.state.ledger[:, TOTAL]
    return Played(
        totals @ compiled.scenario.objective.vector(),
        clock["status"] == Status.TRUNCATED,
        decisions,
        clock["now"].copy(),
        np.concatenate(counts) if counts else np.ones(1, np.int64),
    )

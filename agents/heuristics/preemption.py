"""Who has to go so that a job can start: the search that the preemptive planners share."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.view import View

from .sizing import cost_of

MAX_TRIED = 4
"""Waiting jobs for which room is sought at one instant."""


def victims(
    view: View, job: int, candidates: NDArray[np.int64], prices: NDArray[np.float64], accept: float
) -> tuple[int, list[int]] | None:
    """A configuration for a queued job and the running jobs to preempt for it; None if no preemption makes room.

    The job's configurations are tried by cost (as `View.first_fit` counts it) up to `accept` times the least; for each, candidates
    that hold its pools go in the given order until it fits, and those that turn out not to be needed stay.
    """
    allowed = view.allowed(job)
    rows = view.configs[allowed]
    cost = cost_of(rows, prices)
    present = view.jobs(candidates)["config"]
    for place in np.argsort(cost, kind="stable"):
        if cost[place] > accept * cost.min():
            return None
        pools = [int(pool) for pool in (rows["pool_a"][place], rows["pool_b"][place]) if pool >= 0]
        in_pool = np.logical_or.reduce([view.gpus_in(pool)[present] > 0 for pool in pools])
        gone = _least(view, job, int(allowed[place]), candidates[in_pool].tolist())
        if gone is not None:
            return int(allowed[place]), gone
    return None


def _least(view: View, job: int, config: int, candidates: list[int]) -> list[int] | None:
    """The shortest head of `candidates` that makes room, without those members that need not go; None if all do not suffice."""
    if not view.fits(job, config, candidates):
        return None
    few, enough = 0, len(candidates)
    while few < enough:
        half = (few + enough) // 2
        if view.fits(job, config, candidates[:half]):
            enough = half
        else:
            few = half + 1
    gone = candidates[:enough]
    for kept in candidates[: max(0, enough - 1)]:
        fewer = [one for one in gone if one != kept]
        if view.fits(job, config, fewer):
            gone = fewer
    return gone


def make_room(view: View, job: int, gone: list[int], config: int) -> Iterator[Order]:
    """Preempt, then start; nothing if the instant has too few commands left."""
    if view.commands_left <= len(gone):
        return
    for victim in gone:
        yield Order(Command.PREEMPT, victim)
    yield Order(Command.START, job, config)

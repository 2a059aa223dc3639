"""Which jobs would run, and how, were the cluster shared out afresh in a given order: by counts of GPUs, places left aside."""

import numpy as np
from numpy.typing import NDArray

from hetenv.jit import kernel
from hetenv.jit_reference import by_reference
from hetenv.sim.commands import allows, present_class
from hetenv.sim.tables import NONE, Facts, JobState, Rows, State
from hetenv.view.fitting import cost_of


@kernel
def pack(
    tables: State,
    worlds: Facts,
    b: int,
    ids: NDArray[np.int64],
    prices: NDArray[np.float64],
    accept: float,
    free: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Write the CONFIG row that each job of `ids` would hold (NONE: none), shared out in their order.

    A running job keeps its configuration if that still fits; where it may not be preempted, or had a command at this instant, it
    is served before all others. A queued job takes its configuration of least cost that fits, if it costs at most `accept` times
    its cheapest one. Jobs that had a command and wait get none.

    Args:
        prices, accept: as in `first_fit`.
        free: [P] scratch.
    """
    state, facts = by_reference(tables), by_reference(worlds)
    clock = state.clock[b]
    for p in range(free.shape[0]):
        free[p] = state.pools[b, p]["up_gpus"]
    for place in range(ids.shape[0]):
        job = state.jobs[b, ids[place]]
        out[place] = NONE
        if job["state"] == JobState.RUNNING and _stays(facts, clock, job, ids[place]):
            out[place] = job["config"]
            _take(facts.sizes[job["config"]], free)
    for place in range(ids.shape[0]):
        job = state.jobs[b, ids[place]]
        if out[place] != NONE:
            continue
        if job["state"] == JobState.RUNNING:
            if _has_room(facts.sizes[job["config"]], free):
                out[place] = job["config"]
        elif job["state"] == JobState.QUEUED and job["instant"] != clock["instant"]:
            out[place] = _cheapest(facts, facts.requests[clock["world"], ids[place]], job, prices, accept, free)
        if out[place] != NONE:
            _take(facts.sizes[out[place]], free)


@kernel
def _stays(facts: Facts, clock: Rows, job: Rows, job_id: int) -> bool:
    """Whether a running job cannot be preempted now."""
    return job["instant"] == clock["instant"] or facts.requests[clock["world"], job_id]["preemptible"] == 0


@kernel
def _has_room(size: Rows, free: NDArray[np.int64]) -> bool:
    if size["gpus_a"] > free[size["pool_a"]]:
        return False
    return size["pool_b"] < 0 or size["gpus_b"] <= free[size["pool_b"]]


@kernel
def _take(size: Rows, free: NDArray[np.int64]) -> None:
    free[size["pool_a"]] -= size["gpus_a"]
    if size["pool_b"] >= 0:
        free[size["pool_b"]] -= size["gpus_b"]


@kernel
def _cheapest(
    facts: Facts, request: Rows, job: Rows, prices: NDArray[np.float64], accept: float, free: NDArray[np.int64]
) -> int:
    """The job's configuration of least cost that has room; NONE if none has, or if it costs too much."""
    job_class = facts.classes[present_class(request, job)]
    best, best_cost, least_cost = NONE, np.inf, np.inf
    for config_id in range(job_class["first_config"], job_class["last_config"]):
        size = facts.sizes[config_id]
        if not allows(request, job, size):
            continue
        cost = cost_of(facts.configs[config_id], prices)
        least_cost = min(least_cost, cost)
        if cost < best_cost and _has_room(size, free):
            best, best_cost = config_id, cost
    return best if best_cost <= accept * least_cost else NONE

"""Which configurations a job could take: all legal ones, the first of many jobs that can start, and room after preemptions."""

import numpy as np
from numpy.typing import NDArray

from hetenv.jit import kernel
from hetenv.jit_reference import by_reference
from hetenv.sim.commands import Command, allows, is_legal, present_class, start_overhead_s
from hetenv.sim.placement import fits
from hetenv.sim.running import believed_left
from hetenv.sim.tables import NONE, Facts, JobState, Rows, State

N_FAILED = 32
"""Kinds of requests that `first_fit` remembers as not startable."""
_TOO_LATE = -2


@kernel
def write_options(tables: State, worlds: Facts, b: int, job_id: int, only_legal: bool, out: NDArray[np.int64]) -> int:
    """Write the CONFIG rows of a job in preference order, all or those legal now to start or change to; returns how many."""
    state, facts = by_reference(tables), by_reference(worlds)
    job, request = state.jobs[b, job_id], facts.requests[state.clock[b]["world"], job_id]
    job_class = facts.classes[present_class(request, job)]
    command = Command.CHANGE if job["state"] == JobState.RUNNING else Command.START
    found = 0
    for config_id in range(job_class["first_config"], job_class["last_config"]):
        if not allows(request, job, facts.sizes[config_id]):
            continue
        if not only_legal or is_legal(state, facts, b, command, job_id, config_id):
            out[found] = config_id
            found += 1
    return found


@kernel
def write_overheads(
    tables: State, worlds: Facts, b: int, job_id: int, configs: NDArray[np.int64], out: NDArray[np.float64]
) -> None:
    """Write `start_overhead_s` of a job in each of some configurations."""
    state, facts = by_reference(tables), by_reference(worlds)
    for place in range(configs.shape[0]):
        out[place] = start_overhead_s(state, facts, b, state.jobs[b, job_id], configs[place])


@kernel
def first_fit(
    tables: State,
    worlds: Facts,
    b: int,
    ids: NDArray[np.int64],
    prices: NDArray[np.float64],
    accept: float,
    until_s: float,
    spare: NDArray[np.float64],
    failed: NDArray[np.int64],
) -> tuple[int, int]:
    """First job of `ids` that may start now, and its configuration of least cost; (NONE, NONE) if there is none.

    Args:
        prices: [P] of a GPU in each pool. Cost of a configuration = (1 + sum of price x GPUs) / rate.
        accept: a configuration may cost at most this many times the job's cheapest one, legal now or not; no limit where
            nothing runs.
        until_s, spare: the job must end by until_s, as believed, or take at most spare[p] GPUs of each pool.
        failed: [N_FAILED] scratch.
    """
    state, facts = by_reference(tables), by_reference(worlds)
    clock = state.clock[b]
    if clock["commands_left"] <= 0:
        return NONE, NONE
    free, n_failed = 0, 0
    for p in range(state.pools.shape[1]):
        free += state.pools[b, p]["free_gpus"]
    most = accept if clock["n_running"] > 0 else np.inf
    for place in range(ids.shape[0]):
        job_id = ids[place]
        job, request = state.jobs[b, job_id], facts.requests[clock["world"], job_id]
        if job["state"] != JobState.QUEUED or job["instant"] == clock["instant"] or request["min_gpus"] > free:
            continue
        if _is_among(state, facts, b, job_id, failed, n_failed):
            continue
        config_id = _cheapest(state, facts, b, job_id, prices, most, until_s, spare)
        if config_id >= 0:
            return job_id, config_id
        if config_id == NONE and n_failed < failed.shape[0]:
            failed[n_failed] = job_id
            n_failed += 1
    return NONE, NONE


@kernel
def _is_among(state: State, facts: Facts, b: int, job_id: int, failed: NDArray[np.int64], n_failed: int) -> bool:
    """Whether a job of the same kind (class, GPUs, pools, CPUs, memory) has failed."""
    world = state.clock[b]["world"]
    job, request = state.jobs[b, job_id], facts.requests[world, job_id]
    for place in range(n_failed):
        other_job, other = state.jobs[b, failed[place]], facts.requests[world, failed[place]]
        if (
            present_class(other, other_job) == present_class(request, job)
            and other["min_gpus"] == request["min_gpus"]
            and other["max_gpus"] == request["max_gpus"]
            and other_job["most_gpus"] == job["most_gpus"]
            and other["pools"] == request["pools"]
            and other["cpus_per_gpu"] == request["cpus_per_gpu"]
            and other["host_mbytes_per_gpu"] == request["host_mbytes_per_gpu"]
        ):
            return True
    return False


@kernel
def cost_of(config: Rows, prices: NDArray[np.float64]) -> float:
    """Cost of a unit of work in a configuration: (1 + sum of price x GPUs) / rate."""
    held = 1.0 + prices[config["pool_a"]] * config["gpus_a"]
    if config["pool_b"] >= 0:
        held += prices[config["pool_b"]] * config["gpus_b"]
    return held / config["rate"]


@kernel
def _cheapest(
    state: State,
    facts: Facts,
    b: int,
    job_id: int,
    prices: NDArray[np.float64],
    accept: float,
    until_s: float,
    spare: NDArray[np.float64],
) -> int:
    """The cheapest configuration a queued job may start in now; NONE if none fits or is accepted, _TOO_LATE if time forbids."""
    clock, job = state.clock[b], state.jobs[b, job_id]
    request = facts.requests[clock["world"], job_id]
    job_class = facts.classes[present_class(request, job)]
    limit = np.inf
    if accept < np.inf:
        for config_id in range(job_class["first_config"], job_class["last_config"]):
            if allows(request, job, facts.sizes[config_id]):
                limit = min(limit, accept * cost_of(facts.configs[config_id], prices))
    left = believed_left(request, job["work"])
    best, best_cost = NONE, np.inf
    for config_id in range(job_class["first_config"], job_class["last_config"]):
        size, config = facts.sizes[config_id], facts.configs[config_id]
        if not allows(request, job, size):
            continue
        cost = cost_of(config, prices)
        if cost >= best_cost or cost > limit or not fits(state, b, request, size, NONE):
            continue
        if not _is_small(size, spare):
            end_s = clock["now"] + start_overhead_s(state, facts, b, job, config_id) + left / config["rate"]
            if end_s > until_s:
                best = _TOO_LATE if best == NONE else best
                continue
        best, best_cost = config_id, cost
    return best


@kernel
def _is_small(size: Rows, spare: NDArray[np.float64]) -> bool:
    """Whether a configuration takes no more than the spare GPUs of its pools."""
    if size["gpus_a"] > spare[size["pool_a"]]:
        return False
    return size["pool_b"] < 0 or size["gpus_b"] <= spare[size["pool_b"]]


@kernel
def fits_without(
    tables: State, worlds: Facts, b: int, job_id: int, config_id: int, without: NDArray[np.int64], gained: NDArray[np.int64]
) -> bool:
    """Whether a job's configuration could be placed, were the running jobs in `without` gone.

    Args:
        gained: [N, 3] zeros; scratch for the GPUs, CPUs and MB each node would gain; zeros again at the end.
    """
    state, facts = by_reference(tables), by_reference(worlds)
    clock, size = state.clock[b], facts.sizes[config_id]
    job, request = state.jobs[b, job_id], facts.requests[clock["world"], job_id]
    if not allows(request, job, size):
        return False
    _gain(state, facts, b, without, gained, 1)
    ok = _pool_holds(state, b, request, size["pool_a"], size["gpus_a"], size["any_nodes"], gained)
    if ok and size["pool_b"] >= 0:
        ok = _pool_holds(state, b, request, size["pool_b"], size["gpus_b"], size["any_nodes"], gained)
    _gain(state, facts, b, without, gained, -1)
    return ok


@kernel
def _gain(state: State, facts: Facts, b: int, without: NDArray[np.int64], gained: NDArray[np.int64], sign: int) -> None:
    """Add (or take back) what the allocations of running jobs would free."""
    for place in range(without.shape[0]):
        job = state.jobs[b, without[place]]
        if job["state"] != JobState.RUNNING:
            continue
        request = facts.requests[state.clock[b]["world"], without[place]]
        alloc = state.runs[b, job["run"]]["alloc"]
        while alloc != NONE:
            row = state.allocs[b, alloc]
            gained[row["node"], 0] += sign * row["gpus"]
            gained[row["node"], 1] += sign * row["gpus"] * request["cpus_per_gpu"]
            gained[row["node"], 2] += sign * row["gpus"] * request["host_mbytes_per_gpu"]
            alloc = row["next_of_run"]


@kernel
def _pool_holds(state: State, b: int, request: Rows, p: int, n: int, any_nodes: int, gained: NDArray[np.int64]) -> bool:
    """The rule of `hetenv.sim.placement.fits` for one pool with what its nodes would gain."""
    pool = state.pools[b, p]
    full, rest = n // pool["gpus_per_node"], n % pool["gpus_per_node"]
    n_full, n_rest, total = 0, 0, 0
    for index in range(pool["first_node"], pool["first_node"] + pool["n_nodes"]):
        node = state.nodes[b, index]
        if node["is_up"] == 0:
            continue
        usable = node["free"] + gained[index, 0]
        if pool["cpus_per_node"] > 0 and request["cpus_per_gpu"] > 0:
            usable = min(usable, (node["free_cpus"] + gained[index, 1]) // request["cpus_per_gpu"])
        if pool["mbytes_per_node"] > 0 and request["host_mbytes_per_gpu"] > 0:
            usable = min(usable, (node["free_mbytes"] + gained[index, 2]) // request["host_mbytes_per_gpu"])
        total += usable
        if usable >= pool["gpus_per_node"]:
            n_full += 1
        if usable >= rest:
            n_rest += 1
    if n_full >= full and (rest == 0 or n_rest >= full + 1):
        return True
    return any_nodes == 1 and total >= n

"""Reservations for many waiting jobs in turn: a profile of the free GPUs to come, as believed, from which each takes its share."""

import numpy as np
from numpy.typing import NDArray

from hetenv.jit import kernel
from hetenv.jit_reference import by_reference
from hetenv.sim.commands import allows, present_class, start_overhead_s
from hetenv.sim.placement import fits
from hetenv.sim.running import believed_left
from hetenv.sim.tables import NONE, Facts, Rows, State
from hetenv.view.fitting import cost_of


@kernel
def reserve_in_turn(
    tables: State,
    worlds: Facts,
    b: int,
    ids: NDArray[np.int64],
    prices: NDArray[np.float64],
    n_times: int,
    times_s: NDArray[np.float64],
    free: NDArray[np.int64],
    starts_s: NDArray[np.float64],
    configs: NDArray[np.int64],
) -> None:
    """Write when each queued job of `ids` is to start, and its CONFIG row; inf and NONE where it never has room.

    Each job takes the configuration with the least (wait + run time x (1 + price x GPUs)) at the earliest time from which its GPUs
    are free for its whole run time, overhead included; those before it in `ids` have theirs already.

    Args:
        n_times, times_s, free: [n_times] rising times, now first, and [P, n_times] GPUs free from each on; with room for one more
            time per job. Changed.
    """
    state, facts = by_reference(tables), by_reference(worlds)
    clock = state.clock[b]
    for place in range(ids.shape[0]):
        job, request = state.jobs[b, ids[place]], facts.requests[clock["world"], ids[place]]
        job_class = facts.classes[present_class(request, job)]
        left = believed_left(request, job["work"])
        best, best_cost, best_first, best_run_s = NONE, np.inf, 0, 0.0
        for config_id in range(job_class["first_config"], job_class["last_config"]):
            size = facts.sizes[config_id]
            if not allows(request, job, size):
                continue
            run_s = start_overhead_s(state, facts, b, job, config_id) + left / facts.configs[config_id]["rate"]
            first = _earliest(size, run_s, n_times, times_s, free, 0)
            if first == 0 and not fits(state, b, request, size, NONE):
                first = _earliest(size, run_s, n_times, times_s, free, 1)
            if first == NONE:
                continue
            held = cost_of(facts.configs[config_id], prices) * facts.configs[config_id]["rate"]
            cost = times_s[first] - clock["now"] + held * run_s
            if cost < best_cost:
                best, best_cost, best_first, best_run_s = config_id, cost, first, run_s
        configs[place] = best
        starts_s[place] = np.inf if best == NONE else times_s[best_first]
        if best != NONE:
            n_times = _take(facts.sizes[best], best_first, best_run_s, n_times, times_s, free)


@kernel
def _earliest(
    size: Rows, run_s: float, n_times: int, times_s: NDArray[np.float64], free: NDArray[np.int64], first: int
) -> int:
    """The first time from `first` on from which a configuration has its GPUs for run_s; NONE if there is none."""
    at = first
    while at < n_times:
        if at > first and times_s[at] >= times_s[first] + run_s:
            return first
        if free[size["pool_a"], at] < size["gpus_a"] or (size["pool_b"] >= 0 and free[size["pool_b"], at] < size["gpus_b"]):
            first = at + 1
        at += 1
    return first if first < n_times else NONE


@kernel
def _take(
    size: Rows, first: int, run_s: float, n_times: int, times_s: NDArray[np.float64], free: NDArray[np.int64]
) -> int:
    """Take a configuration's GPUs from times_s[first] for run_s; returns the new number of times."""
    end_s = times_s[first] + run_s
    last = first
    while last < n_times and times_s[last] < end_s:
        last += 1
    if last > first and (last == n_times or times_s[last] > end_s):
        for at in range(n_times, last, -1):
            times_s[at] = times_s[at - 1]
            for p in range(free.shape[0]):
                free[p, at] = free[p, at - 1]
        times_s[last] = end_s
        for p in range(free.shape[0]):
            free[p, last] = free[p, last - 1]
        n_times += 1
    for at in range(first, last):
        free[size["pool_a"], at] -= size["gpus_a"]
        if size["pool_b"] >= 0:
            free[size["pool_b"], at] -= size["gpus_b"]
    return n_times

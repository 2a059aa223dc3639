"""The window: the few jobs that a decision shows. What lies beyond it is in the backlog.

Queued jobs come in turn from the heads of the window orders, so that jobs which wait on purpose do not hide urgent ones. Running
ones are those that may have a command and whose believed time left over weight is longest: the first to give way.
"""

import numpy as np
from numpy.typing import NDArray

from hetenv.jit import kernel
from hetenv.sim.queue import next_queued
from hetenv.sim.tables import NONE, Facts, State


@kernel
def visible_queued(state: State, facts: Facts, b: int, heads: NDArray[np.int32], window: NDArray[np.int32]) -> int:
    """Fill the window with queued jobs, in turn from the head of each window order; returns how many. heads: [O], memory."""
    found, wanted = 0, min(window.shape[0], state.clock[b]["n_queued"])
    for order in range(heads.shape[0]):
        heads[order] = 0
    while found < wanted:
        for order in range(heads.shape[0]):
            if found >= wanted:
                break
            heads[order] = _next_of_order(state, facts, b, order, heads[order], found, window)
            found += 1
    for slot in range(found, window.shape[0]):
        window[slot] = NONE
    return found


@kernel
def _next_of_order(
    state: State, facts: Facts, b: int, order: int, place: int, found: int, window: NDArray[np.int32]
) -> int:
    """Put the first job of an order, from a place on, that is not yet in the window at `found`; returns the place after it."""
    while True:
        place = next_queued(state, facts, b, order, place)
        job_id = facts.ranked[state.clock[b]["world"], order, place]
        is_new = True
        for slot in range(found):
            if window[slot] == job_id:
                is_new = False
                break
        place += 1
        if is_new:
            window[found] = job_id
            return place


@kernel
def visible_running(state: State, b: int, keys: NDArray[np.float64], window: NDArray[np.int32]) -> int:
    """Fill the window with running jobs, the longest time left over weight first (ties: the older job); returns how many.

    The time is that to the end as believed at the last change of the job's speed, 0 after that end. keys: [W_r], memory.
    """
    clock, most, ends = state.clock[b], window.shape[0], state.ends[b]
    found, least = 0, -1.0
    n_running = clock["n_run_heap"] if clock["commands_left"] > 0 and most > 0 else 0
    for place in range(n_running):
        end = ends[state.run_heap[b, place]]
        left_s = max(0.0, end["believed_s"] - clock["now"]) * end["per_weight"]
        job_id = end["job"]
        if left_s < least or job_id == NONE or end["instant"] == clock["instant"]:
            continue
        slot = found
        while slot > 0 and (left_s > keys[slot - 1] or (left_s == keys[slot - 1] and job_id < window[slot - 1])):
            slot -= 1
        if slot == most:
            continue
        found = min(found + 1, most)
        for last in range(found - 1, slot, -1):
            keys[last], window[last] = keys[last - 1], window[last - 1]
        keys[slot], window[slot] = left_s, job_id
        if found == most:
            least = keys[most - 1]
    for slot in range(found, most):
        window[slot] = NONE
    return found

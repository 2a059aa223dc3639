"""The queue: a set of request ids per window order, so that the head of each order is found without a scan."""

from hetenv.jit import kernel
from hetenv.sim.bitset import following, insert, remove, summary_words
from hetenv.sim.tables import Facts, JobState, State


@kernel
def enqueue(state: State, facts: Facts, b: int, job_id: int) -> None:
    """A job waits from now on."""
    _list(state, facts, b, job_id, 1)
    state.jobs[b, job_id]["state"] = JobState.QUEUED


@kernel
def dequeue(state: State, facts: Facts, b: int, job_id: int) -> None:
    """A job leaves the queue; the caller sets its new state."""
    _list(state, facts, b, job_id, -1)


@kernel
def _list(state: State, facts: Facts, b: int, job_id: int, step: int) -> None:
    clock = state.clock[b]
    request = facts.requests[clock["world"], job_id]
    summary = summary_words(state.jobs.shape[1])
    for order in range(facts.ranks.shape[1]):
        place = facts.ranks[clock["world"], order, job_id]
        if step > 0:
            insert(state.queue_bits[b, order], 0, summary, place)
        else:
            remove(state.queue_bits[b, order], 0, summary, place)
    state.backlog[b, request["backlog_bin"]] += step
    clock["n_queued"] += step
    clock["weight_queued"] += step * request["weight"]
    if clock["n_queued"] == 0:
        clock["weight_queued"] = 0.0


@kernel
def next_queued(state: State, facts: Facts, b: int, order: int, place: int) -> int:
    """First occupied place >= `place` of a window order, or NONE; `facts.ranked` gives the request there."""
    return following(state.queue_bits[b, order], 0, summary_words(state.jobs.shape[1]), place)

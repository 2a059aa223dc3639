"""Jobs as a planner may know them: one row per job, beliefs in place of the truth."""

import numpy as np
from numpy.typing import NDArray

from hetenv.env.candidates import best_left_s
from hetenv.jit import kernel
from hetenv.jit_reference import by_reference
from hetenv.sim.commands import present_class
from hetenv.sim.queue import next_queued
from hetenv.sim.running import believed_left
from hetenv.sim.tables import NONE, Facts, JobState, Rows, State

BORDER_TOLERANCE = 1e-9
"""Share of a cycle within which a border counts as reached, so that rounding does not decide."""

JOB_VIEW = np.dtype(
    [
        ("submit_s", "f8"),
        ("weight", "f8"),
        ("deadline_s", "f8"),  # since the scenario's start (inf: none)
        ("believed_left_work", "f8"),  # units of the class
        ("believed_left_s", "f8"),  # run time of that at the request's fastest configuration, no overhead
        ("present_left_s", "f8"),  # believed time to the end in the present configuration, overhead included; not running: inf
        ("ready_s", "f8"),  # end of the overhead of the last start or change; not running: inf
        ("attained_gpu_s", "f8"),  # service so far
        ("phase_left_work", "f8"),  # to the border of its present phase (inf: its class has no phases)
        ("pools", "i8"),  # bit p set: pool p is allowed
        ("job", "i4"),
        ("job_class", "i4"),
        ("tenant", "i4"),
        ("min_gpus", "i4"),
        ("max_gpus", "i4"),
        ("n_gpus", "i4"),  # held now
        ("config", "i4"),  # present configuration; not running: NONE
        ("n_starts", "i4"),
        ("elasticity", "i1"),  # Elasticity
        ("preemptible", "i1"),
        ("is_running", "i1"),
        ("had_command", "i1"),  # at this instant: no other is legal
    ],
    align=True,
)


@kernel
def write_jobs(tables: State, worlds: Facts, b: int, ids: NDArray[np.int64], out: Rows) -> None:
    """Write the JOB_VIEW row of each job in `ids`."""
    state, facts = by_reference(tables), by_reference(worlds)
    for place in range(ids.shape[0]):
        _write_job(state, facts, b, ids[place], out[place])


@kernel
def _phase_left(job_class: Rows, work: float) -> float:
    """Work to the border of the phase that a class is, for a job that has done `work`; inf where it is none."""
    if job_class["cycle_work"] <= 0.0:
        return np.inf
    cycles = np.floor((work - job_class["phase_begin"]) / job_class["cycle_work"] + BORDER_TOLERANCE)
    return max(0.0, cycles * job_class["cycle_work"] + job_class["phase_end"] - work)


@kernel
def _write_job(state: State, facts: Facts, b: int, job_id: int, row: Rows) -> None:
    clock, job = state.clock[b], state.jobs[b, job_id]
    request = facts.requests[clock["world"], job_id]
    row["job"], row["job_class"] = job_id, present_class(request, job)
    row["tenant"], row["pools"] = request["tenant"], request["pools"]
    row["submit_s"], row["weight"], row["deadline_s"] = request["submit_s"], request["weight"], request["deadline_s"]
    row["min_gpus"], row["max_gpus"] = request["min_gpus"], min(request["max_gpus"], job["most_gpus"])
    row["elasticity"], row["preemptible"] = request["elasticity"], request["preemptible"]
    row["n_starts"] = job["n_starts"]
    row["had_command"] = 1 if job["instant"] == clock["instant"] else 0
    work = job["work"]
    if job["state"] != JobState.RUNNING:
        left = believed_left(request, work)
        row["is_running"], row["n_gpus"], row["config"], row["attained_gpu_s"] = 0, 0, NONE, job["held_gpu_s"]
        row["present_left_s"] = row["ready_s"] = np.inf
    else:
        run, config = state.runs[b, job["run"]], facts.configs[job["config"]]
        seconds = clock["now"] - run["since"]
        rate, present_s = config["rate"], max(0.0, run["ready_s"] - clock["now"])
        if run["is_stepping"] == 1:
            rate, present_s = run["rate"], 0.0
            work += rate * seconds
        left = believed_left(request, work)
        row["is_running"], row["n_gpus"], row["config"] = 1, config["n_gpus"], job["config"]
        row["attained_gpu_s"] = job["held_gpu_s"] + seconds * config["n_gpus"]
        row["present_left_s"], row["ready_s"] = present_s + left / rate, run["ready_s"]
    row["phase_left_work"] = _phase_left(facts.classes[present_class(request, job)], work)
    row["believed_left_work"], row["believed_left_s"] = left, best_left_s(request, left)


@kernel
def write_queue(tables: State, worlds: Facts, b: int, order: int, out: NDArray[np.int64]) -> None:
    """Write the ids of the queued jobs ([n_queued]) in a window order."""
    state, facts = by_reference(tables), by_reference(worlds)
    place, found = next_queued(state, facts, b, order, 0), 0
    while place != NONE:
        out[found] = facts.ranked[state.clock[b]["world"], order, place]
        found += 1
        place = next_queued(state, facts, b, order, place + 1)


@kernel
def write_running(tables: State, worlds: Facts, b: int, out: NDArray[np.int64]) -> None:
    """Write the ids of the running jobs ([n_running]) in order of their (re)starts."""
    state = by_reference(tables)
    run, found = state.clock[b]["first_run"], 0
    while run != NONE:
        out[found] = state.runs[b, run]["order"]
        found += 1
        run = state.runs[b, run]["next"]

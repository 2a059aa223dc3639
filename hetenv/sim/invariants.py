"""What must hold at every instant. Plain numpy, for tests and debugging; the kernels never call it."""

import numpy as np

from hetenv.sim.tables import DELTA, NONE, TOTAL, Facts, JobState, State


def check(state: State, facts: Facts, b: int) -> None:
    """AssertionError names the first broken invariant of simulation b."""
    clock, nodes, jobs = state.clock[b], state.nodes[b], state.jobs[b]
    requests = facts.requests[clock["world"]]
    held_by_node, runs = _held(state, b)
    per_node = state.pools[b]["gpus_per_node"][nodes["pool"]]
    up = nodes["is_up"] == 1
    assert (nodes["free"] >= 0).all(), "a node has negative free GPUs"
    assert (nodes["free"][up] + held_by_node[up] == per_node[up]).all(), "GPUs of a node are not conserved"
    assert (held_by_node[~up] == 0).all(), "a job holds a node that is down"
    assert (nodes["free"][~up] == 0).all(), "a node that is down offers GPUs"
    for column, total in (("free_cpus", "cpus_per_node"), ("free_mbytes", "mbytes_per_node")):
        accounted = (state.pools[b][total][nodes["pool"]] > 0) & up
        assert (nodes[column][accounted] >= 0).all(), f"a node has negative {column}"
    _check_pools(state, b, held_by_node, per_node, up)
    states = jobs["state"][: clock["n_requests"]]
    assert (states == JobState.QUEUED).sum() == clock["n_queued"], "n_queued is wrong"
    assert (states == JobState.RUNNING).sum() == clock["n_running"] == len(runs), "n_running is wrong"
    assert state.backlog[b].sum() == clock["n_queued"], "the backlog does not add up to the queue"
    _check_jobs(state, facts, b, runs)
    weights = requests["weight"][: clock["n_requests"]]
    queued, running = states == JobState.QUEUED, states == JobState.RUNNING
    assert np.isclose(clock["weight_queued"], weights[queued].sum(), atol=1e-9), "weight_queued is wrong"
    assert np.isclose(clock["weight_in_system"], weights[queued | running].sum(), atol=1e-9), "weight_in_system is wrong"
    for row in (DELTA, TOTAL):
        assert np.isfinite(state.ledger[b, row]).all(), "the ledger is not finite"


def _held(state: State, b: int) -> tuple[np.ndarray, list[int]]:
    """[N] GPUs held per node, from the running list; and the slots in it."""
    held = np.zeros(state.nodes.shape[1], int)
    runs: list[int] = []
    run = int(state.clock[b]["first_run"])
    while run != NONE:
        runs.append(run)
        assert len(runs) <= state.runs.shape[1], "the running list is a loop"
        alloc = int(state.runs[b, run]["alloc"])
        while alloc != NONE:
            row = state.allocs[b, alloc]
            assert row["run"] == run, "an allocation names another slot"
            held[row["node"]] += row["gpus"]
            alloc = int(row["next_of_run"])
        run = int(state.runs[b, run]["next"])
    return held, runs


def _check_pools(state: State, b: int, held: np.ndarray, per_node: np.ndarray, up: np.ndarray) -> None:
    nodes = state.nodes[b]
    for p, pool in enumerate(state.pools[b]):
        own = nodes["pool"] == p
        assert pool["held_gpus"] == held[own].sum(), f"held_gpus of pool {p} is wrong"
        assert pool["free_gpus"] == nodes["free"][own].sum(), f"free_gpus of pool {p} is wrong"
        assert pool["up_gpus"] == per_node[own & up].sum(), f"up_gpus of pool {p} is wrong"
        assert pool["free_gpus"] + pool["held_gpus"] == pool["up_gpus"], f"GPUs of pool {p} are not conserved"
        counts = state.free_counts[b, pool["first_count"] : pool["first_count"] + pool["gpus_per_node"] + 1]
        free = nodes["free"][own & up]
        assert [int((free >= k).sum()) for k in range(counts.size)] == counts.tolist(), f"free_counts of pool {p} is wrong"
        assert pool["power_w"] >= -1e-9, f"power of pool {p} is negative"


def _check_jobs(state: State, facts: Facts, b: int, runs: list[int]) -> None:
    clock, jobs = state.clock[b], state.jobs[b]
    requests = facts.requests[clock["world"]][: clock["n_requests"]]
    work, durable = jobs["work"][: requests.size], jobs["durable"][: requests.size]
    assert (durable >= 0).all() and (work >= durable - 1e-9).all(), "work lies below the durable work"
    assert (work <= requests["work"]).all(), "more work is done than there is"
    finished = jobs["state"][: requests.size] == JobState.FINISHED
    assert (work[finished] == requests["work"][finished]).all(), "a finished job has work left"
    for run in runs:
        row = state.runs[b, run]
        job = jobs[row["order"]]
        assert job["state"] == JobState.RUNNING and job["run"] == run, "a slot and its job disagree"
        config = facts.configs[job["config"]]
        assert config["job_class"] == requests["job_class"][row["order"]] + job["phase"], "a job runs in another class's configuration"
        assert row["until"] >= clock["now"], "a job's next instant lies in the past"
    assert clock["held_gpus"] == sum(int(facts.configs[jobs[state.runs[b, r]["order"]]["config"]]["n_gpus"]) for r in runs)

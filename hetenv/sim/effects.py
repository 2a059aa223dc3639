"""What an effect does to the state. The kernel knows these and no causes."""

from hetenv.events.stream import Effect
from hetenv.jit import kernel
from hetenv.objective import Account
from hetenv.sim.nodes import reschedule_node, set_until, settle_busy
from hetenv.sim.placement import list_node
from hetenv.sim.queue import dequeue, enqueue
from hetenv.sim.running import count, leave, reschedule, settle, vacate
from hetenv.sim.tables import NONE, Facts, JobState, State


@kernel
def apply_effect(state: State, facts: Facts, b: int, effect: int, target: int, value: float) -> None:
    """Let one effect happen now."""
    if effect == Effect.NODE_UP:
        if state.nodes[b, target]["is_up"] == 0:
            come_up(state, facts, b, target)
    elif effect == Effect.NODE_DOWN:
        go_down(state, facts, b, target, value)
    elif effect == Effect.NODE_SPEED:
        state.nodes[b, target]["speed"] = value
        _retime_node(state, facts, b, target)
    elif effect == Effect.LINK_BANDWIDTH:
        _set_bandwidth(state, facts, b, target >> 1, target & 1, value)
    elif effect == Effect.JOB_CRASH:
        end_job(state, facts, b, target, JobState.CRASHED)
    elif effect == Effect.JOB_CANCEL:
        if state.jobs[b, target]["state"] == JobState.FUTURE:
            state.jobs[b, target]["is_withdrawn"] = 1
        else:
            end_job(state, facts, b, target, JobState.CANCELLED)
    elif effect == Effect.SITE_RENEWABLE:
        state.sites[b, target]["renewable_w"] = value
    elif effect == Effect.SITE_CARBON:
        state.sites[b, target]["carbon_kg_per_j"] = value
    elif effect == Effect.SITE_PRICE:
        state.sites[b, target]["price_usd_per_j"] = value


@kernel
def come_up(state: State, facts: Facts, b: int, node_index: int) -> None:
    """A node that is down returns, empty."""
    node = state.nodes[b, node_index]
    pool = state.pools[b, node["pool"]]
    settle_busy(state, b, node_index)
    node["is_up"] = 1
    node["free"] = pool["gpus_per_node"]
    node["free_cpus"], node["free_mbytes"] = pool["cpus_per_node"], pool["mbytes_per_node"]
    list_node(state, b, node_index, True)
    _power_node(state, b, node_index, 1)
    reschedule_node(state, facts, b, node_index)


@kernel
def go_down(state: State, facts: Facts, b: int, node_index: int, seconds: float) -> None:
    """A node fails for `seconds` (inf: for good); its jobs are evicted. If it is down already, the later end counts."""
    node, now = state.nodes[b, node_index], state.clock[b]["now"]
    if node["is_up"] == 0:
        if node["heap"] != NONE and now + seconds > node["until"]:
            set_until(state, b, node_index, now + seconds)
        return
    while node["alloc"] != NONE:
        evict(state, facts, b, state.allocs[b, node["alloc"]]["run"])
    settle_busy(state, b, node_index)
    list_node(state, b, node_index, False)
    node["free"] = 0
    node["is_up"] = 0
    _power_node(state, b, node_index, -1)
    set_until(state, b, node_index, now + seconds)


@kernel
def _power_node(state: State, b: int, node_index: int, sign: int) -> None:
    """Account a node that came up (1) or went down (-1): its GPUs and its idle power."""
    pool = state.pools[b, state.nodes[b, node_index]["pool"]]
    watts = sign * (pool["overhead_w"] + pool["gpus_per_node"] * pool["idle_w"])
    pool["power_w"] += watts
    state.sites[b, pool["site"]]["it_w"] += watts
    pool["up_gpus"] += sign * pool["gpus_per_node"]
    state.clock[b]["up_gpus"] += sign * pool["gpus_per_node"]


@kernel
def evict(state: State, facts: Facts, b: int, run: int) -> None:
    """A running job loses its GPUs and what is not durable, and queues again."""
    settle(state, facts, b, run)
    job_id = state.runs[b, run]["order"]
    job = state.jobs[b, job_id]
    count(state, b, Account.LOST_GPU_S, state.runs[b, run]["volatile_gpu_s"])
    count(state, b, Account.N_EVICTED, 1.0)
    vacate(state, facts, b, run)
    leave(state, b, run)
    job["work"] = job["durable"]
    job["config"] = NONE
    enqueue(state, facts, b, job_id)


@kernel
def end_job(state: State, facts: Facts, b: int, job_id: int, final: int) -> None:
    """A queued or running job ends: FINISHED, CRASHED or CANCELLED. Jobs that have ended are left alone."""
    clock, job = state.clock[b], state.jobs[b, job_id]
    weight = facts.requests[clock["world"], job_id]["weight"]
    if job["state"] == JobState.RUNNING:
        run = job["run"]
        settle(state, facts, b, run)
        if final != JobState.FINISHED:
            count(state, b, Account.LOST_GPU_S, state.runs[b, run]["volatile_gpu_s"])
        vacate(state, facts, b, run)
        leave(state, b, run)
    elif job["state"] == JobState.QUEUED:
        dequeue(state, facts, b, job_id)
    else:
        return
    job["state"], job["end_s"], job["config"] = final, clock["now"], NONE
    clock["weight_in_system"] -= weight
    if clock["n_queued"] + clock["n_running"] == 0:
        clock["weight_in_system"] = 0.0
    if final == JobState.CRASHED:
        count(state, b, Account.N_CRASHED, 1.0)
    elif final == JobState.CANCELLED:
        count(state, b, Account.N_CANCELLED, 1.0)
    else:
        job["durable"] = job["work"]
        count(state, b, Account.N_FINISHED, 1.0)
        late_s = clock["now"] - facts.requests[clock["world"], job_id]["deadline_s"]
        if late_s > 0.0:
            count(state, b, Account.N_DEADLINE_MISSES, 1.0)
            count(state, b, Account.LATENESS_S, weight * late_s)


@kernel
def _retime_node(state: State, facts: Facts, b: int, node_index: int) -> None:
    """Settle and reschedule the jobs that hold a node."""
    alloc = state.nodes[b, node_index]["alloc"]
    while alloc != NONE:
        run = state.allocs[b, alloc]["run"]
        settle(state, facts, b, run)
        reschedule(state, facts, b, run)
        alloc = state.allocs[b, alloc]["next_of_node"]


@kernel
def _set_bandwidth(state: State, facts: Facts, b: int, p: int, level: int, value: float) -> None:
    """Change a pool's link factor and retime its jobs."""
    if level == 0:
        state.pools[b, p]["intra_factor"] = value
    else:
        state.pools[b, p]["inter_factor"] = value
    run = state.clock[b]["first_run"]
    while run != NONE:
        config = facts.configs[state.jobs[b, state.runs[b, run]["order"]]["config"]]
        if config["pool_a"] == p or config["pool_b"] == p:
            settle(state, facts, b, run)
            reschedule(state, facts, b, run)
        run = state.runs[b, run]["next"]


@kernel
def submit(state: State, facts: Facts, b: int, job_id: int) -> None:
    """A request reaches the queue, unless it fits nowhere or was withdrawn."""
    clock, job = state.clock[b], state.jobs[b, job_id]
    request = facts.requests[clock["world"], job_id]
    if request["rejected"] == 1 or job["is_withdrawn"] == 1:
        rejected = job["is_withdrawn"] == 0
        job["state"] = JobState.REJECTED if rejected else JobState.CANCELLED
        job["end_s"] = clock["now"]
        count(state, b, Account.N_REJECTED if rejected else Account.N_CANCELLED, 1.0)
        return
    clock["weight_in_system"] += request["weight"]
    enqueue(state, facts, b, job_id)


"""What an effect does to the state. The kernel knows these and no causes."""

import numpy as np

from hetenv.events.stream import Effect
from hetenv.jit import kernel
from hetenv.objective import Account
from hetenv.sim.degrade import shrink
from hetenv.sim.nodes import add_idle_power, awake_w, mark_stale, reschedule_node, rouse, set_until, settle_busy
from hetenv.sim.placement import list_node
from hetenv.sim.queue import dequeue, enqueue
from hetenv.sim.running import begin_save, count, draw, leave, plan_saves, reschedule, save, settle, vacate
from hetenv.sim.tables import NONE, UNBOUNDED, Facts, JobState, State, Without


@kernel
def apply_effect(state: State, facts: Facts, b: int, effect: int, target: int, value: float) -> None:
    """Let one effect happen now."""
    if effect == Effect.NODE_UP:
        if state.nodes[b, target]["is_up"] == 0:
            come_up(state, facts, b, target)
    elif effect == Effect.NODE_DOWN:
        go_down(state, facts, b, target, value)
    elif effect == Effect.NODE_NOTICE:
        notice(state, facts, b, target, value)
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
    elif effect == Effect.JOB_RANGE:
        state.jobs[b, target]["most_gpus"] = int(min(max(value, 0.0), UNBOUNDED))
        bound(state, facts, b, target)
    elif effect == Effect.JOB_PHASE:
        enter_phase(state, facts, b, target)
    else:
        _set_signal(state, b, effect, target, value)


@kernel
def _set_signal(state: State, b: int, effect: int, s: int, value: float) -> None:
    site = state.sites[b, s]
    if effect == Effect.SITE_RENEWABLE:
        site["renewable_w"] = value
    elif effect == Effect.SITE_CARBON:
        site["carbon_kg_per_j"] = value
    elif effect == Effect.SITE_MARGINAL_CARBON:
        site["marginal_kg_per_j"] = value
    elif effect == Effect.SITE_PRICE:
        site["price_usd_per_j"] = value
    elif effect == Effect.SITE_TEMPERATURE:
        site["temperature_c"] = value
        site["pue"] = site["base_pue"] + site["pue_per_c"] * max(0.0, value - site["cooling_from_c"])
    elif effect == Effect.SITE_POWER_CAP:
        mark_stale(state, b, site)  # by the old cap, should the new one be none
        site["cap_w"] = value
    mark_stale(state, b, site)


@kernel
def come_up(state: State, facts: Facts, b: int, node_index: int) -> None:
    """A node that is down returns, empty."""
    node = state.nodes[b, node_index]
    pool = state.pools[b, node["pool"]]
    settle_busy(state, b, node_index)
    node["is_up"] = 1
    node["free"] = pool["gpus_per_node"]
    node["free_cpus"], node["free_mbytes"] = pool["cpus_per_node"], pool["mbytes_per_node"]
    node["idle_since"] = state.clock[b]["now"]
    list_node(state, b, node_index, True)
    _power_node(state, b, node_index, 1)
    reschedule_node(state, facts, b, node_index)


@kernel
def go_down(state: State, facts: Facts, b: int, node_index: int, seconds: float) -> None:
    """A node fails for `seconds` (inf: for good); its jobs are evicted, or go on smaller. If it is down already, the later end counts."""
    node, now = state.nodes[b, node_index], state.clock[b]["now"]
    _announce(state, b, node_index, np.inf)
    if node["is_up"] == 0:
        if node["heap"] != NONE and now + seconds > node["until"]:
            set_until(state, b, node_index, now + seconds)
        return
    while node["alloc"] != NONE:
        lose_node(state, facts, b, _first_job(state, b, node_index), node_index)
    settle_busy(state, b, node_index)
    if node["is_asleep"] == 1:
        rouse(state, b, node_index)
    list_node(state, b, node_index, False)
    node["free"] = 0
    node["is_up"] = 0
    _power_node(state, b, node_index, -1)
    set_until(state, b, node_index, now + seconds)


@kernel
def _power_node(state: State, b: int, node_index: int, sign: int) -> None:
    """Account a node that came up (1) or went down (-1): its GPUs and its idle power."""
    pool = state.pools[b, state.nodes[b, node_index]["pool"]]
    add_idle_power(state, b, state.nodes[b, node_index], sign * awake_w(pool))
    pool["up_gpus"] += sign * pool["gpus_per_node"]
    state.clock[b]["up_gpus"] += sign * pool["gpus_per_node"]


@kernel
def evict(state: State, facts: Facts, b: int, run: int) -> None:
    """A running job loses its GPUs and what is not durable, and queues again."""
    settle(state, facts, b, run)
    vacate(state, facts, b, run)
    _roll_back(state, facts, b, run)


@kernel
def _roll_back(state: State, facts: Facts, b: int, run: int) -> None:
    """The job of a vacated slot falls back to its durable work and queues."""
    job_id = state.runs[b, run]["order"]
    job = state.jobs[b, job_id]
    count(state, b, Account.LOST_GPU_S, state.runs[b, run]["volatile_gpu_s"])
    count(state, b, Account.N_EVICTED, 1.0)
    leave(state, b, run)
    job["work"] = job["durable"]
    job["config"] = NONE
    enqueue(state, facts, b, job_id)


@kernel
def _first_job(state: State, b: int, node_index: int) -> int:
    """The slot of lowest job id on a node."""
    alloc = state.nodes[b, node_index]["alloc"]
    first = state.allocs[b, alloc]["run"]
    while alloc != NONE:
        run = state.allocs[b, alloc]["run"]
        if state.runs[b, run]["order"] < state.runs[b, first]["order"]:
            first = run
        alloc = state.allocs[b, alloc]["next_of_node"]
    return first


@kernel
def lose_node(state: State, facts: Facts, b: int, run: int, node_index: int) -> None:
    """A running job loses a node: it goes on smaller, or is evicted."""
    settle(state, facts, b, run)
    config = facts.configs[state.jobs[b, state.runs[b, run]["order"]]["config"]]
    vacate(state, facts, b, run)
    may_shrink = facts.classes[config["job_class"]]["degrades"] == 1 and config["survives"] == 1
    may_shrink = may_shrink and facts.rules[0]["without"] & Without.DEGRADE == 0
    if not (may_shrink and shrink(state, facts, b, run, node_index)):
        _roll_back(state, facts, b, run)


@kernel
def _announce(state: State, b: int, node_index: int, leaves_s: float) -> None:
    """From now on a node is announced to leave at leaves_s (inf: not at all)."""
    node = state.nodes[b, node_index]
    pool = state.pools[b, node["pool"]]
    if (node["leaves_s"] < np.inf) != (leaves_s < np.inf):
        pool["leaving_gpus"] += pool["gpus_per_node"] if leaves_s < np.inf else -pool["gpus_per_node"]
    node["leaves_s"] = leaves_s


@kernel
def notice(state: State, facts: Facts, b: int, node_index: int, seconds: float) -> None:
    """A node is announced to leave: its jobs save what is not durable, if that leaves the time."""
    node, now = state.nodes[b, node_index], state.clock[b]["now"]
    if node["is_up"] == 0:
        return
    _announce(state, b, node_index, now + seconds)
    alloc = node["alloc"]
    while alloc != NONE:
        run = state.allocs[b, alloc]["run"]
        settle(state, facts, b, run)
        job = state.jobs[b, state.runs[b, run]["order"]]
        save_s = facts.configs[job["config"]]["save_s"]
        if state.runs[b, run]["is_stepping"] == 1 and job["work"] > job["durable"] and save_s <= seconds:
            begin_save(state, facts, b, run, save_s, 0.0)
        reschedule(state, facts, b, run)
        alloc = state.allocs[b, alloc]["next_of_node"]


@kernel
def stop(state: State, facts: Facts, b: int, run: int) -> None:
    """A running job must leave its GPUs but loses nothing: it saves and queues."""
    job_id = state.runs[b, run]["order"]
    save(state, facts, b, run)
    vacate(state, facts, b, run)
    leave(state, b, run)
    count(state, b, Account.N_EVICTED, 1.0)
    enqueue(state, facts, b, job_id)


@kernel
def bound(state: State, facts: Facts, b: int, job_id: int) -> None:
    """Stop a running job that holds more GPUs than it may."""
    job = state.jobs[b, job_id]
    if job["state"] == JobState.RUNNING and facts.configs[job["config"]]["n_gpus"] > job["most_gpus"]:
        stop(state, facts, b, job["run"])


@kernel
def enter_phase(state: State, facts: Facts, b: int, job_id: int) -> None:
    """A queued or running job enters the phase that follows; a running one goes on in its configuration's continuation."""
    job, request = state.jobs[b, job_id], facts.requests[state.clock[b]["world"], job_id]
    following = facts.classes[request["job_class"] + job["phase"]]["next_class"]
    if following == NONE or (job["state"] != JobState.QUEUED and job["state"] != JobState.RUNNING):
        return
    job["phase"] = following - request["job_class"]
    if job["state"] == JobState.QUEUED:
        return
    run = job["run"]
    save(state, facts, b, run)
    config = facts.configs[job["config"]]
    if config["next_config"] == NONE:
        stop(state, facts, b, run)
        return
    row, saved_s = state.runs[b, run], state.runs[b, run]["saved_s"]
    if row["is_stepping"] == 1:
        draw(state, b, config, -1.0)
        draw(state, b, facts.configs[config["next_config"]], 1.0)
    job["config"] = config["next_config"]
    plan_saves(state, facts, b, run)
    row["saved_s"], row["saving_gpu_s"] = saved_s, 0.0
    reschedule(state, facts, b, run)


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


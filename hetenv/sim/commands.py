"""Commands: what a policy may do, when it is legal, and what it does (docs/design.md, Commands)."""

from enum import IntEnum

from hetenv.jit import kernel
from hetenv.objective import Account
from hetenv.sim.placement import fits
from hetenv.sim.queue import dequeue, enqueue
from hetenv.sim.running import count, join, leave, occupy, save, vacate
from hetenv.sim.tables import NONE, Facts, JobState, Rows, State, Without
from hetenv.workload.requests import Elasticity


class Command(IntEnum):
    WAIT = 0
    START = 1
    """A queued job begins, or begins again, in a configuration."""
    CHANGE = 2
    """A running job moves to another configuration (resize, migrate, replan)."""
    PREEMPT = 3
    """A running job gives its GPUs up and queues."""


@kernel
def present_class(request: Rows, job: Rows) -> int:
    """The class whose configurations a job may use now: its request's, or a later phase of it."""
    return request["job_class"] + job["phase"]


@kernel
def allows(request: Rows, job: Rows, size: Rows) -> bool:
    """Whether a configuration is one of the job's at all: present class, GPU range, pools."""
    if size["job_class"] != present_class(request, job):
        return False
    if size["n_gpus"] < request["min_gpus"] or size["n_gpus"] > min(request["max_gpus"], job["most_gpus"]):
        return False
    if (request["pools"] >> size["pool_a"]) & 1 == 0:
        return False
    return size["pool_b"] < 0 or (request["pools"] >> size["pool_b"]) & 1 == 1


@kernel
def is_legal(state: State, facts: Facts, b: int, command: int, job_id: int, config_id: int) -> bool:
    """Whether a command may be given now."""
    if command == Command.WAIT:
        return True
    if job_id < 0 or job_id >= state.clock[b]["n_requests"] or state.clock[b]["commands_left"] <= 0:
        return False
    job = state.jobs[b, job_id]
    if job["instant"] == state.clock[b]["instant"]:
        return False
    request = facts.requests[state.clock[b]["world"], job_id]
    if command == Command.PREEMPT:
        return job["state"] == JobState.RUNNING and may_preempt(facts, request)
    if config_id < 0 or config_id >= facts.sizes.shape[0]:
        return False
    size = facts.sizes[config_id]
    if not allows(request, job, size):
        return False
    if command == Command.START:
        return job["state"] == JobState.QUEUED and fits(state, b, request, size, NONE)
    return _may_change(facts, job, request, config_id) and fits(state, b, request, size, job["run"])


@kernel
def _may_change(facts: Facts, job: Rows, request: Rows, config_id: int) -> bool:
    if job["state"] != JobState.RUNNING or request["preemptible"] == 0 or job["config"] == config_id:
        return False
    return may_become(facts, request, facts.sizes[job["config"]], facts.sizes[config_id])


@kernel
def may_preempt(facts: Facts, request: Rows) -> bool:
    """Whether a running job may be sent back to the queue."""
    return request["preemptible"] == 1 and facts.rules[0]["without"] & Without.PREEMPT == 0


@kernel
def may_become(facts: Facts, request: Rows, old: Rows, new: Rows) -> bool:
    """Whether the request and the scenario let a running job go from one configuration (SIZE) to another."""
    without = facts.rules[0]["without"]
    resizes = old["n_gpus"] != new["n_gpus"]
    migrates = old["pool_a"] != new["pool_a"] or old["pool_b"] != new["pool_b"]
    if resizes and (request["elasticity"] != Elasticity.MALLEABLE or without & Without.RESIZE != 0):
        return False
    if migrates and without & Without.MIGRATE != 0:
        return False
    return resizes or migrates or without & Without.REPLAN == 0


@kernel
def apply_command(state: State, facts: Facts, b: int, command: int, job_id: int, config_id: int) -> bool:
    """Carry out a legal command, or count an illegal one; either uses up one of the instant's commands. Returns legality."""
    clock = state.clock[b]
    legal = is_legal(state, facts, b, command, job_id, config_id)
    clock["commands_left"] -= 1
    if not legal:
        count(state, b, Account.N_ILLEGAL, 1.0)
        return False
    state.jobs[b, job_id]["instant"] = clock["instant"]
    if command == Command.START:
        _start(state, facts, b, job_id, config_id)
    elif command == Command.CHANGE:
        _change(state, facts, b, job_id, config_id)
    else:
        _preempt(state, facts, b, job_id)
    return True


@kernel
def start_overhead_s(state: State, facts: Facts, b: int, job: Rows, config_id: int) -> float:
    """Seconds that a job's GPUs are held before its first step in a configuration, were it put there now on nodes awake."""
    config = facts.configs[config_id]
    job_class = facts.classes[config["job_class"]]
    if job["n_starts"] == 0:
        return job_class["first_start_s"] + wan_s(facts, job, config)
    present = job["config"]
    is_live = job["state"] == JobState.RUNNING and job_class["first_move"] >= 0 and job["site"] == config["site"]
    if is_live and present != config_id and facts.configs[present]["job_class"] == config["job_class"]:
        n = job_class["last_config"] - job_class["first_config"]
        move = job_class["first_move"] + (present - job_class["first_config"]) * n + config_id - job_class["first_config"]
        factor = state.pools[b, config["pool_a"]]["inter_factor"]
        if config["pool_b"] >= 0:
            factor = min(factor, state.pools[b, config["pool_b"]]["inter_factor"])
        return job_class["commit_s"] + job_class["exposed"] * facts.moves[move] / factor
    save_s = facts.configs[present]["save_s"] if present != NONE else 0.0
    return job_class["restart_s"] + config["load_s"] + save_s + wan_s(facts, job, config)


@kernel
def moved_bytes(facts: Facts, job: Rows, config: Rows) -> float:
    """What must come from another site before the job can run in a configuration."""
    if job["site"] == NONE or job["site"] == config["site"]:
        return 0.0
    job_class = facts.classes[config["job_class"]]
    return job_class["data_bytes"] + (job_class["state_bytes"] if job["n_starts"] > 0 else 0.0)


@kernel
def wan_s(facts: Facts, job: Rows, config: Rows) -> float:
    """Seconds for which that crosses the wide-area network."""
    n_bytes = moved_bytes(facts, job, config)
    if n_bytes == 0.0:
        return 0.0
    link = facts.wan[job["site"], config["site"]]
    return link["latency_s"] + n_bytes * link["s_per_byte"]


@kernel
def _bring(state: State, facts: Facts, b: int, job: Rows, config_id: int) -> None:
    """Account what crosses between sites; the job's state is at the configuration's site from now on."""
    config = facts.configs[config_id]
    n_bytes = moved_bytes(facts, job, config)
    if n_bytes > 0.0:
        count(state, b, Account.WAN_BYTES, n_bytes)
        count(state, b, Account.WAN_USD, n_bytes * facts.wan[job["site"], config["site"]]["usd_per_byte"])
    job["site"] = config["site"]


@kernel
def _start(state: State, facts: Facts, b: int, job_id: int, config_id: int) -> None:
    job = state.jobs[b, job_id]
    overhead_s = start_overhead_s(state, facts, b, job, config_id)
    _bring(state, facts, b, job, config_id)
    dequeue(state, facts, b, job_id)
    job["state"] = JobState.RUNNING
    if job["n_starts"] == 0:
        job["first_start_s"] = state.clock[b]["now"]
    job["n_starts"] += 1
    count(state, b, Account.N_STARTED, 1.0)
    run = join(state, facts, b, job_id)
    occupy(state, facts, b, run, config_id, overhead_s)


@kernel
def _change(state: State, facts: Facts, b: int, job_id: int, config_id: int) -> None:
    job = state.jobs[b, job_id]
    run = job["run"]
    save(state, facts, b, run)
    overhead_s = start_overhead_s(state, facts, b, job, config_id)
    _bring(state, facts, b, job, config_id)
    vacate(state, facts, b, run)
    occupy(state, facts, b, run, config_id, overhead_s)
    count(state, b, Account.N_RECONFIGURED, 1.0)


@kernel
def _preempt(state: State, facts: Facts, b: int, job_id: int) -> None:
    job = state.jobs[b, job_id]
    run = job["run"]
    save(state, facts, b, run)
    vacate(state, facts, b, run)
    leave(state, b, run)
    count(state, b, Account.N_PREEMPTED, 1.0)
    enqueue(state, facts, b, job_id)

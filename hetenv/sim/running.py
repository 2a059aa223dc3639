"""Jobs while they hold GPUs: speed, exact progress, the next own instant; joining and leaving the running list."""

import numpy as np

from hetenv.jit import kernel
from hetenv.sim import heap
from hetenv.sim.nodes import mark_stale
from hetenv.sim.placement import give_back, place
from hetenv.sim.tables import DELTA, NONE, TOTAL, Facts, Rows, State
from hetenv.units import POWER_QUANTUM_W

CHECKPOINT_TOLERANCE = 1e-9
"""Share of a checkpoint interval within which a multiple counts as reached, so that rounding does not decide."""
OUTLIVED_SHARE = 0.1
"""A job that has outlived its estimate is believed to need this share of the work it has done."""


@kernel
def count(state: State, b: int, account: int, amount: float) -> None:
    """Add to an account that grows at instants."""
    state.ledger[b, DELTA, account] += amount
    if state.clock[b]["is_measuring"] == 1:
        state.ledger[b, TOTAL, account] += amount


@kernel
def rate_of(state: State, facts: Facts, b: int, run: int) -> float:
    """Work/s of a slot under the present node speeds and link factors (docs/design.md, Speed)."""
    config = facts.configs[state.jobs[b, state.runs[b, run]["order"]]["config"]]
    speed = np.inf
    alloc = state.runs[b, run]["alloc"]
    while alloc != NONE:
        speed = min(speed, state.nodes[b, state.allocs[b, alloc]["node"]]["speed"])
        alloc = state.allocs[b, alloc]["next_of_run"]
    pool = state.pools[b, config["pool_a"]]
    intra, inter = pool["intra_factor"], pool["inter_factor"] * _share(pool, config["demand_a"])
    power = state.sites[b, pool["site"]]["power_factor"]
    if config["pool_b"] >= 0:
        other = state.pools[b, config["pool_b"]]
        intra = min(intra, other["intra_factor"])
        power = min(power, state.sites[b, other["site"]]["power_factor"])
        inter = min(inter, other["inter_factor"] * _share(other, config["demand_b"]))
    speed *= power
    rate = config["rate"]
    if speed != 1.0 or intra != 1.0 or inter != 1.0:
        step_s = config["compute_s"] * (1.0 + config["straggler_share"] * (1.0 / speed - 1.0))
        step_s += max(0.0, config["intra_s"] / intra - config["intra_hideable_s"])
        step_s += max(0.0, config["inter_s"] / inter - config["inter_hideable_s"])
        rate = config["work_per_step"] / step_s
    return rate * config["spread_penalty"] if state.runs[b, run]["is_spread"] == 1 else rate


@kernel
def _share(pool: Rows, demand: int) -> float:
    """What a job gets of the part of its pool's network that it asks for."""
    return pool["level"] / demand if demand > pool["level"] else 1.0


@kernel
def target_work(state: State, facts: Facts, b: int, job_id: int) -> float:
    """Work at which a running job's next threshold, paid checkpoint or completion lies."""
    world = state.clock[b]["world"]
    request, job = facts.requests[world, job_id], state.jobs[b, job_id]
    target = min(request["work"], state.runs[b, job["run"]]["next_save"])
    if job["next_event"] < request["last_event"]:
        return min(facts.events[world, job["next_event"]]["at"], target)
    return target


@kernel
def settle(state: State, facts: Facts, b: int, run: int) -> None:
    """Bring a slot's work, durable work and attained service up to now."""
    now = state.clock[b]["now"]
    row = state.runs[b, run]
    job = state.jobs[b, row["order"]]
    seconds = now - row["since"]
    row["since"] = now
    if seconds <= 0.0:
        return
    request, config = facts.requests[state.clock[b]["world"], row["order"]], facts.configs[job["config"]]
    n_gpus = config["n_gpus"]
    job["held_gpu_s"] += seconds * n_gpus
    if row["is_stepping"] == 0:
        return
    target = target_work(state, facts, b, row["order"])
    work = job["work"] + row["rate"] * seconds
    if now >= row["reach_s"] or work > target:
        work = target
    job["work"] = work
    interval = checkpoint_interval(request, config)
    saved = 0.0
    if interval < np.inf and row["next_save"] == np.inf:
        saved = min(work, np.floor(work / interval + CHECKPOINT_TOLERANCE) * interval)
    if saved > job["durable"]:
        job["durable"] = saved
        row["volatile_gpu_s"] = n_gpus * (work - saved) / row["rate"]
    else:
        row["volatile_gpu_s"] += n_gpus * seconds


@kernel
def save(state: State, facts: Facts, b: int, run: int) -> None:
    """All work that a slot has done becomes durable."""
    settle(state, facts, b, run)
    job = state.jobs[b, state.runs[b, run]["order"]]
    job["durable"] = job["work"]
    state.runs[b, run]["volatile_gpu_s"] = 0.0


@kernel
def checkpoint_interval(request: Rows, config: Rows) -> float:
    """Work between periodic checkpoints."""
    return config["save_every"] if config["save_every"] < np.inf else request["checkpoint_interval"]


@kernel
def plan_saves(state: State, facts: Facts, b: int, run: int) -> None:
    """Drop a save under way, and set where the next paid checkpoint begins from the work done so far."""
    row = state.runs[b, run]
    row["saved_s"] = row["next_save"] = np.inf
    job = state.jobs[b, row["order"]]
    config = facts.configs[job["config"]]
    job_class = facts.classes[config["job_class"]]
    interval = checkpoint_interval(facts.requests[state.clock[b]["world"], row["order"]], config)
    if interval < np.inf and job_class["pause_s"] + job_class["persist_s"] > 0.0:
        row["next_save"] = (np.floor(job["work"] / interval + CHECKPOINT_TOLERANCE) + 1.0) * interval


@kernel
def begin_save(state: State, facts: Facts, b: int, run: int, pause_s: float, persist_s: float) -> None:
    """Save the settled work of a stepping slot: it pauses, then steps on; durable after both times."""
    row = state.runs[b, run]
    row["saving_work"], row["saving_gpu_s"] = state.jobs[b, row["order"]]["work"], row["volatile_gpu_s"]
    row["saved_s"] = state.clock[b]["now"] + (pause_s + persist_s)
    if pause_s > 0.0:
        config = facts.configs[state.jobs[b, row["order"]]["config"]]
        row["is_stepping"], row["ready_s"] = 0, state.clock[b]["now"] + pause_s
        state.clock[b]["overhead_gpus"] += config["n_gpus"]
        draw(state, b, config, -1.0)
    elif persist_s == 0.0:
        end_save(state, b, run)


@kernel
def end_save(state: State, b: int, run: int) -> None:
    """What a save began with is durable."""
    row = state.runs[b, run]
    job = state.jobs[b, row["order"]]
    if row["saving_work"] > job["durable"]:
        job["durable"] = row["saving_work"]
    row["volatile_gpu_s"] = max(0.0, row["volatile_gpu_s"] - row["saving_gpu_s"])
    row["saved_s"] = np.inf


@kernel
def believed_left(request: Rows, work: float) -> float:
    """Believed work left of a job that has done `work`."""
    if work < request["believed_work"]:
        return request["believed_work"] - work
    return OUTLIVED_SHARE * work


@kernel
def reschedule(state: State, facts: Facts, b: int, run: int) -> None:
    """Set the slot's next own instant from its settled work, and its place in the heap."""
    clock, row = state.clock[b], state.runs[b, run]
    job, request = state.jobs[b, row["order"]], facts.requests[clock["world"], row["order"]]
    end, believed = state.ends[b, run], believed_left(request, job["work"])
    end["per_weight"], end["instant"] = 1.0 / request["weight"], job["instant"]
    end["job"] = row["order"] if request["preemptible"] == 1 else NONE
    if row["is_stepping"] == 0:
        row["until"] = row["reach_s"] = row["ready_s"]
        end["believed_s"] = row["ready_s"] + believed / facts.configs[job["config"]]["rate"]
    else:
        row["rate"] = rate_of(state, facts, b, run)
        left = target_work(state, facts, b, row["order"]) - job["work"]
        row["reach_s"] = clock["now"] + max(0.0, left) / row["rate"]
        row["until"] = min(row["reach_s"], row["saved_s"])
        end["believed_s"] = clock["now"] + believed / row["rate"]
    if row["heap"] == NONE:
        clock["n_run_heap"] = heap.push(state.run_heap[b], state.runs[b], clock["n_run_heap"], run)
    else:
        heap.reorder(state.run_heap[b], state.runs[b], clock["n_run_heap"], run)


@kernel
def begin_stepping(state: State, facts: Facts, b: int, run: int) -> None:
    """End of the overhead: the GPUs draw the configuration's power from now on."""
    config = facts.configs[state.jobs[b, state.runs[b, run]["order"]]["config"]]
    state.clock[b]["overhead_gpus"] -= config["n_gpus"]
    state.runs[b, run]["is_stepping"] = 1
    draw(state, b, config, 1.0)


@kernel
def draw(state: State, b: int, config: Rows, sign: float) -> None:
    """Put the stepping power of a configuration in place of its GPUs' idle power (sign 1), or take it back (-1)."""
    part_a = config["power_w"]
    if config["pool_b"] >= 0:
        part_a = np.round(part_a * config["gpus_a"] / config["n_gpus"] / POWER_QUANTUM_W) * POWER_QUANTUM_W
        pool = state.pools[b, config["pool_b"]]
        _add_load(state, b, pool, sign * (config["power_w"] - part_a - config["gpus_b"] * pool["idle_w"]), sign * config["demand_b"])
    pool = state.pools[b, config["pool_a"]]
    _add_load(state, b, pool, sign * (part_a - config["gpus_a"] * pool["idle_w"]), sign * config["demand_a"])


@kernel
def _add_load(state: State, b: int, pool: Rows, watts: float, demand: float) -> None:
    """Add to what stepping jobs draw from a pool's site and ask of its network."""
    pool["demand"] += int(demand)
    if pool["demand"] > pool["links"] or pool["level"] < np.inf:
        pool["is_stale"] = 1
        state.clock[b]["is_stale"] = 1
    pool["power_w"] += watts
    site = state.sites[b, pool["site"]]
    site["it_w"] += watts
    site["dynamic_w"] += watts
    mark_stale(state, b, site)


@kernel
def occupy(state: State, facts: Facts, b: int, run: int, config_id: int, overhead_s: float) -> None:
    """Place a slot's job in a configuration (its GPUs are free before) and begin its overhead."""
    clock, row = state.clock[b], state.runs[b, run]
    request = facts.requests[clock["world"], row["order"]]
    config = facts.configs[config_id]
    state.jobs[b, row["order"]]["config"] = config_id
    place(state, facts, b, request, facts.sizes[config_id], run)
    overhead_s += row["wake_s"]
    row["since"], row["ready_s"] = clock["now"], clock["now"] + overhead_s
    row["is_stepping"] = 0
    plan_saves(state, facts, b, run)
    clock["overhead_gpus"] += config["n_gpus"]
    if overhead_s <= 0.0:
        begin_stepping(state, facts, b, run)
    reschedule(state, facts, b, run)


@kernel
def vacate(state: State, facts: Facts, b: int, run: int) -> None:
    """Free a settled slot's GPUs; the slot stays the job's."""
    row = state.runs[b, run]
    job_id = row["order"]
    config = facts.configs[state.jobs[b, job_id]["config"]]
    if row["is_stepping"] == 1:
        draw(state, b, config, -1.0)
    else:
        state.clock[b]["overhead_gpus"] -= config["n_gpus"]
    row["saved_s"] = row["next_save"] = np.inf
    give_back(state, facts, b, facts.requests[state.clock[b]["world"], job_id], run)


@kernel
def join(state: State, facts: Facts, b: int, job_id: int) -> int:
    """A slot for a job, at the end of the running list."""
    clock = state.clock[b]
    run = clock["free_run"]
    row = state.runs[b, run]
    clock["free_run"] = row["next"]
    row["order"], row["heap"], row["alloc"], row["volatile_gpu_s"] = job_id, NONE, NONE, 0.0
    row["tie"] = clock["n_starts"] if facts.rules[0]["one_by_one"] == 1 else job_id
    clock["n_starts"] += 1
    row["saved_s"] = row["next_save"] = np.inf
    row["previous"], row["next"] = clock["last_run"], NONE
    if clock["last_run"] == NONE:
        clock["first_run"] = run
    else:
        state.runs[b, clock["last_run"]]["next"] = run
    clock["last_run"] = run
    clock["n_running"] += 1
    state.jobs[b, job_id]["run"] = run
    return run


@kernel
def leave(state: State, b: int, run: int) -> None:
    """Give the slot back; the job is no longer running."""
    clock, row = state.clock[b], state.runs[b, run]
    clock["n_run_heap"] = heap.remove(state.run_heap[b], state.runs[b], clock["n_run_heap"], run)
    if row["previous"] == NONE:
        clock["first_run"] = row["next"]
    else:
        state.runs[b, row["previous"]]["next"] = row["next"]
    if row["next"] == NONE:
        clock["last_run"] = row["previous"]
    else:
        state.runs[b, row["next"]]["previous"] = row["previous"]
    row["next"] = clock["free_run"]
    clock["free_run"] = run
    clock["n_running"] -= 1
    state.jobs[b, row["order"]]["run"] = NONE

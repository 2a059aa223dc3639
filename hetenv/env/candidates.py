"""The candidate table: every decision as one row, read alike by the mask, the heuristics and the networks.

Row 0 is `wait`. Then `configurations` rows for each visible job: W_q queued jobs, taken in turn from the heads of the window
orders, and W_r running ones by start. A queued job's rows are its first legal configurations in preference order
(`hetenv.configurations.preference`); a running one's are `preempt` and its first legal alternatives. Rows hold beliefs only.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.jit import kernel
from hetenv.scenario import CandidateConfig
from hetenv.sim.commands import Command, allows, start_overhead_s
from hetenv.sim.placement import fits
from hetenv.sim.queue import next_queued
from hetenv.sim.tables import NONE, Facts, Rows, State
from hetenv.workload.requests import Elasticity

CANDIDATE = np.dtype(
    [
        ("job", "i4"),  # request, or NONE
        ("config", "i4"),  # CONFIG row, or NONE
        ("n_gpus", "i4"),  # of that configuration; 0 for wait and preempt
        ("gpus_change", "i4"),  # GPUs taken (+) or freed (-) by the command
        ("pool", "i2"),  # of the configuration (the first of two), or of the GPUs that preempt frees
        ("slot", "i2"),  # place of the job in the window, or NONE
        ("command", "i1"),  # Command
        ("is_legal", "i1"),  # 0: an empty row, its other columns mean nothing
        ("is_running", "i1"),  # the job holds GPUs now
        ("tier", "i1"),
        ("weight", "f4"),
        ("age_s", "f4"),  # since its submit
        ("attained_gpu_s", "f4"),  # service so far
        ("best_s", "f4"),  # believed run time left at the job's fastest configuration
        ("present_s", "f4"),  # believed time left in its present configuration; queued: 0
        ("left_s", "f4"),  # believed time left under this row, change included; preempt: best_s + change
        ("slack_s", "f4"),  # believed time to its deadline once it ends under this row; no deadline: NO_DEADLINE_S
        ("change_s", "f4"),  # GPUs held without progress by the command (preempt: at the next start)
        ("speed", "f4"),  # rate over the job's fastest rate, 0..1
        ("efficiency", "f4"),  # work per GPU second over the class's best, 0..1
        ("advantage", "f4"),  # how much this pool suits the class, against what it offers other classes, > 0
        ("memory_margin", "f4"),  # 0..1
        ("energy_j", "f4"),  # believed energy of the work left, PUE included
        ("carbon_kg", "f4"),  # the same drawn from the grid at its present intensity
        ("cost_usd", "f4"),  # the same at its present price
        ("free_share", "f4"),  # of the pool's up GPUs, before the command
    ],
    align=True,
)
NO_DEADLINE_S: Final = 1e9
OUTLIVED_SHARE: Final = 0.1
"""A job that has outlived its estimate is believed to need this share of the work it has done."""

SHAPE = np.dtype([("queued", "i4"), ("running", "i4"), ("configurations", "i4")])


def shape_of(config: CandidateConfig) -> NDArray[np.void]:
    """[1] SHAPE row of a scenario's candidate table."""
    return np.array([(config.queued, config.running, config.configurations)], SHAPE)


def n_rows(config: CandidateConfig) -> int:
    """A: rows of the candidate table."""
    return 1 + (config.queued + config.running) * config.configurations


@kernel
def build(state: State, facts: Facts, b: int, shape: Rows, table: Rows, window: NDArray[np.int32]) -> int:
    """Write the candidate rows of simulation b.

    Args:
        shape: [1] SHAPE.
        table: [A] CANDIDATE rows, written.
        window: [W] visible job of each slot or NONE, written.

    Returns:
        Number of legal rows besides `wait`.
    """
    sizes = shape[0]
    _wait_row(table[0])
    n_queued = _visible(state, facts, b, sizes["queued"], window)
    n_legal, first = 0, 1
    for slot in range(sizes["queued"]):
        used = 0
        if slot < n_queued:
            used = _queued_rows(state, facts, b, window[slot], slot, sizes["configurations"], table, first)
        n_legal += used
        _clear(table, first + used, first + sizes["configurations"])
        first += sizes["configurations"]
    run = state.clock[b]["first_run"]
    for slot in range(sizes["queued"], sizes["queued"] + sizes["running"]):
        used = 0
        window[slot] = NONE
        if run != NONE:
            window[slot] = state.runs[b, run]["order"]
            used = _running_rows(state, facts, b, run, slot, sizes["configurations"], table, first)
            run = state.runs[b, run]["next"]
        n_legal += used
        _clear(table, first + used, first + sizes["configurations"])
        first += sizes["configurations"]
    return n_legal


@kernel
def _wait_row(row: Rows) -> None:
    row["job"] = row["config"] = row["pool"] = row["slot"] = NONE
    row["command"], row["is_legal"], row["n_gpus"], row["gpus_change"] = Command.WAIT, 1, 0, 0
    row["is_running"], row["tier"] = 0, 0


@kernel
def _clear(table: Rows, first: int, last: int) -> None:
    for index in range(first, last):
        table[index]["is_legal"] = 0


@kernel
def _visible(state: State, facts: Facts, b: int, most: int, window: NDArray[np.int32]) -> int:
    """Fill the window with queued jobs, in turn from the head of each window order; returns how many."""
    orders = facts.ranks.shape[1]
    found, wanted = 0, min(most, state.clock[b]["n_queued"])
    while found < wanted:
        for order in range(orders):
            if found >= wanted:
                break
            _next_of_order(state, facts, b, order, found, window)
            found += 1
    for slot in range(found, most):
        window[slot] = NONE
    return found


@kernel
def _next_of_order(state: State, facts: Facts, b: int, order: int, found: int, window: NDArray[np.int32]) -> None:
    """Put the first job of an order that is not yet in the window at place `found`."""
    place = next_queued(state, facts, b, order, 0)
    while True:
        job_id = facts.ranked[state.clock[b]["world"], order, place]
        is_new = True
        for slot in range(found):
            if window[slot] == job_id:
                is_new = False
                break
        if is_new:
            window[found] = job_id
            return
        place = next_queued(state, facts, b, order, place + 1)


@kernel
def believed_left(request: Rows, work: float) -> float:
    """Believed work left of a job that has done `work`."""
    if work < request["believed_work"]:
        return request["believed_work"] - work
    return OUTLIVED_SHARE * work


@kernel
def best_left_s(request: Rows, left: float) -> float:
    """Believed seconds that `left` work takes at the request's fastest configuration."""
    if request["believed_work"] <= 0.0:
        return left
    return left * request["believed_s"] / request["believed_work"]


@kernel
def _job_columns(request: Rows, job_id: int, slot: int, now: float, best_s: float, attained: float, row: Rows) -> None:
    row["job"], row["slot"], row["is_legal"], row["weight"] = job_id, slot, 1, request["weight"]
    row["age_s"], row["best_s"], row["attained_gpu_s"] = now - request["submit_s"], best_s, attained


@kernel
def _config_columns(
    state: State, b: int, config: Rows, left: float, best_s: float, change_s: float, to_deadline_s: float, row: Rows
) -> None:
    """Columns of a command that puts a job with `left` work into `config`."""
    pool = state.pools[b, config["pool_a"]]
    site = state.sites[b, pool["site"]]
    work_s = left / config["rate"]
    energy_j = left * config["energy_per_work_j"] * site["pue"]
    row["n_gpus"], row["pool"], row["tier"] = config["n_gpus"], config["pool_a"], config["tier"]
    row["left_s"], row["change_s"] = work_s + change_s, change_s
    row["speed"] = min(1.0, best_s / work_s) if work_s > 0.0 else 1.0
    row["efficiency"], row["advantage"] = config["efficiency"], config["advantage"]
    row["memory_margin"], row["energy_j"] = config["memory_margin"], energy_j
    row["slack_s"] = min(NO_DEADLINE_S, to_deadline_s - work_s - change_s)
    row["free_share"] = pool["free_gpus"] / max(1, pool["up_gpus"])
    grid_j = energy_j
    power_w = site["pue"] * site["it_w"]
    if site["renewable_w"] > power_w:
        grid_j = max(0.0, energy_j - (site["renewable_w"] - power_w) * work_s)
    row["carbon_kg"], row["cost_usd"] = grid_j * site["carbon_kg_per_j"], grid_j * site["price_usd_per_j"]


@kernel
def _queued_rows(
    state: State, facts: Facts, b: int, job_id: int, slot: int, most: int, table: Rows, first: int
) -> int:
    """Write the rows of a queued job; returns how many."""
    clock, job = state.clock[b], state.jobs[b, job_id]
    if job["instant"] == clock["instant"] or clock["commands_left"] <= 0:
        return 0
    request = facts.requests[clock["world"], job_id]
    job_class = facts.classes[request["job_class"]]
    left = believed_left(request, job["work"])
    best_s, to_deadline_s = best_left_s(request, left), request["deadline_s"] - clock["now"]
    used = 0
    for config_id in range(job_class["first_config"], job_class["last_config"]):
        size = facts.sizes[config_id]
        if size["gpus_a"] > state.pools[b, size["pool_a"]]["free_gpus"]:
            continue
        if not allows(request, size) or not fits(state, b, request, size, NONE):
            continue
        config = facts.configs[config_id]
        row = table[first + used]
        _job_columns(request, job_id, slot, clock["now"], best_s, job["held_gpu_s"], row)
        row["command"], row["config"], row["is_running"] = Command.START, config_id, 0
        row["present_s"], row["gpus_change"] = 0.0, config["n_gpus"]
        change_s = start_overhead_s(facts, job, config_id)
        _config_columns(state, b, config, left, best_s, change_s, to_deadline_s, row)
        used += 1
        if used == most:
            break
    return used


@kernel
def _running_rows(state: State, facts: Facts, b: int, run: int, slot: int, most: int, table: Rows, first: int) -> int:
    """Write `preempt` and the alternatives of a running job; returns how many."""
    clock, row_of_run = state.clock[b], state.runs[b, run]
    job_id = row_of_run["order"]
    job = state.jobs[b, job_id]
    request = facts.requests[clock["world"], job_id]
    if request["preemptible"] == 0 or job["instant"] == clock["instant"] or clock["commands_left"] <= 0:
        return 0
    present = facts.configs[job["config"]]
    seconds = clock["now"] - row_of_run["since"]
    work, present_s = job["work"], max(0.0, row_of_run["ready_s"] - clock["now"])
    rate = present["rate"]
    if row_of_run["is_stepping"] == 1:
        rate, present_s = row_of_run["rate"], 0.0
        work += rate * seconds
    left = believed_left(request, work)
    best_s, to_deadline_s = best_left_s(request, left), request["deadline_s"] - clock["now"]
    present_s += left / rate
    attained = job["held_gpu_s"] + seconds * present["n_gpus"]
    job_class = facts.classes[request["job_class"]]
    used = 0
    for config_id in range(job_class["first_config"] - 1, job_class["last_config"]):
        preempts = config_id < job_class["first_config"]
        shown = job["config"] if preempts else config_id
        if not preempts and not _is_alternative(state, facts, b, request, job["config"], config_id, run):
            continue
        config = facts.configs[shown]
        row = table[first + used]
        _job_columns(request, job_id, slot, clock["now"], best_s, attained, row)
        change_s = start_overhead_s(facts, job, shown)
        _config_columns(state, b, config, left, best_s, change_s, to_deadline_s, row)
        row["is_running"], row["present_s"] = 1, present_s
        row["command"], row["config"] = (Command.PREEMPT, NONE) if preempts else (Command.CHANGE, config_id)
        row["n_gpus"] = 0 if preempts else config["n_gpus"]
        row["gpus_change"] = row["n_gpus"] - present["n_gpus"]
        used += 1
        if used == most:
            break
    return used


@kernel
def _is_alternative(
    state: State, facts: Facts, b: int, request: Rows, present_id: int, config_id: int, run: int
) -> bool:
    size, present = facts.sizes[config_id], facts.sizes[present_id]
    if config_id == present_id or (request["elasticity"] != Elasticity.MALLEABLE and size["n_gpus"] != present["n_gpus"]):
        return False
    if size["gpus_a"] > _most_free(state, b, size["pool_a"], present):
        return False
    return allows(request, size) and fits(state, b, request, size, run)


@kernel
def _most_free(state: State, b: int, p: int, present: Rows) -> int:
    """GPUs of a pool that are free or held by a job in its present configuration: no more than these can be placed."""
    free = state.pools[b, p]["free_gpus"]
    if present["pool_a"] == p:
        free += present["gpus_a"]
    if present["pool_b"] == p:
        free += present["gpus_b"]
    return free

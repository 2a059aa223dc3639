"""The candidate table: every decision as one row, read alike by the mask, the heuristics and the networks.

Row 0 is `wait`. Then `configurations` rows for each visible job of the window (`hetenv.env.window`). A queued job's rows are its
first legal configurations in preference order (`hetenv.configurations.preference`); a running one's are `preempt` and its first
legal alternatives. Rows hold beliefs only.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hetenv.env.window import visible_queued, visible_running
from hetenv.jit import kernel
from hetenv.scenario import CandidateConfig
from hetenv.sim.commands import Command, allows, may_become, may_preempt, present_class, start_overhead_s
from hetenv.sim.placement import fits, fits_uncharged
from hetenv.sim.power import site_power_w
from hetenv.sim.running import believed_left
from hetenv.sim.tables import NONE, Facts, Rows, State

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
        ("notice_s", "f4"),  # running: until the first node it holds is announced to leave; NO_NOTICE_S: none is
        ("leaving_share", "f4"),  # of the pool's up GPUs, those on nodes announced to leave
        ("phase", "i1"),  # of the job, as a place in its class's cycle
        ("waiting_s", "f4"),  # preempt: least believed time over weight of a visible queued job in GPUs that include the freed; none: 0
    ],
    align=True,
)
NO_DEADLINE_S: Final = 1e9
NO_NOTICE_S: Final = 1e9

CHOICE = np.dtype([("job", "i4"), ("config", "i4"), ("command", "i1"), ("is_legal", "i1")], align=True)
"""The columns of CANDIDATE that say what choosing a row does."""

SIZES = np.dtype([("queued", "i4"), ("running", "i4"), ("configurations", "i4")])


class Board(NamedTuple):
    """The sizes of a candidate table, and the memory that `build` works in: one for all simulations, so that it stays in cache."""

    sizes: NDArray[np.void]
    """[1] SIZES row."""
    table: NDArray[np.void]
    """[A] CANDIDATE rows, written."""
    fits: NDArray[np.int8]
    """[2, F] whether a footprint is free; if the GPUs of the running job at hand counted as free."""
    ways: NDArray[np.int32]
    """[C + 1] free configurations of each class in preference order, from the class's `first_config` on."""
    beside: NDArray[np.int32]
    """[C + 1] those of a running job's class that are free if its GPUs count as free."""
    n_ways: NDArray[np.int32]
    """[K] how many; NONE: not listed yet."""
    left: NDArray[np.float64]
    """[W_q, 2] of each visible queued job: believed work left, and the least time that this takes, over weight (inf: no start now)."""
    keys: NDArray[np.float64]
    """[W_r] time left over weight of each visible running job."""
    heads: NDArray[np.int32]
    """[O] place in each window order up to which its jobs were looked at."""


def board_of(config: CandidateConfig, facts: Facts) -> Board:
    """The Board of a scenario's candidate table."""
    return Board(
        np.array([(config.queued, config.running, config.configurations)], SIZES),
        np.zeros(n_rows(config), CANDIDATE),
        np.zeros((2, facts.footprints.size), np.int8),
        np.zeros(facts.sizes.size + 1, np.int32),
        np.zeros(facts.sizes.size + 1, np.int32),
        np.zeros(facts.classes.size, np.int32),
        np.zeros((config.queued, 2)),
        np.zeros(config.running),
        np.zeros(facts.ranks.shape[1], np.int32),
    )


def n_rows(config: CandidateConfig) -> int:
    """A: rows of the candidate table."""
    return 1 + (config.queued + config.running) * config.configurations


@kernel
def build(state: State, facts: Facts, b: int, board: Board, window: NDArray[np.int32]) -> int:
    """Write the candidate rows of simulation b into the board's table.

    Args:
        board: sizes, and memory.
        window: [W] visible job of each slot or NONE, written.

    Returns:
        Number of legal rows besides `wait`.
    """
    sizes, table = board.sizes[0], board.table
    _wait_row(table[0])
    _survey(state, facts, b, board)
    most, queued = sizes["configurations"], window[: sizes["queued"]]
    n_queued = visible_queued(state, facts, b, board.heads, queued)
    n_running = visible_running(state, b, board.keys, window[sizes["queued"] :])
    n_legal, first = 0, 1
    for slot in range(window.shape[0]):
        used = 0
        if slot < n_queued:
            used = _queued_rows(state, facts, b, window[slot], slot, most, board, table, first)
        elif sizes["queued"] <= slot < sizes["queued"] + n_running:
            run = state.jobs[b, window[slot]]["run"]
            used = _running_rows(state, facts, b, run, slot, most, board, table, first)
            if used > 0:
                table[first]["waiting_s"] = _waiting_s(state, facts, b, run, queued[:n_queued], board)
        n_legal += used
        for index in range(first + used, first + most):
            table[index]["is_legal"] = 0
        first += most
    return n_legal


@kernel
def _wait_row(row: Rows) -> None:
    row["job"] = row["config"] = row["pool"] = row["slot"] = NONE
    row["command"], row["is_legal"], row["n_gpus"], row["gpus_change"] = Command.WAIT, 1, 0, 0
    row["is_running"], row["tier"], row["waiting_s"] = 0, 0, 0.0


@kernel
def _survey(state: State, facts: Facts, b: int, board: Board) -> None:
    """Look up which footprints are free."""
    for f in range(facts.footprints.shape[0]):
        size = facts.sizes[facts.footprints[f]]
        enough = size["gpus_a"] <= state.pools[b, size["pool_a"]]["free_gpus"]
        board.fits[0, f] = 1 if enough and fits_uncharged(state, b, size, NONE) else 0
    for k in range(board.n_ways.shape[0]):
        board.n_ways[k] = NONE


@kernel
def _survey_beside(state: State, facts: Facts, b: int, run: int, board: Board) -> None:
    """Look up which footprints are free if the GPUs of a running job count as free."""
    pools = state.runs[b, run]["pools"]
    held = facts.sizes[state.jobs[b, state.runs[b, run]["order"]]["config"]]
    for f in range(facts.footprints.shape[0]):
        free = board.fits[0, f]
        if free == 0:
            size = facts.sizes[facts.footprints[f]]
            p = size["pool_a"]
            own = held["gpus_a"] if held["pool_a"] == p else held["gpus_b"] if held["pool_b"] == p else 0
            shares = (pools >> p) & 1 == 1 or (size["pool_b"] >= 0 and (pools >> size["pool_b"]) & 1 == 1)
            if shares and size["gpus_a"] <= state.pools[b, p]["free_gpus"] + own:
                free = 1 if fits_uncharged(state, b, size, run) else 0
        board.fits[1, f] = free


@kernel
def _list_free(facts: Facts, k: int, fits: NDArray[np.int8], ways: NDArray[np.int32]) -> int:
    """List the configurations of a class whose footprints are free; returns how many. (No branch: they come and go at random.)"""
    n = 0
    for config_id in range(facts.classes[k]["first_config"], facts.classes[k]["last_config"]):
        ways[n] = config_id
        n += fits[facts.footprint[config_id]]
    return n


@kernel
def _is_charged(request: Rows) -> bool:
    """Whether free GPUs alone do not decide where a request fits."""
    return request["cpus_per_gpu"] > 0 or request["host_mbytes_per_gpu"] > 0


@kernel
def _waiting_s(state: State, facts: Facts, b: int, run: int, queued: NDArray[np.int32], board: Board) -> float:
    """Least believed time over weight in which a visible queued job would end if it started where the run gives way; 0: none could.

    Reads what `_survey_beside` found for this run.
    """
    world = state.clock[b]["world"]
    p = facts.sizes[state.jobs[b, state.runs[b, run]["order"]]["config"]]["pool_a"]
    least = np.inf
    for slot in range(queued.shape[0]):
        if board.left[slot, 1] >= least:
            continue
        job, request = state.jobs[b, queued[slot]], facts.requests[world, queued[slot]]
        k = present_class(request, job)
        for place in range(facts.first_fastest[k, p], facts.first_fastest[k, p + 1]):
            config_id = facts.fastest[place]
            if board.fits[1, facts.footprint[config_id]] == 0:
                continue
            size = facts.sizes[config_id]
            if not allows(request, job, size):
                continue
            if _is_charged(request) and not fits(state, b, request, size, run):
                continue
            seconds = board.left[slot, 0] / facts.configs[config_id]["rate"]
            seconds += start_overhead_s(state, facts, b, job, config_id)
            least = min(least, seconds / request["weight"])
            break
    return least if least < np.inf else 0.0


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
    row["leaving_share"] = min(1.0, pool["leaving_gpus"] / max(1, pool["up_gpus"]))
    grid_j = energy_j
    power_w = site_power_w(site)
    if site["renewable_w"] > power_w:
        grid_j = max(0.0, energy_j - (site["renewable_w"] - power_w) * work_s)
    row["carbon_kg"], row["cost_usd"] = grid_j * site["carbon_kg_per_j"], grid_j * site["price_usd_per_j"]


@kernel
def _queued_rows(
    state: State, facts: Facts, b: int, job_id: int, slot: int, most: int, board: Board, table: Rows, first: int
) -> int:
    """Write the rows of a queued job; returns how many."""
    clock, job = state.clock[b], state.jobs[b, job_id]
    board.left[slot, 1] = np.inf
    if job["instant"] == clock["instant"] or clock["commands_left"] <= 0:
        return 0
    request = facts.requests[clock["world"], job_id]
    k = present_class(request, job)
    begin = facts.classes[k]["first_config"]
    if board.n_ways[k] == NONE:
        board.n_ways[k] = _list_free(facts, k, board.fits[0], board.ways[begin:])
    left = believed_left(request, job["work"])
    best_s, to_deadline_s = best_left_s(request, left), request["deadline_s"] - clock["now"]
    board.left[slot, 0], board.left[slot, 1] = left, best_s / request["weight"]
    used = 0
    for place in range(begin, begin + board.n_ways[k]):
        config_id = board.ways[place]
        size = facts.sizes[config_id]
        if not allows(request, job, size) or (_is_charged(request) and not fits(state, b, request, size, NONE)):
            continue
        row = table[first + used]
        _job_columns(request, job_id, slot, clock["now"], best_s, job["held_gpu_s"], row)
        row["command"], row["config"], row["is_running"] = Command.START, config_id, 0
        row["present_s"], row["gpus_change"], row["waiting_s"] = 0.0, size["n_gpus"], 0.0
        row["notice_s"], row["phase"] = NO_NOTICE_S, job["phase"]
        change_s = start_overhead_s(state, facts, b, job, config_id)
        _config_columns(state, b, facts.configs[config_id], left, best_s, change_s, to_deadline_s, row)
        used += 1
        if used == most:
            break
    return used


@kernel
def _running_rows(
    state: State, facts: Facts, b: int, run: int, slot: int, most: int, board: Board, table: Rows, first: int
) -> int:
    """Write `preempt` and the alternatives of a running job that may have a command; returns how many."""
    clock, row_of_run = state.clock[b], state.runs[b, run]
    job_id = row_of_run["order"]
    job, request = state.jobs[b, job_id], facts.requests[clock["world"], job_id]
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
    _survey_beside(state, facts, b, run, board)
    n_beside = _list_free(facts, present_class(request, job), board.fits[1], board.beside)
    used, notice_s = 0, _notice_s(state, b, run, present)
    for place in range(-1 if may_preempt(facts, request) else 0, n_beside):
        preempts = place < 0
        config_id = job["config"] if preempts else board.beside[place]
        if not preempts:
            size = facts.sizes[config_id]
            if config_id == job["config"] or not _may_change(facts, request, job, size):
                continue
            if _is_charged(request) and not fits(state, b, request, size, run):
                continue
        config = facts.configs[config_id]
        row = table[first + used]
        _job_columns(request, job_id, slot, clock["now"], best_s, attained, row)
        change_s = start_overhead_s(state, facts, b, job, config_id)
        _config_columns(state, b, config, left, best_s, change_s, to_deadline_s, row)
        row["is_running"], row["present_s"], row["waiting_s"] = 1, present_s, 0.0
        row["notice_s"], row["phase"] = notice_s, job["phase"]
        row["command"], row["config"] = (Command.PREEMPT, NONE) if preempts else (Command.CHANGE, config_id)
        row["n_gpus"] = 0 if preempts else config["n_gpus"]
        row["gpus_change"] = row["n_gpus"] - present["n_gpus"]
        used += 1
        if used == most:
            break
    return used


@kernel
def _notice_s(state: State, b: int, run: int, config: Rows) -> float:
    """Seconds until the first node of a slot is announced to leave; NO_NOTICE_S if none is."""
    leaving = state.pools[b, config["pool_a"]]["leaving_gpus"]
    if config["pool_b"] >= 0:
        leaving += state.pools[b, config["pool_b"]]["leaving_gpus"]
    if leaving == 0:
        return NO_NOTICE_S
    leaves_s = np.inf
    alloc = state.runs[b, run]["alloc"]
    while alloc != NONE:
        leaves_s = min(leaves_s, state.nodes[b, state.allocs[b, alloc]["node"]]["leaves_s"])
        alloc = state.allocs[b, alloc]["next_of_run"]
    return min(NO_NOTICE_S, max(0.0, leaves_s - state.clock[b]["now"]))


@kernel
def _may_change(facts: Facts, request: Rows, job: Rows, size: Rows) -> bool:
    """Whether a running job may change to a configuration, if it is free."""
    return may_become(facts, request, facts.sizes[job["config"]], size) and allows(request, job, size)

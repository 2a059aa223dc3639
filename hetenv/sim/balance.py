"""What stepping jobs share: a site's capped power and what joins a pool's nodes (docs/design.md, Caps and Network)."""

import numpy as np

from hetenv.jit import kernel
from hetenv.sim.effects import evict
from hetenv.sim.running import reschedule, settle
from hetenv.sim.tables import NONE, Facts, Rows, State

MIN_POWER_FACTOR = 0.3
"""Of the dynamic power; below it a job is evicted instead. GPUs run stably down to about a third of their power range."""


@kernel
def balance(state: State, facts: Facts, b: int) -> bool:
    """Bring every pool's network and every site's power into balance. Returns whether a job was evicted for it."""
    clock = state.clock[b]
    evicted = False
    while clock["is_stale"] == 1:
        clock["is_stale"] = 0
        for p in range(state.pools.shape[1]):
            if state.pools[b, p]["is_stale"] == 1:
                _set_level(state, facts, b, p)
        for s in range(state.sites.shape[1]):
            if state.sites[b, s]["is_stale"] == 1:
                evicted = _keep_cap(state, facts, b, s) or evicted
    return evicted


@kernel
def _keep_cap(state: State, facts: Facts, b: int, s: int) -> bool:
    """Bring a site under its power cap. Returns whether a job was evicted for it."""
    site = state.sites[b, s]
    evicted = False
    factor = power_factor(site)
    while factor < MIN_POWER_FACTOR:
        run = lightest(state, facts, b, s)
        if run == NONE:
            break
        evict(state, facts, b, run)
        factor = power_factor(site)
        evicted = True
    set_power_factor(state, facts, b, s, max(factor, MIN_POWER_FACTOR))
    return evicted


@kernel
def _demand(state: State, facts: Facts, b: int, run: int, p: int) -> int:
    """What a slot asks of what joins the nodes of a pool; 0 while it does not step."""
    if state.runs[b, run]["is_stepping"] == 0:
        return 0
    config = facts.configs[state.jobs[b, state.runs[b, run]["order"]]["config"]]
    if config["pool_a"] == p:
        return config["demand_a"]
    return config["demand_b"] if config["pool_b"] == p else 0


@kernel
def _set_level(state: State, facts: Facts, b: int, p: int) -> None:
    """A pool's max-min fair level; jobs that it bounds, or bounded before, take their new rates."""
    pool, clock = state.pools[b, p], state.clock[b]
    pool["is_stale"] = 0
    level = _fair_level(state, facts, b, p) if pool["demand"] > pool["links"] else np.inf
    if level == pool["level"]:
        return
    bound = min(level, pool["level"])
    pool["level"] = level
    run = clock["first_run"]
    while run != NONE:
        if _demand(state, facts, b, run, p) > bound:
            settle(state, facts, b, run)
            reschedule(state, facts, b, run)
        run = state.runs[b, run]["next"]


@kernel
def _fair_level(state: State, facts: Facts, b: int, p: int) -> float:
    """The level at which jobs that ask for less get all and the others the level, together what the pool carries."""
    n_served, served = -1, 0
    level = 0.0
    while True:
        count, total, n_asking = 0, 0, 0
        run = state.clock[b]["first_run"]
        while run != NONE:
            demand = _demand(state, facts, b, run, p)
            if demand > 0:
                n_asking += 1
                if demand <= level:
                    count += 1
                    total += demand
            run = state.runs[b, run]["next"]
        if count == n_served:
            return level
        n_served, served = count, total
        level = (state.pools[b, p]["links"] - served) / (n_asking - n_served)


@kernel
def power_factor(site: Rows) -> float:
    """The factor on dynamic power that keeps a site under its cap; may lie below MIN_POWER_FACTOR."""
    if site["dynamic_w"] <= 0.0:
        return 1.0
    allowed_w = min(site["cap_w"], site["renewable_w"] + site["grid_limit_w"]) / site["pue"]
    if site["it_w"] <= allowed_w:
        return 1.0
    return (allowed_w - (site["it_w"] - site["dynamic_w"])) / site["dynamic_w"]


@kernel
def draws_at(state: State, facts: Facts, b: int, run: int, s: int) -> bool:
    """Whether a slot is stepping on GPUs of a site."""
    if state.runs[b, run]["is_stepping"] == 0:
        return False
    config = facts.configs[state.jobs[b, state.runs[b, run]["order"]]["config"]]
    if state.pools[b, config["pool_a"]]["site"] == s:
        return True
    return config["pool_b"] >= 0 and state.pools[b, config["pool_b"]]["site"] == s


@kernel
def lightest(state: State, facts: Facts, b: int, s: int) -> int:
    """The stepping slot of a site whose job has the lowest weight (ties: highest id), or NONE."""
    found, found_weight = NONE, np.inf
    world = state.clock[b]["world"]
    run = state.clock[b]["first_run"]
    while run != NONE:
        if draws_at(state, facts, b, run, s):
            job_id = state.runs[b, run]["order"]
            weight = facts.requests[world, job_id]["weight"]
            if weight < found_weight or (weight == found_weight and job_id > state.runs[b, found]["order"]):
                found, found_weight = run, weight
        run = state.runs[b, run]["next"]
    return found


@kernel
def set_power_factor(state: State, facts: Facts, b: int, s: int, factor: float) -> None:
    """A site's new power factor; its stepping jobs take their new rates."""
    site = state.sites[b, s]
    site["is_stale"] = 0
    if factor == site["power_factor"]:
        return
    site["power_factor"] = factor
    run = state.clock[b]["first_run"]
    while run != NONE:
        if draws_at(state, facts, b, run, s):
            settle(state, facts, b, run)
            reschedule(state, facts, b, run)
        run = state.runs[b, run]["next"]

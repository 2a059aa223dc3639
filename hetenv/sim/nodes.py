"""Nodes' own time: busy seconds, hazard budgets, and the place of a node in the heap of next instants."""

import numpy as np

from hetenv.jit import kernel
from hetenv.sim import heap
from hetenv.sim.tables import NONE, Facts, Rows, State


@kernel
def settle_busy(state: State, b: int, node_index: int) -> None:
    """Count the node's busy seconds up to now (up, and held by a job)."""
    node, now = state.nodes[b, node_index], state.clock[b]["now"]
    if node["is_up"] == 1 and node["alloc"] != NONE:
        node["busy_s"] += now - node["busy_since"]
    node["busy_since"] = now


@kernel
def reschedule_node(state: State, facts: Facts, b: int, node_index: int) -> None:
    """Set the next own instant of an up node: where its hazard budget runs out, if it is busy (or has run out), or it falls asleep."""
    node, clock = state.nodes[b, node_index], state.clock[b]
    until = np.inf
    if node["alloc"] == NONE and node["is_asleep"] == 0:
        until = node["idle_since"] + state.pools[b, node["pool"]]["sleep_after_s"]
    if node["next_event"] < facts.node_event[clock["world"], node_index + 1]:
        budget_s = facts.events[clock["world"], node["next_event"]]["at"]
        if node["alloc"] != NONE or node["busy_s"] >= budget_s:
            until = min(until, clock["now"] + max(0.0, budget_s - node["busy_s"]))
    set_until(state, b, node_index, until)


@kernel
def set_until(state: State, b: int, node_index: int, until: float) -> None:
    """Enter, move or remove (inf) a node in the heap."""
    node, clock = state.nodes[b, node_index], state.clock[b]
    node["until"] = until
    if node["heap"] != NONE:
        if until == np.inf:
            clock["n_node_heap"] = heap.remove(state.node_heap[b], state.nodes[b], clock["n_node_heap"], node_index)
        else:
            heap.reorder(state.node_heap[b], state.nodes[b], clock["n_node_heap"], node_index)
    elif until < np.inf:
        clock["n_node_heap"] = heap.push(state.node_heap[b], state.nodes[b], clock["n_node_heap"], node_index)


@kernel
def add_idle_power(state: State, b: int, node: Rows, watts: float) -> None:
    """Add to what a node draws whatever runs on it."""
    pool = state.pools[b, node["pool"]]
    site = state.sites[b, pool["site"]]
    pool["power_w"] += watts
    site["it_w"] += watts
    mark_stale(state, b, site)


@kernel
def mark_stale(state: State, b: int, site: Rows) -> None:
    """The power factor of a capped site must be found anew before time moves."""
    if site["cap_w"] < np.inf or site["grid_limit_w"] < np.inf:
        site["is_stale"] = 1
        state.clock[b]["is_stale"] = 1


@kernel
def awake_w(pool: Rows) -> float:
    """What an idle node draws."""
    return pool["overhead_w"] + pool["gpus_per_node"] * pool["idle_w"]


@kernel
def doze(state: State, b: int, node_index: int) -> None:
    """An idle node falls asleep."""
    node = state.nodes[b, node_index]
    pool = state.pools[b, node["pool"]]
    node["is_asleep"] = 1
    add_idle_power(state, b, node, pool["sleep_w"] - awake_w(pool))


@kernel
def rouse(state: State, b: int, node_index: int) -> None:
    """A sleeping node draws its idle power again."""
    node = state.nodes[b, node_index]
    pool = state.pools[b, node["pool"]]
    node["is_asleep"] = 0
    add_idle_power(state, b, node, awake_w(pool) - pool["sleep_w"])

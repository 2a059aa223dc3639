"""Nodes' own time: busy seconds, hazard budgets, and the place of a node in the heap of next instants."""

import numpy as np

from hetenv.jit import kernel
from hetenv.sim import heap
from hetenv.sim.tables import NONE, Facts, State


@kernel
def settle_busy(state: State, b: int, node_index: int) -> None:
    """Count the node's busy seconds up to now (up, and held by a job)."""
    node, now = state.nodes[b, node_index], state.clock[b]["now"]
    if node["is_up"] == 1 and node["alloc"] != NONE:
        node["busy_s"] += now - node["busy_since"]
    node["busy_since"] = now


@kernel
def reschedule_node(state: State, facts: Facts, b: int, node_index: int) -> None:
    """Set the next own instant of an up node: where its hazard budget runs out, if it is busy (or has run out)."""
    node, clock = state.nodes[b, node_index], state.clock[b]
    until = np.inf
    if node["next_event"] < facts.node_event[clock["world"], node_index + 1]:
        budget_s = facts.events[clock["world"], node["next_event"]]["at"]
        if node["alloc"] != NONE or node["busy_s"] >= budget_s:
            until = clock["now"] + max(0.0, budget_s - node["busy_s"])
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

"""The compiled entries of the simulator: open an episode, give one command, let time move, run the warm-up."""

from enum import IntEnum

import numpy as np

from hetenv.jit import inlined, kernel
from hetenv.jit_reference import by_reference
from hetenv.sim.advance import advance, at_once, begin_instant, happen
from hetenv.sim.commands import Command, apply_command, is_legal
from hetenv.sim.nodes import reschedule_node
from hetenv.sim.queue import next_queued
from hetenv.sim.tables import DELTA, NONE, Facts, State, Status, Without


@inlined
def open_episode(state: State, facts: Facts, b: int) -> None:
    """Bring a row that holds the initial tables to its first decision at time 0."""
    clock, rules = state.clock[b], facts.rules[0]
    world = clock["world"]
    for j in range(clock["n_requests"]):
        state.jobs[b, j]["next_event"] = facts.requests[world, j]["first_event"]
        state.jobs[b, j]["site"] = facts.requests[world, j]["data_site"]
    for n in range(state.nodes.shape[1]):
        state.nodes[b, n]["next_event"] = facts.node_event[world, n]
        if state.pools[b, state.nodes[b, n]["pool"]]["sleep_after_s"] < np.inf:
            reschedule_node(state, facts, b, n)
    clock["is_measuring"] = 1 if rules["measure_from_s"] <= 0.0 else 0
    happen(state, facts, b, at_once(state, facts, b))
    begin_instant(state, facts, b)
    close_if_over(state, b)


@inlined
def close_if_over(state: State, b: int) -> None:
    """Terminate an episode in which no job is left."""
    clock = state.clock[b]
    if clock["n_queued"] + clock["n_running"] == 0 and clock["next_request"] >= clock["n_requests"]:
        clock["status"] = Status.TERMINATED


@kernel
def clear_delta(state: State, b: int) -> None:
    """Begin a new ledger row for the coming step."""
    for account in range(state.ledger.shape[2]):
        state.ledger[b, DELTA, account] = 0.0


@inlined
def give(state: State, facts: Facts, b: int, command: int, job_id: int, config_id: int) -> bool:
    """One command and what follows at once from it; time moves on `wait` or when the instant's commands are used up."""
    clock = state.clock[b]
    if clock["status"] != Status.OPEN:
        return False
    legal = True
    if command != Command.WAIT:
        legal = _obey(state, facts, b, command, job_id, config_id)
    if command == Command.WAIT and facts.rules[0]["without"] & Without.WAIT != 0:
        while _start_first(state, facts, b):
            pass
    if clock["status"] == Status.OPEN and (command == Command.WAIT or clock["commands_left"] <= 0):
        advance(state, facts, b)
    return legal


@kernel
def _obey(state: State, facts: Facts, b: int, command: int, job_id: int, config_id: int) -> bool:
    """Carry out a command other than `wait`, and what follows at once."""
    legal = apply_command(state, facts, b, command, job_id, config_id)
    happen(state, facts, b, 0 if facts.rules[0]["one_by_one"] == 1 else -1)
    close_if_over(state, b)
    return legal


@kernel
def _start_first(state: State, facts: Facts, b: int) -> bool:
    """Start the first queued job, in order of submit, that has a legal configuration, in its first such; False if none."""
    if state.clock[b]["status"] != Status.OPEN:
        return False
    clock = state.clock[b]
    place = next_queued(state, facts, b, 0, 0)
    while place != NONE:
        job_id = facts.ranked[clock["world"], 0, place]
        job_class = facts.classes[facts.requests[clock["world"], job_id]["job_class"] + state.jobs[b, job_id]["phase"]]
        for config_id in range(job_class["first_config"], job_class["last_config"]):
            if is_legal(state, facts, b, Command.START, job_id, config_id):
                _obey(state, facts, b, Command.START, job_id, config_id)
                return True
        place = next_queued(state, facts, b, 0, place + 1)
    return False


@inlined
def warm_up(state: State, facts: Facts, b: int) -> None:
    """Run first-fit FIFO until the first decision instant at or after the scenario's `start.until_s`."""
    clock, until_s = state.clock[b], facts.rules[0]["warm_until_s"]
    while clock["status"] == Status.OPEN and clock["now"] < until_s:
        if not _start_first(state, facts, b):
            give(state, facts, b, Command.WAIT, NONE, NONE)
    clear_delta(state, b)


class Verb(IntEnum):
    """What `run` is asked to do."""

    OPEN = 0
    GIVE = 1
    ASK = 2
    """Whether a command is legal."""
    CLEAR = 3
    """Begin a new DELTA row."""


@kernel
def run(tables: State, world: Facts, b: int, verb: int, command: int, job_id: int, config_id: int) -> bool:
    """The one compiled entry of the simulator's Python face."""
    state, facts = by_reference(tables), by_reference(world)
    if verb == Verb.OPEN:
        open_episode(state, facts, b)
        warm_up(state, facts, b)
    elif verb == Verb.GIVE:
        return give(state, facts, b, command, job_id, config_id)
    elif verb == Verb.ASK:
        return is_legal(state, facts, b, command, job_id, config_id)
    else:
        clear_delta(state, b)
    return True

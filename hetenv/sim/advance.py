"""The time loop: account up to the next instant, let happen what happens there, stop where a decision is due."""

import numpy as np

from hetenv.events.stream import Effect
from hetenv.jit import kernel
from hetenv.objective import Account
from hetenv.sim.balance import balance
from hetenv.sim.effects import apply_effect, come_up, end_job, submit
from hetenv.sim.nodes import doze, reschedule_node, settle_busy
from hetenv.sim.power import account_sites
from hetenv.sim.running import (
    begin_save,
    begin_stepping,
    checkpoint_interval,
    end_save,
    reschedule,
    settle,
    target_work,
)
from hetenv.sim.tables import DELTA, NONE, TOTAL, Facts, JobState, Rows, State, Status

LAST_EFFECT = int(max(Effect))


@kernel
def advance(state: State, facts: Facts, b: int) -> None:
    """Let time move to the next decision instant or to the end of the episode."""
    clock, rules = state.clock[b], facts.rules[0]
    while clock["status"] == Status.OPEN:
        move_clock(state, facts, b, min(_next_instant(state, facts, b), rules["limit_s"]))
        decides = happen(state, facts, b, at_once(state, facts, b))
        if _is_over(clock):
            clock["status"] = Status.TERMINATED
        elif clock["now"] >= rules["limit_s"]:
            clock["status"] = Status.TRUNCATED
        elif clock["now"] >= clock["forced_s"] or (decides and rules["round_s"] == 0.0):
            begin_instant(state, facts, b)
            return


@kernel
def at_once(state: State, facts: Facts, b: int) -> int:
    """How many things the clock lets happen before the next decision: all (negative), or one (one_by_one, before the limit)."""
    clock, rules = state.clock[b], facts.rules[0]
    return 1 if rules["one_by_one"] == 1 and clock["now"] < rules["limit_s"] else -1


@kernel
def _is_over(clock: Rows) -> bool:
    return clock["n_queued"] + clock["n_running"] == 0 and clock["next_request"] >= clock["n_requests"]


@kernel
def begin_instant(state: State, facts: Facts, b: int) -> None:
    """A decision instant: commands are counted afresh, and the next forced decision is set."""
    clock, rules = state.clock[b], facts.rules[0]
    clock["instant"] += 1
    clock["commands_left"] = min(clock["n_queued"] + clock["n_running"], rules["max_commands"])
    if rules["round_s"] > 0.0:
        while clock["round"] * rules["round_s"] <= clock["now"]:
            clock["round"] += 1
        clock["forced_s"] = clock["round"] * rules["round_s"]
    else:
        clock["forced_s"] = clock["now"] + rules["max_interval_s"]


@kernel
def _next_instant(state: State, facts: Facts, b: int) -> float:
    """Time of the next thing that is known to happen; inf if nothing is."""
    clock, rules = state.clock[b], facts.rules[0]
    world = clock["world"]
    at = clock["forced_s"]
    if clock["n_run_heap"] > 0:
        at = min(at, state.runs[b, state.run_heap[b, 0]]["until"])
    if clock["n_node_heap"] > 0:
        at = min(at, state.nodes[b, state.node_heap[b, 0]]["until"])
    if clock["next_wall"] < clock["n_wall"]:
        at = min(at, facts.events[world, clock["next_wall"]]["at"])
    if clock["next_request"] < clock["n_requests"]:
        at = min(at, facts.requests[world, clock["next_request"]]["submit_s"])
    if clock["now"] < rules["measure_from_s"]:
        at = min(at, rules["measure_from_s"])
    if clock["now"] < rules["measure_to_s"]:
        at = min(at, rules["measure_to_s"])
    return max(at, clock["now"])


@kernel
def move_clock(state: State, facts: Facts, b: int, to_s: float) -> None:
    """Integrate every account over [now, to_s], then set now."""
    clock, rules = state.clock[b], facts.rules[0]
    seconds = to_s - clock["now"]
    if seconds > 0.0:
        rows = TOTAL + 1 if clock["is_measuring"] == 1 else DELTA + 1
        for row in range(rows):
            ledger = state.ledger[b, row]
            ledger[Account.ELAPSED_S] += seconds
            ledger[Account.JOB_S] += clock["weight_in_system"] * seconds
            ledger[Account.QUEUED_JOB_S] += clock["weight_queued"] * seconds
            ledger[Account.AVAILABLE_GPU_S] += clock["up_gpus"] * seconds
            ledger[Account.HELD_GPU_S] += clock["held_gpus"] * seconds
            ledger[Account.OVERHEAD_GPU_S] += clock["overhead_gpus"] * seconds
            ledger[Account.PRODUCTIVE_GPU_S] += (clock["held_gpus"] - clock["overhead_gpus"]) * seconds
            for p in range(state.pools.shape[1]):
                pool = state.pools[b, p]
                ledger[Account.RENT_USD] += pool["held_gpus"] * pool["rent_usd_per_gpu_s"] * seconds
        account_sites(state, b, rows, seconds)
        clock["now"] = to_s
    measuring = rules["measure_from_s"] <= clock["now"] < rules["measure_to_s"]
    clock["is_measuring"] = 1 if measuring else 0


@kernel
def happen(state: State, facts: Facts, b: int, left: int) -> bool:
    """What is due now, in the documented order, at most `left` things (negative: all). Returns whether it calls for a decision.

    One at a time, submits come first. Power and network are balanced at the end.
    """
    clock = state.clock[b]
    world, now = clock["world"], clock["now"]
    decides = False
    while True:
        submits = clock["next_request"] < clock["n_requests"] and (
            facts.requests[world, clock["next_request"]]["submit_s"] <= now
        )
        others = left != 0 and not (submits and left > 0)
        if others and clock["n_run_heap"] > 0 and state.runs[b, state.run_heap[b, 0]]["until"] <= now:
            decides = _run_instant(state, facts, b, state.run_heap[b, 0]) or decides
        elif others and clock["n_node_heap"] > 0 and state.nodes[b, state.node_heap[b, 0]]["until"] <= now:
            decides = _node_instant(state, facts, b, state.node_heap[b, 0]) or decides
        elif others and _wall_is_due(state, facts, b, Effect.LINK_BANDWIDTH if submits else LAST_EFFECT):
            _wall_instant(state, facts, b)
            decides = True
        elif submits and left != 0:
            clock["next_request"] += 1
            submit(state, facts, b, clock["next_request"] - 1)
            decides = True
        elif clock["is_stale"] == 1:
            decides = balance(state, facts, b) or decides
        else:
            return decides
        if left > 0:
            left -= 1


@kernel
def _wall_is_due(state: State, facts: Facts, b: int, last_effect: int) -> bool:
    """Whether the next WALL row is due and its effect is at most `last_effect`."""
    clock = state.clock[b]
    if clock["next_wall"] >= clock["n_wall"]:
        return False
    row = facts.events[clock["world"], clock["next_wall"]]
    return row["at"] <= clock["now"] and row["effect"] <= last_effect


@kernel
def _wall_instant(state: State, facts: Facts, b: int) -> None:
    clock = state.clock[b]
    row = facts.events[clock["world"], clock["next_wall"]]
    clock["next_wall"] += 1
    apply_effect(state, facts, b, row["effect"], row["target"], row["value"])


@kernel
def _run_instant(state: State, facts: Facts, b: int, run: int) -> bool:
    """The end of an overhead, a work threshold, or completion. Returns whether it calls for a decision."""
    clock, row = state.clock[b], state.runs[b, run]
    job_id = row["order"]
    settle(state, facts, b, run)
    if row["is_stepping"] == 0 or row["saved_s"] <= clock["now"]:
        if row["is_stepping"] == 0:
            begin_stepping(state, facts, b, run)
        if row["saved_s"] <= clock["now"]:
            end_save(state, b, run)
        reschedule(state, facts, b, run)
        return False
    job, request = state.jobs[b, job_id], facts.requests[clock["world"], job_id]
    target = target_work(state, facts, b, job_id)
    if target >= request["work"]:
        end_job(state, facts, b, job_id, JobState.FINISHED)
        return True
    event = facts.events[clock["world"], job["next_event"]]
    if job["next_event"] >= request["last_event"] or event["at"] > target:
        _periodic_save(state, facts, b, run)
        return False
    job["next_event"] += 1
    apply_effect(state, facts, b, event["effect"], event["target"], event["value"])
    if job["run"] == run:
        reschedule(state, facts, b, run)
    return True


@kernel
def _periodic_save(state: State, facts: Facts, b: int, run: int) -> None:
    """A paid checkpoint begins, unless the one before is still being written."""
    row = state.runs[b, run]
    job, request = state.jobs[b, row["order"]], facts.requests[state.clock[b]["world"], row["order"]]
    config = facts.configs[job["config"]]
    row["next_save"] += checkpoint_interval(request, config)
    if row["saved_s"] == np.inf:
        job_class = facts.classes[config["job_class"]]
        begin_save(state, facts, b, run, job_class["pause_s"], job_class["persist_s"])
    reschedule(state, facts, b, run)


@kernel
def _node_instant(state: State, facts: Facts, b: int, node_index: int) -> bool:
    """A repair ends, an idle node falls asleep, or a hazard budget is used up. Returns whether it calls for a decision."""
    node = state.nodes[b, node_index]
    if node["is_up"] == 0:
        come_up(state, facts, b, node_index)
        return True
    settle_busy(state, b, node_index)
    world = state.clock[b]["world"]
    sleep_s = node["idle_since"] + state.pools[b, node["pool"]]["sleep_after_s"]
    if node["alloc"] == NONE and node["is_asleep"] == 0 and sleep_s <= state.clock[b]["now"]:
        doze(state, b, node_index)
        reschedule_node(state, facts, b, node_index)
        return False
    budget_s = facts.events[world, node["next_event"]]["at"]
    node["busy_s"] = budget_s
    while node["next_event"] < facts.node_event[world, node_index + 1]:
        event = facts.events[world, node["next_event"]]
        if event["at"] > budget_s:
            break
        node["next_event"] += 1
        apply_effect(state, facts, b, event["effect"], event["target"], event["value"])
    if node["is_up"] == 1:
        reschedule_node(state, facts, b, node_index)
    return True

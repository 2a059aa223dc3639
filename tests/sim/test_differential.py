"""The kernels against the plain-Python oracle: random worlds, random commands, the same trajectory."""

from typing import Any

import numpy as np
import pytest

from hetenv.objective import Account
from hetenv.scenario import Compiled, World
from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import TOTAL, JobState, Status
from tests.oracle import Oracle
from tests.random_worlds import Dice, random_command, random_world

COMMANDS = {"start": Command.START, "change": Command.CHANGE, "preempt": Command.PREEMPT, "wait": Command.WAIT}
TOLERANCE = 1e-9
N_WORLDS = 500


def _close(ours: float, theirs: float, scale: float = 1.0) -> bool:
    return ours == theirs or abs(ours - theirs) <= TOLERANCE * max(abs(ours), abs(theirs), scale)


def _compare_jobs(simulator: Simulator, oracle: Oracle) -> None:
    state = simulator.state
    for job in oracle.jobs:
        ours = state.jobs[0, job.id]
        assert JobState(ours["state"]).name == job.state, f"state of job {job.id}"
        assert ours["n_starts"] == job.n_starts
        assert _close(ours["first_start_s"], job.first_start_s) and _close(ours["end_s"], job.end_s)
        if job.state != "RUNNING":
            assert _close(ours["work"], job.work) and _close(ours["durable"], job.durable), f"work of job {job.id}"
            continue
        assert ours["config"] == job.config, f"configuration of job {job.id}"
        run = state.runs[0, ours["run"]]
        assert _close(run["until"], job.due_s), f"next instant of job {job.id}: {run['until']} {job.due_s}"
        assert bool(run["is_spread"]) == job.is_spread and (run["is_stepping"] == 0) == job.in_overhead
        held, alloc = {}, run["alloc"]
        while alloc >= 0:
            held[int(state.allocs[0, alloc]["node"])] = int(state.allocs[0, alloc]["gpus"])
            alloc = state.allocs[0, alloc]["next_of_run"]
        assert held == job.allocation, f"nodes of job {job.id}"


def _compare_nodes(simulator: Simulator, oracle: Oracle) -> None:
    for node in oracle.nodes:
        ours = simulator.state.nodes[0, node.id]
        assert bool(ours["is_up"]) == node.up, f"node {node.id} up"
        assert ours["speed"] == node.speed
        assert ours["free"] == (node.free_gpus if node.up else 0), f"free GPUs of node {node.id}"


def compare(simulator: Simulator, oracle: Oracle) -> None:
    """Assert that kernel and oracle stand at the same point."""
    clock = simulator.state.clock[0]
    assert _close(clock["now"], oracle.now), "time"
    assert Status(clock["status"]).name.lower() == (oracle.done or "open")
    _compare_jobs(simulator, oracle)
    _compare_nodes(simulator, oracle)
    if oracle.done is None:
        assert clock["commands_left"] == oracle.commands_left, "commands left"
    measured = simulator.compiled.scenario.measure
    if measured.from_s == 0.0 and measured.to_s is None:
        for account in Account:
            ours, theirs = simulator.state.ledger[0, TOTAL, account], oracle.accounts[account]
            assert _close(ours, theirs, 1e-6), f"{account.name}: {ours} {theirs}"


def play(compiled: Compiled, world: World, seed: int, check: Any = compare) -> tuple[Simulator, Oracle]:
    """Give both the same random commands until the episode ends."""
    simulator, oracle = Simulator(compiled), Oracle(compiled, world)
    simulator.reset(world)
    check(simulator, oracle)
    dice = Dice(np.random.default_rng(seed), exact=True)
    restless = dice.pick(0.3, 0.05, 0.0)
    while not oracle.done:
        legal = oracle.legal_commands()
        for name, *rest in legal[:: max(1, len(legal) // 5)]:
            assert simulator.is_legal(COMMANDS[name], *rest), f"{name} {rest} is legal"
        name, *rest = random_command(legal, len(oracle.jobs), len(oracle.configs), dice, restless)
        if dice.chance(0.1):
            at_s = oracle.now + dice.amount(600)
            oracle.wake_s = min(oracle.wake_s, at_s)
            simulator.wake(at_s)
        was_legal = oracle.apply(name, *rest)
        assert simulator.give(COMMANDS[name], *rest) == was_legal, f"{name} {rest}"
        simulator.check_invariants()
        check(simulator, oracle)
    return simulator, oracle


@pytest.mark.parametrize("seeds", [range(k, N_WORLDS, 10) for k in range(10)], ids=lambda seeds: f"from_{seeds.start}")
def test_kernel_gives_the_oracles_trajectory(seeds: range) -> None:
    for seed in seeds:
        try:
            play(*random_world(seed), seed)
        except AssertionError as error:
            raise AssertionError(f"world {seed}: {error}") from error

"""The simulator's Python face: batches, snapshots, copies, growth, warm start, measured window."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hetenv.cluster import ClusterConfig, PoolConfig
from hetenv.errors import CommandError
from hetenv.objective import Account
from hetenv.scenario import Compiled, MeasureConfig, WarmStart, World, load, make_world
from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import TOTAL, JobState, State, Status
from hetenv.workload.job_class import FixedClass
from hetenv.workload.requests import requests
from tests.random_worlds import assemble

ROOT = Path(__file__).parent.parent.parent


def rigid_jobs(*jobs: tuple[float, int, float]) -> np.ndarray:
    """Requests of (submit_s, GPUs, seconds) for a fixed class."""
    table = requests(len(jobs))
    for row, (submit_s, n_gpus, seconds) in zip(table, jobs):
        row["submit_s"], row["min_gpus"], row["max_gpus"], row["work"] = submit_s, n_gpus, n_gpus, seconds
        row["believed_work"] = row["believed_s"] = seconds
    return table


def one_pool(gpus: int, nodes: int = 1, **rules: object) -> Compiled:
    """A cluster of one pool whose jobs have fixed run times."""
    pool = PoolConfig(name="a", accelerator="A100-SXM-80", nodes=nodes, gpus_per_node=gpus)
    classes = {"fixed": FixedClass(gpu_counts=(1, 2, 4, 8))}
    return assemble(ClusterConfig(pools=(pool,)), classes=classes, **rules)


def world_of(compiled: Compiled, *jobs: tuple[float, int, float]) -> World:
    return make_world(compiled, rigid_jobs(*jobs), np.zeros(0, load("smoke").compile().sample(0).events.dtype))


def random_play(simulator: Simulator, b: int, rng: np.random.Generator, n: int = 10**9) -> None:
    """Up to n random legal commands in simulation b."""
    for _ in range(n):
        if simulator.status(b) != Status.OPEN:
            return
        live = np.flatnonzero(np.isin(simulator.state.jobs["state"][b], (JobState.QUEUED, JobState.RUNNING)))
        job = int(rng.choice(live)) if live.size else 0
        command = Command(int(rng.integers(4)))
        config = int(rng.integers(simulator.facts.configs.size))
        if command != Command.WAIT and not simulator.is_legal(command, job, config, b):
            command = Command.WAIT
        simulator.give(command, job, config, b)


def same(ours: State, theirs: State, b: int, other: int) -> None:
    """Assert that two simulations are equal, bit for bit, column by column."""
    for table, reference in zip(ours, theirs):
        names = table.dtype.names or ()
        for name in names:
            if name != "world":
                np.testing.assert_array_equal(table[name][b], reference[name][other], err_msg=name)
        if not names:
            np.testing.assert_array_equal(table[b], reference[other])


def test_a_simulation_alone_equals_the_same_in_a_batch() -> None:
    compiled = load("smoke").compile()
    batch, alone = Simulator(compiled, 3), Simulator(compiled)
    worlds = [compiled.sample(seed) for seed in range(3)]
    for b, world in enumerate(worlds * 2):  # twice: the second time no table grows
        batch.reset(world, b % 3)
        alone.reset(world)
    for b, world in enumerate(worlds):
        alone.reset(world)
        random_play(batch, b, np.random.default_rng(b))
        random_play(alone, 0, np.random.default_rng(b))
        same(batch.state, alone.state, b, 0)


def test_snapshot_and_copies_have_the_same_future() -> None:
    compiled = load("smoke").compile()
    simulator = Simulator(compiled)
    simulator.reset(compiled.sample(3))
    random_play(simulator, 0, np.random.default_rng(0), 8)
    assert simulator.status() == Status.OPEN
    saved, twins = simulator.snapshot(), [copy.deepcopy(simulator), pickle.loads(pickle.dumps(simulator))]
    random_play(simulator, 0, np.random.default_rng(1))
    for twin in twins:
        same(twin.state, saved, 0, 0)
        random_play(twin, 0, np.random.default_rng(1))
        same(twin.state, simulator.state, 0, 0)
    end = simulator.snapshot()
    simulator.restore(saved)
    random_play(simulator, 0, np.random.default_rng(1))
    same(simulator.state, end, 0, 0)


def test_a_larger_world_moves_the_tables_but_no_open_episode() -> None:
    compiled = one_pool(4, horizon_s=1e5)
    simulator, alone = Simulator(compiled, 2), Simulator(compiled)
    small = world_of(compiled, (0.0, 2, 100.0), (5.0, 4, 50.0), (6.0, 1, 70.0))
    simulator.reset(small, 0)
    alone.reset(small)
    simulator.give(Command.START, 0, 1)
    alone.give(Command.START, 0, 1)
    simulator.wait()
    alone.wait()
    simulator.reset(world_of(compiled, *[(float(k), 1, 10.0) for k in range(50)]), 1)
    random_play(simulator, 0, np.random.default_rng(2))
    random_play(alone, 0, np.random.default_rng(2))
    simulator.check_invariants()
    assert simulator.status(0) == alone.status()
    np.testing.assert_array_equal(simulator.state.jobs["end_s"][0, :3], alone.state.jobs["end_s"][0, :3])


def test_commands_after_the_end_name_the_remedy() -> None:
    compiled = one_pool(1, horizon_s=10.0)
    simulator = Simulator(compiled)
    simulator.reset(world_of(compiled, (0.0, 1, 100.0)))
    simulator.wait()
    assert simulator.status() == Status.TRUNCATED and simulator.now() == 10.0
    with pytest.raises(CommandError, match="call reset"):
        simulator.wait()


def test_warm_start_runs_first_fit_until_its_time() -> None:
    compiled = one_pool(2, horizon_s=1000.0, start=WarmStart(until_s=100.0))
    simulator = Simulator(compiled)
    simulator.reset(world_of(compiled, (0.0, 2, 60.0), (1.0, 2, 60.0), (2.0, 1, 60.0)))
    assert simulator.now() == 120.0  # the first decision at or after 100 s is the policy's
    assert simulator.state.jobs["first_start_s"][0, :3].tolist() == [0.0, 60.0, np.inf]


def test_only_the_measured_window_enters_the_total() -> None:
    compiled = one_pool(1, horizon_s=100.0, measure=MeasureConfig(from_s=20.0, to_s=70.0))
    simulator = Simulator(compiled)
    simulator.reset(world_of(compiled, (0.0, 1, 50.0)))
    simulator.give(Command.START, 0, 0)  # the instant's only command: time moves
    total = simulator.state.ledger[0, TOTAL]
    assert simulator.status() == Status.TERMINATED
    assert total[Account.ELAPSED_S] == 30.0 and total[Account.HELD_GPU_S] == 30.0 and total[Account.N_STARTED] == 0


PLAIN = """
import numpy as np
from hetenv.scenario import load
from hetenv.sim.simulator import Simulator
from tests.sim.test_simulator import random_play
compiled = load("smoke").compile()
simulator = Simulator(compiled)
simulator.reset(compiled.sample(5))
random_play(simulator, 0, np.random.default_rng(0), 400)
state = simulator.state
print(repr([simulator.now(), state.ledger[0].tolist(), state.jobs["work"][0].tolist(), state.jobs["config"][0].tolist()]))
"""


def test_plain_python_gives_the_compiled_results_bit_for_bit() -> None:
    def run(**environment: str) -> str:
        command = [sys.executable, "-c", PLAIN]
        result = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stdout

    assert run(NUMBA_DISABLE_JIT="1") == run(NUMBA_DISABLE_JIT="0")

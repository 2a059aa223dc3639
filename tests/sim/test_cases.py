"""The reference cases of the simulation core, on the kernels, with their exact figures."""

import numpy as np
import pytest

from hetenv.cluster import ClusterConfig, PoolConfig
from hetenv.events.stream import Effect, EventClock, empty_rows, merge, rows
from hetenv.objective import Account
from hetenv.scenario import Compiled, EventClockConfig, RoundClockConfig, make_world
from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import TOTAL, JobState, Status
from hetenv.workload.job_class import FixedClass
from hetenv.workload.requests import requests
from tests.random_worlds import assemble


def compiled_of(nodes: int = 1, gpus: int = 1, pool: dict[str, object] | None = None, **rules: object) -> Compiled:
    costs = {name: rules.pop(name) for name in ("first_start_s", "restart_s") if name in rules}
    config = PoolConfig(name="a", accelerator="A100-SXM-80", nodes=nodes, gpus_per_node=gpus, **(pool or {}))
    classes = {"fixed": FixedClass(gpu_counts=(1, 2, 4, 8, 16), **costs)}
    return assemble(ClusterConfig(pools=(config,)), classes=classes, **rules)


def simulate(compiled: Compiled, jobs: list[dict[str, float]], events: tuple[np.ndarray, ...] = ()) -> Simulator:
    """A simulator at the first decision of a world of these jobs (REQUEST columns that differ from the defaults)."""
    table = requests(len(jobs))
    for row, job in zip(table, jobs):
        for name, value in job.items():
            row[name] = value
        row["believed_work"] = row["believed_s"] = row["work"]
    drawn = {str(k): event for k, event in enumerate(events)} or {"none": empty_rows()}
    simulator = Simulator(compiled)
    simulator.reset(make_world(compiled, table, merge(drawn)))
    return simulator


def start_when_possible(simulator: Simulator) -> None:
    """Run to the end, starting queued jobs by id as soon as they fit."""
    while simulator.status() == Status.OPEN:
        queued = np.flatnonzero(simulator.state.jobs["state"][0] == JobState.QUEUED)
        pairs = ((int(job), config) for job in queued for config in range(simulator.facts.configs.size))
        job, config = next((pair for pair in pairs if simulator.is_legal(Command.START, *pair)), (-1, -1))
        simulator.give(Command.WAIT if job < 0 else Command.START, job, config)
        simulator.check_invariants()


def ends(simulator: Simulator) -> list[float]:
    n = simulator.state.clock[0]["n_requests"]
    return simulator.state.jobs["end_s"][0, :n].tolist()


def total(simulator: Simulator, account: Account) -> float:
    return float(simulator.state.ledger[0, TOTAL, account])


CLOCKS = [EventClockConfig(), *(RoundClockConfig(round_s=r) for r in (1.0, 10.0, 60.0, 600.0))]


@pytest.mark.parametrize("clock", CLOCKS, ids=str)
def test_p19_start_overhead_is_charged_once(clock: object) -> None:
    simulator = simulate(compiled_of(first_start_s=60.0, clock=clock), [{"work": 1000.0}])
    start_when_possible(simulator)
    assert ends(simulator) == [1060.0]
    assert total(simulator, Account.OVERHEAD_GPU_S) == 60.0


def test_p19_a_preemption_is_charged_once() -> None:
    ticks = rows(Effect.SITE_PRICE, [400.0, 600.0], 0, 0.0)
    simulator = simulate(compiled_of(first_start_s=60.0, restart_s=60.0), [{"work": 1000.0}], (ticks,))
    simulator.give(Command.START, 0, 0)
    assert simulator.now() == 400.0
    simulator.give(Command.PREEMPT, 0)
    assert simulator.now() == 600.0
    start_when_possible(simulator)
    assert ends(simulator) == [1320.0]


def test_p20_a_completion_frees_its_gpu_for_an_arrival_at_the_same_time() -> None:
    jobs = [{"work": 100.0}, {"work": 10.0, "submit_s": 100.0}]
    plain = simulate(compiled_of(), jobs)
    ticked = simulate(compiled_of(), jobs, (rows(Effect.SITE_PRICE, [100.0], 0, 0.0),))
    for simulator in (plain, ticked):
        simulator.give(Command.START, 0, 0)
        assert simulator.now() == 100.0 and simulator.is_legal(Command.START, 1, 0)
        start_when_possible(simulator)
        assert ends(simulator) == [100.0, 110.0]


def test_p21_a_failure_rolls_back_to_the_last_checkpoint() -> None:
    failure = rows(Effect.NODE_DOWN, [1450.0], 0, 1e-6)
    compiled = compiled_of(restart_s=120.0, nodes=2)
    simulator = simulate(compiled, [{"work": 3000.0, "checkpoint_interval": 600.0}], (failure,))
    simulator.give(Command.START, 0, 0)
    assert simulator.now() == 1450.0
    simulator.give(Command.START, 0, 0)
    start_when_possible(simulator)
    assert ends(simulator) == [3370.0]
    assert total(simulator, Account.LOST_GPU_S) == 250.0


def test_p21_faults_of_the_thread_redo_10_20_and_15_steps() -> None:
    steps_executed = [60.0, 60.0 + 95.0, 60.0 + 95.0 + 115.0]  # at the faults: 0..60, 50..145, 125..240
    faults = rows(Effect.NODE_DOWN, steps_executed, 0, 1e-9)
    simulator = simulate(compiled_of(nodes=1), [{"work": 300.0, "checkpoint_interval": 25.0}], (faults,))
    start_when_possible(simulator)
    assert ends(simulator)[0] == pytest.approx(345.0, abs=1e-6)
    assert total(simulator, Account.LOST_GPU_S) == pytest.approx(45.0, abs=1e-6)
    assert total(simulator, Account.N_EVICTED) == 3


def test_p22_utilisation_of_available_and_of_nominal() -> None:
    down = rows(Effect.NODE_DOWN, [50.0], 1, np.inf)
    jobs = [{"work": 1000.0, "min_gpus": 8, "max_gpus": 8}] * 2
    simulator = simulate(compiled_of(nodes=2, gpus=8, horizon_s=100.0), jobs, (down,))
    start_when_possible(simulator)
    assert total(simulator, Account.HELD_GPU_S) == 1200.0
    assert total(simulator, Account.AVAILABLE_GPU_S) == 1200.0
    assert simulator.compiled.cluster.n_gpus * 100.0 == 1600.0


def test_p15_a_job_that_fits_nowhere_is_rejected_and_disturbs_nobody() -> None:
    jobs = [{"work": 50.0, "min_gpus": 4, "max_gpus": 4}, {"work": 30.0, "submit_s": 2.0, "min_gpus": 4, "max_gpus": 4}]
    without = simulate(compiled_of(nodes=2, gpus=8), jobs)
    too_large = {"work": 10.0, "submit_s": 1.0, "min_gpus": 32, "max_gpus": 32, "rejected": 1}
    with_it = simulate(compiled_of(nodes=2, gpus=8), [jobs[0], too_large, jobs[1]])
    for simulator in (without, with_it):
        start_when_possible(simulator)
        assert simulator.status() == Status.TERMINATED
    assert ends(without) == [ends(with_it)[0], ends(with_it)[2]]
    assert total(with_it, Account.N_REJECTED) == 1


def test_p15_the_only_fitting_node_fails_for_good() -> None:
    down = rows(Effect.NODE_DOWN, [10.0], 0, np.inf)
    simulator = simulate(compiled_of(horizon_s=500.0), [{"work": 100.0}], (down,))
    start_when_possible(simulator)
    assert simulator.status() == Status.TRUNCATED and simulator.now() == 500.0


def test_p16_zero_work_ends_where_it_is_placed() -> None:
    simulator = simulate(compiled_of(), [{"work": 5.0}, {"work": 0.0, "submit_s": 1.0}])
    start_when_possible(simulator)
    job = simulator.state.jobs[0, 1]
    assert job["first_start_s"] == job["end_s"] == 5.0 and job["state"] == JobState.FINISHED


def test_p16_an_empty_world_terminates_at_once() -> None:
    simulator = simulate(compiled_of(), [])
    assert simulator.status() == Status.TERMINATED and simulator.now() == 0.0


def test_p18_gpus_are_conserved_through_a_busy_hazard_and_its_repair() -> None:
    hazard = rows(Effect.NODE_DOWN, [30.0], 0, 20.0, EventClock.NODE_BUSY)
    simulator = simulate(compiled_of(), [{"work": 40.0}, {"work": 40.0, "submit_s": 200.0}], (hazard,))
    start_when_possible(simulator)
    assert ends(simulator) == [90.0, 240.0]  # 30 busy s, 20 s repair, then all 40 s again


def test_p28_energy_and_carbon_of_eight_gpus() -> None:
    pool = {"node_overhead_w": 0.0, "idle_w": 0.0}
    compiled = assemble(
        ClusterConfig(pools=(PoolConfig(name="a", accelerator="H100-SXM-80", nodes=1, gpus_per_node=8, **pool),)),
        classes={"fixed": FixedClass(gpu_counts=(8,), power_w=700.0)},
        horizon_s=36000.0,
    )
    simulator = simulate(compiled, [{"work": 36000.0, "min_gpus": 8, "max_gpus": 8}])
    start_when_possible(simulator)
    assert total(simulator, Account.ENERGY_J) / 3.6e6 == pytest.approx(56 * 1.2)
    assert total(simulator, Account.CARBON_KG) == pytest.approx(26.88)

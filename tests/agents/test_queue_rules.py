"""sjf, srtf and las on tiny worlds with schedules by hand, and the search for whom to preempt."""

from typing import Any

import numpy as np
import pytest

from agents.heuristics.preemption import make_room, victims
from hetenv.cluster import ClusterConfig, PoolConfig
from hetenv.objective import Account
from hetenv.scenario import Compiled
from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import TOTAL
from hetenv.view import View
from hetenv.workload.requests import Elasticity
from tests.bench.worlds import compiled, world
from tests.random_worlds import assemble, config_row, tabulate

from .episodes import play

HOUR_S = 3600.0


def one_gpu(**fields: Any) -> Compiled:
    return compiled(horizon_s=1e5, **fields)


def test_sjf_takes_the_shortest_over_weight() -> None:
    made = one_gpu()
    jobs = [(0.0, 1, 10.0), (1.0, 1, 100.0), (2.0, 1, 50.0), (3.0, 1, 60.0)]
    found = play(made, world(made, jobs, weight=[1.0, 1.0, 1.0, 3.0]), "sjf")
    assert found.starts_s().tolist() == [0.0, 120.0, 70.0, 10.0]


@pytest.mark.parametrize(
    ("job_s", "columns", "costs", "starts_s"),
    [
        (100.0, {}, {}, 10.0),  # 990 s left are more than 3 x 100
        (400.0, {}, {}, 1000.0),
        (400.0, {"weight": [1.0, 4.0]}, {}, 10.0),  # 3 x 100 s over weight
        (100.0, {"preemptible": [0, 1]}, {}, 1000.0),
        (100.0, {}, {"first_start_s": 400.0}, 1400.0),  # starts count: 1,390 s left, 3 x 500 s
        (100.0, {"believed_s": [1000.0, 400.0], "believed_work": [1000.0, 400.0]}, {}, 1000.0),
    ],
)
def test_srtf_preempts_what_is_three_times_as_long(job_s: float, columns: dict[str, Any], costs: dict[str, float], starts_s: float) -> None:
    made = one_gpu(classes={"script": {"kind": "fixed", "gpu_counts": [1], **costs}})
    found = play(made, world(made, [(0.0, 1, 1000.0), (10.0, 1, job_s)], **columns), "srtf")
    assert found.starts_s().tolist() == [0.0, starts_s]
    assert sorted(found.ends_s())[-1] == 1000.0 + job_s + 2 * costs.get("first_start_s", 0.0)


def test_srtf_lets_malleable_jobs_grow_when_nobody_waits() -> None:
    """Two GPUs do 1.6 steps a second: at 20 s, 80 steps take 50 s instead of 80."""
    steps = {"a": {1: 1.0, 2: 1.6}}
    made = compiled(gpus=2, classes={"script": {"kind": "table", "gpu_counts": [1, 2], "steps_per_s": steps, "restart_s": 0.0}})
    columns = {"max_gpus": [2, 1], "elasticity": [Elasticity.MALLEABLE, Elasticity.RIGID]}
    found = play(made, world(made, [(0.0, 1, 100.0), (0.0, 1, 20.0)], **columns), "srtf")
    assert [(at_s, command, job) for at_s, command, job, _ in found.orders][2:] == [(20.0, Command.CHANGE, 0)]
    assert found.ends_s() == pytest.approx([70.0, 20.0])


@pytest.mark.parametrize(("submit_s", "start_s"), [(5000.0, 5000.0), (3000.0, 3600.0)])
def test_las_serves_who_was_served_least(submit_s: float, start_s: float) -> None:
    """After one GPU hour the long job sinks below the new one; decisions at least every 600 s."""
    made = one_gpu(clock={"kind": "event", "max_interval_s": 600.0})
    found = play(made, world(made, [(0.0, 1, 10 * HOUR_S), (submit_s, 1, 100.0)]), "las")
    assert found.starts_s().tolist() == [0.0, start_s]
    assert found.ends_s().tolist() == [10 * HOUR_S + 100.0, start_s + 100.0]


def test_las_does_not_swap_jobs_of_one_level() -> None:
    made = one_gpu(clock={"kind": "event", "max_interval_s": 600.0})
    jobs = [(0.0, 1, 10 * HOUR_S), (0.0, 1, 10 * HOUR_S)]
    found = play(made, world(made, jobs), "las")
    assert found.simulator.state.ledger[0, TOTAL, Account.N_PREEMPTED] == 2  # the first after 1 h, the second after 8 h


def test_victims_are_no_more_than_needed() -> None:
    """A pair needs two GPUs of one node; of the candidates in order, the first of the other node is spared."""
    pool = PoolConfig(name="a", accelerator="A100-SXM-80", nodes=2, gpus_per_node=2)
    ways = tabulate((0.0, 0.0, [config_row(0, 1), config_row(0, 2)]))
    made = assemble(ClusterConfig(pools=(pool,)), configurations=ways)
    simulator = Simulator(made)
    simulator.reset(world(made, [(0.0, 1, 100.0)] * 4 + [(10.0, 2, 50.0)]))
    view = View(simulator)
    for job in range(4):
        simulator.give(Command.START, job, int(view.options(job)[0]))
    found = victims(view, 4, np.array([0, 2, 3, 1]), np.zeros(1), np.inf)
    assert found is not None and view.configs["n_gpus"][found[0]] == 2
    assert found[1] == [2, 3]
    assert victims(view, 4, np.array([0, 2]), np.zeros(1), np.inf) is None
    orders = list(make_room(view, 4, found[1], found[0]))
    assert [(order.command, order.job) for order in orders] == [(Command.PREEMPT, 2), (Command.PREEMPT, 3), (Command.START, 4)]
    simulator.give(Command.PREEMPT, 0)
    simulator.give(Command.PREEMPT, 1)
    assert view.commands_left == 3 and len(list(make_room(view, 4, found[1], found[0]))) == 3
    simulator.give(Command.START, 0, 0)
    assert view.commands_left == 2 and not list(make_room(view, 4, found[1], found[0])), "all or nothing"

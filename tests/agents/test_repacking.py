"""The policies that share the cluster out afresh, and the order of queues, on tiny worlds with schedules by hand."""

from typing import Any

import numpy as np
import pytest

from agents.heuristics.discretised_las import DiscretisedLas
from hetenv.scenario import Compiled
from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.view import View
from tests.bench.worlds import Job, compiled, world

from .episodes import play


def cluster(gpus: int, **fields: Any) -> Compiled:
    return compiled(gpus=gpus, horizon_s=1e5, **fields)


@pytest.mark.parametrize(
    ("policy", "jobs", "starts_s", "ends_s"),
    [
        ("srpt", [(0.0, 1, 100.0), (10.0, 1, 89.0)], [0.0, 10.0], [189.0, 99.0]),
        ("srpt", [(0.0, 1, 100.0), (10.0, 1, 90.0)], [0.0, 100.0], [100.0, 190.0]),  # a tie keeps the order
        ("srsf", [(0.0, 4, 100.0), (10.0, 1, 350.0)], [0.0, 10.0], [450.0, 360.0]),
        ("srpt", [(0.0, 4, 100.0), (10.0, 1, 350.0)], [0.0, 100.0], [100.0, 450.0]),
        ("smallest_first", [(0.0, 4, 100.0), (10.0, 2, 500.0), (20.0, 1, 10.0)], [0.0, 10.0, 20.0], [600.0, 510.0, 30.0]),
    ],
)
def test_preemptive_orders(policy: str, jobs: list[Job], starts_s: list[float], ends_s: list[float]) -> None:
    made = cluster(4 if jobs[0][1] == 4 else 1)
    found = play(made, world(made, jobs), policy)
    assert found.starts_s().tolist() == starts_s and found.ends_s().tolist() == ends_s


def test_who_may_not_be_preempted_is_served_first() -> None:
    made = cluster(4)
    found = play(made, world(made, [(0.0, 4, 100.0), (10.0, 1, 5.0)], preemptible=[0, 1]), "srpt")
    assert found.ends_s().tolist() == [100.0, 105.0]


def test_only_those_in_the_way_are_preempted() -> None:
    """Two nodes of 2: job 2 needs a whole node; of jobs 0 and 1 on unlike nodes the longer one goes."""
    made = compiled(nodes=2, gpus=2, horizon_s=1e5)
    found = play(made, world(made, [(0.0, 2, 50.0), (0.0, 2, 80.0), (10.0, 2, 20.0)]), "srpt")
    assert [(at_s, command, job) for at_s, command, job, _ in found.orders][2:4] == [(10.0, Command.PREEMPT, 1), (10.0, Command.START, 2)]
    assert found.ends_s().tolist() == [50.0, 100.0, 30.0]


def test_pack_shares_all_gpus_out_in_the_given_order() -> None:
    made = cluster(8)
    simulator = Simulator(made)
    simulator.reset(world(made, [(0.0, 4, 100.0), (0.0, 4, 100.0), (0.0, 8, 10.0), (0.0, 2, 10.0)], preemptible=[1, 0, 1, 1]))
    view = View(simulator)
    sizes = {int(row["n_gpus"]): config for config, row in enumerate(view.configs)}
    assert view.pack(np.array([3, 0, 2, 1])).tolist() == [sizes[2], sizes[4], -1, -1]
    assert view.pack(np.array([2, 3, 0, 1])).tolist() == [sizes[8], -1, -1, -1]
    assert view.pack(np.array([2, 3])).tolist() == [sizes[8], -1] and view.pack(np.empty(0, np.int64)).size == 0
    for job in (0, 1):
        assert simulator.give(Command.START, job, sizes[4])
    assert view.pack(np.array([2, 3, 0, 1])).tolist() == [-1, -1, sizes[4], sizes[4]]  # both have had a command
    simulator.wait()
    assert view.now_s == 100.0


def test_pack_after_an_instant_moves_whom_it_may() -> None:
    made = cluster(8)
    simulator = Simulator(made)
    jobs = [(0.0, 4, 100.0), (0.0, 4, 100.0), (10.0, 8, 10.0), (10.0, 2, 10.0)]
    simulator.reset(world(made, jobs, preemptible=[1, 0, 1, 1]))
    view = View(simulator)
    sizes = {int(row["n_gpus"]): config for config, row in enumerate(view.configs)}
    for job in (0, 1):
        assert simulator.give(Command.START, job, sizes[4])
    assert view.now_s == 10.0
    assert view.pack(np.array([2, 3, 0, 1])).tolist() == [-1, sizes[2], -1, sizes[4]]  # job 1 stays, job 3 leaves 2 for job 0


def test_dlas_sinks_jobs_between_events() -> None:
    """One GPU, limits 100 and 300 s of service: at each a job sinks to the end of the next queue."""
    made = cluster(1)
    found = play(made, world(made, [(0.0, 1, 500.0), (50.0, 1, 400.0)]), DiscretisedLas("dlas", by_gpus=False, limits=(100.0, 300.0)))
    assert [(at_s, int(command), job) for at_s, command, job, _ in found.orders] == [
        (0.0, Command.START, 0),
        (100.0, Command.PREEMPT, 0),
        (100.0, Command.START, 1),
        (200.0, Command.PREEMPT, 1),
        (200.0, Command.START, 0),
        (400.0, Command.PREEMPT, 0),
        (400.0, Command.START, 1),
        (600.0, Command.PREEMPT, 1),
        (600.0, Command.START, 0),
        (800.0, Command.START, 1),
    ]


def test_dlas_gpu_counts_gpus() -> None:
    made = cluster(4)
    found = play(made, world(made, [(0.0, 4, 100.0), (0.0, 2, 60.0)]), DiscretisedLas("dlas_gpu", by_gpus=True, limits=(100.0,)))
    assert found.starts_s().tolist() == [0.0, 25.0] and found.ends_s().tolist() == [150.0, 160.0]  # job 1 sinks at 75


def test_promotion_brings_a_job_that_waited_back_up() -> None:
    """Job 0 sinks after 100 s; jobs of the first queue then keep it waiting until it has waited as long as it ran."""
    made = cluster(1)
    jobs = [(0.0, 1, 200.0), *((float(at_s), 1, 90.0) for at_s in range(90, 900, 90))]
    patient, promoted = (
        play(made, world(made, jobs), DiscretisedLas("dlas", by_gpus=False, limits=(100.0,), promote_after=knob)).ends_s()
        for knob in (0.0, 1.0)
    )
    assert patient[0] == patient.max() == 1010.0
    assert promoted[0] == 380.0  # promoted at 200, behind the job that runs until 280 and before the next

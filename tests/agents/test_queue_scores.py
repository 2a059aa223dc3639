"""Orders of rigid queues: scores by hand, and whom they put at the head of EASY and of a queue with a fixed head."""

from typing import Any

import numpy as np
import pytest

from agents.heuristics import queue_scores
from hetenv.scenario import Compiled
from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.view import View
from hetenv.view.jobs import JOB_VIEW
from tests.bench.worlds import Job, compiled, world

from .episodes import play

FIFO_JOBS = [(0.0, 2, 100.0), (1.0, 4, 50.0), (2.0, 2, 90.0), (3.0, 2, 120.0)]


def rows(*jobs: tuple[float, int, float]) -> np.ndarray:
    """JOB_VIEW rows of (submit_s, GPUs, believed s)."""
    found = np.zeros(len(jobs), JOB_VIEW)
    for row, (submit_s, gpus, run_s) in zip(found, jobs):
        row["submit_s"], row["min_gpus"], row["believed_left_s"] = submit_s, gpus, run_s
    return found


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (queue_scores.submit, 1000.0),
        (queue_scores.run_time, 10_000.0),
        (queue_scores.f1, 4.0 * 16 + 870.0 * 3),
        (queue_scores.f2, 100.0 * 16 + 2.56e4 * 3),
        (queue_scores.f3, 1e4 * 16 + 6.86e6 * 3),
        (queue_scores.f4, 1e4 * 4 + 5.3e5 * 3),
        (queue_scores.wfp3, -(0.2**3) * 16),
        (queue_scores.unicep, -2000.0 / (4.0 * 1e4)),
    ],
)
def test_scores_by_hand(score: queue_scores.Score, expected: float) -> None:
    """Submitted at 1,000 s, 16 GPUs, 10,000 s, has waited 2,000 s."""
    assert score(rows((1000.0, 16, 1e4)), np.array([2000.0]))[0] == pytest.approx(expected, rel=1e-12)


def test_scores_are_finite_where_the_formulas_are_not() -> None:
    odd = rows((0.0, 1, 0.0), (-5.0, 1, 10.0))
    for score in (queue_scores.f1, queue_scores.f2, queue_scores.f3, queue_scores.f4, queue_scores.wfp3, queue_scores.unicep):
        assert np.isfinite(score(odd, np.array([0.0, 5.0]))).all(), score.__name__


def one_gpu(**fields: Any) -> Compiled:
    return compiled(horizon_s=1e5, **fields)


@pytest.mark.parametrize(
    ("policy", "jobs", "order"),
    [
        ("wfp3", [(0.0, 1, 100.0), (10.0, 1, 60.0), (60.0, 1, 20.0)], [0, 2, 1]),  # at 100: (90/60)^3 against (40/20)^3
        ("wfp3", [(0.0, 1, 100.0), (10.0, 1, 60.0), (60.0, 1, 30.0)], [0, 1, 2]),  # (40/30)^3
        ("unicep", [(0.0, 1, 100.0), (10.0, 1, 60.0), (60.0, 1, 20.0)], [0, 2, 1]),
        ("f1", [(0.0, 1, 1000.0), (900.0, 1, 1.0), (500.0, 1, 100.0)], [0, 2, 1]),  # submit weighs more than the run time
        ("f3", [(0.0, 1, 1000.0), (900.0, 1, 1.0), (890.0, 1, 1e5)], [0, 1, 2]),
    ],
)
def test_the_least_score_starts_first(policy: str, jobs: list[Job], order: list[int]) -> None:
    made = one_gpu()
    numbered = sorted(range(len(jobs)), key=lambda index: jobs[index][0])
    starts_s = play(made, world(made, jobs), policy).starts_s()
    assert [numbered[job] for job in np.argsort(starts_s)] == order


@pytest.mark.parametrize(
    ("policy", "starts_s"),
    [
        ("fcfs_head", [0.0, 100.0, 150.0, 150.0]),
        ("fcfs_head_backfill", [0.0, 100.0, 2.0, 150.0]),
        ("sjf_head", [0.0, 100.0, 150.0, 150.0]),  # at 1 B is alone, and the head from then on
        ("sjf_head_backfill", [0.0, 100.0, 2.0, 150.0]),
        ("conservative_backfill", [0.0, 100.0, 2.0, 150.0]),
        ("wfp3", [0.0, 100.0, 2.0, 150.0]),
        ("f1", [0.0, 100.0, 2.0, 150.0]),
    ],
)
def test_p24_four_jobs_under_the_backfilling_variants(policy: str, starts_s: list[float]) -> None:
    for clock in ({"kind": "event"}, {"kind": "one_by_one"}):
        made = compiled(gpus=4, clock=clock)
        assert play(made, world(made, FIFO_JOBS), policy).starts_s().tolist() == starts_s


def test_conservative_backfilling_protects_everybody_and_easy_only_the_head() -> None:
    """B is to start at 100 with 3 of 4 GPUs, C at 150 with all: D, of 1 GPU, would delay C only."""
    made = compiled(gpus=4, classes={"script": {"kind": "fixed", "gpu_counts": [1, 2, 3, 4]}})
    jobs = [(0.0, 2, 100.0), (1.0, 3, 50.0), (2.0, 4, 50.0), (3.0, 1, 200.0)]
    assert play(made, world(made, jobs), "easy_backfill").starts_s().tolist() == [0.0, 100.0, 203.0, 3.0]
    assert play(made, world(made, jobs), "conservative_backfill").starts_s().tolist() == [0.0, 100.0, 150.0, 200.0]
    assert play(made, world(made, [*jobs[:3], (3.0, 1, 147.0)]), "conservative_backfill").starts_s().tolist() == [0.0, 100.0, 150.0, 3.0]


def test_conservative_reservations_move_forward_when_a_job_ends_early() -> None:
    made = compiled(gpus=4)
    jobs, believed = [(0.0, 2, 40.0), (1.0, 4, 50.0), (2.0, 2, 90.0)], np.array([100.0, 50.0, 100.0])
    early = world(made, jobs, believed_work=believed, believed_s=believed)
    assert play(made, early, "conservative_backfill").starts_s().tolist() == [0.0, 40.0, 90.0]


def test_reservations_by_hand() -> None:
    """Job 0 holds 2 of 4 GPUs to 100; then jobs of 4, 2 and 1 GPUs, the last two as long as the gap or longer."""
    made = compiled(gpus=4)
    simulator = Simulator(made)
    simulator.reset(world(made, [(0.0, 2, 100.0), (0.0, 4, 50.0), (0.0, 2, 100.0), (0.0, 1, 101.0), (0.0, 8, 1.0)]))
    view = View(simulator)
    assert simulator.give(Command.START, 0, int(view.options(0)[0]))
    starts_s, configs = view.reservations(view.queue())
    assert starts_s.tolist() == [100.0, 0.0, 150.0, np.inf]
    assert [int(view.configs["n_gpus"][config]) for config in configs[:3]] == [4, 2, 1] and configs[3] == -1
    assert view.reservations(view.queue()[::-1])[0].tolist() == [np.inf, 0.0, 100.0, 200.0]


def test_a_reservation_is_kept_and_met_strictly() -> None:
    """B is reserved for 100. C would end at 100 exactly: it waits under the fixed head, and passes under EASY."""
    made = compiled(gpus=4)
    jobs = [(0.0, 2, 100.0), (1.0, 4, 50.0), (2.0, 2, 98.0)]
    assert play(made, world(made, jobs), "fcfs_head_backfill").starts_s().tolist() == [0.0, 100.0, 150.0]
    assert play(made, world(made, jobs), "easy_backfill").starts_s().tolist() == [0.0, 100.0, 2.0]

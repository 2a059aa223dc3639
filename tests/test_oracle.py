"""The oracle on tiny worlds whose answers were computed by hand, and its invariants on random ones."""

from typing import Any

import numpy as np
import pytest

from hetenv.events.stream import Effect, EventClock, rows
from hetenv.objective import Account
from hetenv.scenario import CandidateConfig, EventClockConfig, RoundClockConfig
from hetenv.workload.requests import Elasticity
from tests.oracle_worlds import down, ends, greedy, oracle, pool, states, tick
from tests.random_worlds import config_row, tabulate

# Overheads


CLOCKS = (EventClockConfig(), *(RoundClockConfig(round_s=round_s) for round_s in (1.0, 10.0, 60.0, 600.0)))


@pytest.mark.parametrize("clock", CLOCKS)
def test_start_overhead_is_charged_once_whatever_the_clock(clock: Any) -> None:
    it = greedy(oracle([{"work": 1000}], tabulate((60.0, 60.0, [config_row(0, 1)])), clock=clock))
    assert ends(it) == [1060.0] and it.now == 1060.0 and it.done == "terminated"
    assert it.accounts[Account.OVERHEAD_GPU_S] == 60.0


def test_preempted_job_pays_one_restart_and_keeps_its_work() -> None:
    it = oracle([{"work": 1000}], tabulate((60.0, 60.0, [config_row(0, 1)])), events=(tick(400, 600),))
    it.apply("start", 0, 0)
    assert it.now == 400.0 and it.jobs[0].work == 340.0  # the end of the overhead alone is no decision
    assert it.apply("preempt", 0) and it.now == 600.0
    it.apply("start", 0, 0)
    assert ends(it) == [1320.0]
    assert it.accounts[Account.LOST_GPU_S] == 0.0 and it.accounts[Account.QUEUED_JOB_S] == 200.0


def test_leaving_voluntarily_charges_save_and_load_at_the_next_start_and_eviction_only_load() -> None:
    small, large = config_row(0, 1, save_s=3.0, load_s=7.0), config_row(0, 2, save_s=20.0, load_s=40.0)
    table = tabulate((5.0, 10.0, [small, large]))
    job = {"work": 100, "max_gpus": 2, "elasticity": Elasticity.MALLEABLE}
    it = oracle([job], table, (pool(1, 2), pool(1, 2, "b")), (tick(25, 200), down(0, 300, 50)))
    it.apply("start", 0, 0)
    assert it.now == 25.0 and it.jobs[0].work == 20.0
    it.apply("change", 0, 1)
    assert it.now == 158.0  # 25 + restart 10 + load 40 + save 3, then 80 units of work
    assert states(it) == ["FINISHED"] and it.accounts[Account.N_RECONFIGURED] == 1.0

    it = oracle([{"work": 100, "checkpoint_interval": 15}], table, events=(down(0, 25, 50),))
    it.apply("start", 0, 0)
    assert it.now == 25.0 and it.jobs[0].work == 15.0
    it.apply("wait")
    it.apply("start", 0, 0)
    assert ends(it) == [75.0 + 10.0 + 7.0 + 85.0]


def test_preemption_then_eviction_while_restoring_clears_the_pending_save() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, 1, save_s=30.0)]))
    it = oracle([{"work": 100}], table, events=(tick(10, 20), down(0, 40, 10)))
    it.apply("start", 0, 0)
    it.apply("preempt", 0)
    it.apply("start", 0, 0)
    assert it.now == 40.0 and states(it) == ["QUEUED"] and it.jobs[0].work == 10.0
    it.apply("wait")
    it.apply("start", 0, 0)
    assert ends(it) == [140.0]
    assert it.accounts[Account.OVERHEAD_GPU_S] == 20.0 and it.accounts[Account.LOST_GPU_S] == 0.0


def test_zero_work_finishes_at_once_or_with_its_overhead() -> None:
    it = oracle([{"work": 0}, {"work": 0}, {"work": 5}])
    it.apply("start", 0, 0)
    assert (it.now, it.commands_left, states(it)[0]) == (0.0, 2, "FINISHED")
    it.apply("start", 1, 0)  # the GPU is free again at the same instant
    assert (it.now, it.commands_left, ends(it)[:2]) == (0.0, 1, [0.0, 0.0])
    it.apply("start", 2, 0)
    assert (it.now, it.done) == (5.0, "terminated")

    it = oracle([{"work": 0}], tabulate((8.0, 0.0, [config_row(0, 1)])))
    it.apply("start", 0, 0)
    assert ends(it) == [8.0]


def test_last_job_of_zero_work_ends_the_episode_within_the_command() -> None:
    it = oracle([{"work": 0}])
    it.apply("start", 0, 0)
    assert (it.now, it.done) == (0.0, "terminated")


# Ties, failures, checkpoints


def test_gpu_freed_at_an_arrival_is_visible_to_its_decision() -> None:
    for events in ((), (rows(Effect.NODE_SPEED, 100, 0, 1.0),)):
        it = oracle([{"work": 100}, {"work": 50, "submit_s": 100}], events=events)
        it.apply("start", 0, 0)
        assert it.now == 100.0 and states(it) == ["FINISHED", "QUEUED"] and it.legal_commands() == [("start", 1, 0)]
        assert ends(greedy(it)) == [100.0, 150.0]


def test_completion_comes_before_a_failure_of_the_same_time_and_a_failure_before_a_submit() -> None:
    it = oracle([{"work": 100}, {"work": 10, "submit_s": 100}], events=(down(0, 100, 50),))
    greedy(it)
    assert ends(it) == [100.0, 160.0] and it.accounts[Account.N_EVICTED] == 0.0


def test_failure_rolls_back_to_the_last_checkpoint_once() -> None:
    table = tabulate((0.0, 120.0, [config_row(0, 1)]))
    it = greedy(oracle([{"work": 3000, "checkpoint_interval": 600}], table, (pool(2),), (down(0, 1450),)))
    assert ends(it) == [3370.0] and it.accounts[Account.LOST_GPU_S] == 250.0


def test_three_faults_redo_ten_twenty_and_fifteen_steps() -> None:
    faults = (down(0, 60), down(1, 155), down(0, 270))
    it = oracle([{"work": 300, "checkpoint_interval": 25}], pools=(pool(2),), events=faults)
    resumed = []
    while not it.done:
        if it.jobs[0].state == "QUEUED":
            resumed.append(it.jobs[0].work)
        it.apply(*(it.legal_commands()[0] if it.jobs[0].state == "QUEUED" else ("wait",)))
    assert resumed == [0.0, 50.0, 125.0, 225.0]
    assert it.accounts[Account.PRODUCTIVE_GPU_S] == 345.0 and it.accounts[Account.LOST_GPU_S] == 45.0


def test_failure_at_a_checkpoint_loses_nothing() -> None:
    it = oracle([{"work": 100, "checkpoint_interval": 25}], events=(down(0, 50),))
    it.apply("start", 0, 0)
    assert it.jobs[0].work == 50.0 and it.accounts[Account.LOST_GPU_S] == 0.0


def test_overlapping_failures_end_with_the_later_of_them() -> None:
    it = oracle([], events=(down(0, 10, 50), down(0, 20, 100), down(0, 30, 5)), pools=(pool(1, 4),), horizon_s=1000.0)
    assert it.done == "terminated"
    it = oracle([{"work": 1}], events=(down(0, 10, 50), down(0, 20, 100), down(0, 30, 5)), horizon_s=1000.0)
    seen = []
    while not it.done:
        seen.append((it.now, it.nodes[0].up))
        it.apply("wait")
    assert seen == [(0.0, True), (10.0, False), (20.0, False), (30.0, False), (120.0, True)]
    assert it.accounts[Account.AVAILABLE_GPU_S] == 10 + 880


def test_node_up_returns_a_node_that_fails_for_good() -> None:
    events = (down(0, 10, np.inf), rows(Effect.NODE_UP, 60, 0, 0.0))
    it = greedy(oracle([{"work": 30}], events=events))
    assert ends(it) == [90.0] and it.accounts[Account.LOST_GPU_S] == 10.0


def test_node_without_return_truncates_the_episode() -> None:
    it = greedy(oracle([{"work": 30}], events=(down(0, 10, np.inf),), horizon_s=500.0))
    assert (it.now, it.done, states(it)) == (500.0, "truncated", ["QUEUED"])


def test_busy_hazard_counts_only_time_up_and_held() -> None:
    hazard = rows(Effect.NODE_DOWN, [30, 70], 0, 5.0, EventClock.NODE_BUSY)
    it = oracle([{"work": 50, "submit_s": 100}, {"work": 30, "submit_s": 200}], events=(hazard,))
    greedy(it)
    # held from 100: down at 130 for 5; held 135-175 (40 s): down at 175, of 50 units 40 are lost; then 180-230, 230-260
    assert ends(it) == [230.0, 260.0]
    assert it.nodes[0].busy_s == 150.0 and it.accounts[Account.LOST_GPU_S] == 70.0


def test_hazards_at_one_busy_time_fire_in_row_order_each_once() -> None:
    hazards = (
        rows(Effect.NODE_DOWN, 10, 0, 5.0, EventClock.NODE_BUSY),
        rows(Effect.NODE_SPEED, 10, 0, 0.5, EventClock.NODE_BUSY),
    )
    it = oracle([{"work": 20}], tabulate((0.0, 0.0, [config_row(0, 1, straggler_share=1.0)])), events=hazards)
    it.apply("start", 0, 0)
    assert (it.now, it.nodes[0].up, it.nodes[0].speed) == (10.0, False, 0.5)
    assert ends(greedy(it)) == [15.0 + 40.0]  # the speed factor survives the failure


def test_hazard_due_when_its_last_job_completes_fires_at_that_time() -> None:
    it = oracle([{"work": 10}, {"work": 5}], events=(rows(Effect.NODE_DOWN, 10, 0, 7.0, EventClock.NODE_BUSY),))
    it.apply("start", 0, 0)
    it.apply("wait")
    assert it.now == 10.0 and states(it) == ["FINISHED", "QUEUED"] and not it.nodes[0].up
    assert ends(greedy(it)) == [10.0, 22.0]


def test_work_threshold_crashes_a_job_and_one_at_the_total_does_not() -> None:
    crashes = rows(Effect.JOB_CRASH, [40, 100], [0, 1], 0.0, EventClock.JOB_WORK)
    it = oracle([{"work": 100, "checkpoint_interval": 25}, {"work": 100}], pools=(pool(1, 2),), events=(crashes,))
    greedy(it)
    assert states(it) == ["CRASHED", "FINISHED"] and ends(it) == [40.0, 100.0]
    assert it.accounts[Account.LOST_GPU_S] == 15.0 and it.accounts[Account.N_CRASHED] == 1.0


def test_job_cancelled_before_its_submit_never_queues() -> None:
    it = oracle([{"work": 10, "submit_s": 50}], events=(rows(Effect.JOB_CANCEL, 20, 0, 0.0),))
    assert not it.done
    it.apply("wait")
    assert it.now == 20.0 and states(it) == ["FUTURE"]
    it.apply("wait")
    assert (it.now, it.done, states(it)) == (50.0, "terminated", ["CANCELLED"])
    assert it.accounts[Account.JOB_S] == 0.0 and it.accounts[Account.N_CANCELLED] == 1.0


def test_cancelled_and_crashed_jobs_free_their_gpus_and_lose_what_is_not_durable() -> None:
    events = (rows(Effect.JOB_CANCEL, 70, 0, 0.0), rows(Effect.JOB_CRASH, [80, 90], 0, 0.0))
    it = oracle([{"work": 100, "checkpoint_interval": 50}, {"work": 10}], events=events)
    it.apply("start", 0, 0)
    it.apply("wait")
    assert it.now == 70.0 and states(it) == ["CANCELLED", "QUEUED"]
    assert it.accounts[Account.LOST_GPU_S] == 20.0 and it.legal_commands() == [("start", 1, 0)]
    assert ends(greedy(it)) == [70.0, 80.0]
    assert it.accounts[Account.N_CRASHED] == 0.0  # effects on ended jobs do nothing


def test_rejected_request_ends_at_its_submit() -> None:
    it = oracle([{"work": 10, "submit_s": 30, "rejected": 1}])
    it.apply("wait")
    assert (it.now, it.done, states(it)) == (30.0, "terminated", ["REJECTED"])


# Schedules


def test_strict_fifo_schedule() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, 2), config_row(0, 4)]))
    jobs = [(0, 2, 100), (1, 4, 50), (2, 2, 90), (3, 2, 120)]
    it = oracle(
        [{"submit_s": s, "min_gpus": n, "max_gpus": n, "work": work} for s, n, work in jobs], table, (pool(1, 4),)
    )
    while not it.done:
        queued = [job for job in it.jobs if job.state == "QUEUED"]
        config = {2: 0, 4: 1}
        head = queued[0] if queued else None
        can = head is not None and it.is_legal("start", head.id, config[head.request.min_gpus])
        it.apply(*(("start", head.id, config[head.request.min_gpus]) if can and head else ("wait",)))
    assert [job.first_start_s for job in it.jobs] == [0.0, 100.0, 150.0, 150.0]
    assert np.mean([job.end_s - job.request.submit_s for job in it.jobs]) == 188.5


def test_utilisation_counts_available_gpus() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, 8)]))
    jobs = [{"work": 1000, "min_gpus": 8, "max_gpus": 8}] * 2
    it = greedy(oracle(jobs, table, (pool(2, 8),), (down(1, 50, 500),), horizon_s=100.0))
    assert it.done == "truncated" and it.now == 100.0
    assert it.accounts[Account.HELD_GPU_S] == it.accounts[Account.AVAILABLE_GPU_S] == 1200.0


def test_states_at_the_horizon_of_a_world_with_unfinished_jobs() -> None:
    jobs = [(0, 100), (0, 200), (0, 300), (100, 5000), (600, 10)]
    it = oracle([{"submit_s": s, "work": work} for s, work in jobs], pools=(pool(1, 3),), horizon_s=1000.0)
    greedy(it, until=lambda: it.now >= 600)
    while not it.done:
        it.apply("wait")
    assert states(it) == ["FINISHED", "FINISHED", "FINISHED", "RUNNING", "QUEUED"]
    ages = [min(job.end_s, it.now) - job.request.submit_s for job in it.jobs]
    assert ages == [100.0, 200.0, 300.0, 900.0, 400.0] and np.mean(ages) == 380.0
    assert it.accounts[Account.JOB_S] == sum(ages) and it.accounts[Account.QUEUED_JOB_S] == 400.0


def test_deadline_misses_and_weighted_lateness_count_finished_jobs_only() -> None:
    jobs = [{"work": 10, "deadline_s": 10}, {"work": 10, "deadline_s": 15, "weight": 3}, {"work": 99, "deadline_s": 1}]
    it = greedy(oracle(jobs, horizon_s=50.0))
    assert it.accounts[Account.N_DEADLINE_MISSES] == 1.0 and it.accounts[Account.LATENESS_S] == 15.0


# Commands


def test_illegal_commands_change_nothing_and_use_up_commands() -> None:
    it = oracle([{"work": 10}, {"work": 10}, {"work": 10, "submit_s": 500}])
    assert it.commands_left == 2
    assert not it.apply("preempt", 0) and not it.jobs[0].commanded
    assert (it.now, it.commands_left) == (0.0, 1)
    assert it.apply("start", 0, 0)
    assert it.now == 10.0 and it.accounts[Account.N_ILLEGAL] == 1.0
    for command in (("start", 2, 0), ("start", 0, 0), ("change", 1, 0)):
        assert not it.is_legal(*command)


def test_job_takes_one_command_per_instant_and_the_clock_moves_after_the_last() -> None:
    jobs = [{"work": 10}, {"work": 10}, {"work": 10}]
    it = oracle(jobs, pools=(pool(1, 3),), candidates=CandidateConfig(max_commands_per_instant=2))
    it.apply("start", 0, 0)
    assert not it.is_legal("preempt", 0)
    it.apply("start", 1, 0)
    assert it.now == 10.0 and it.commands_left == 1  # one job is left


def test_elasticity_and_preemptibility_decide_on_changes() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, 1), config_row(0, 1, tier=1), config_row(0, 2)]))
    for elasticity, preemptible, expected in (
        (Elasticity.MALLEABLE, 1, [("change", 0, 1), ("change", 0, 2), ("preempt", 0)]),
        (Elasticity.MOLDABLE, 1, [("change", 0, 1), ("preempt", 0)]),
        (Elasticity.MALLEABLE, 0, []),
    ):
        job = {"work": 100, "max_gpus": 2, "elasticity": elasticity, "preemptible": preemptible}
        it = oracle([job], table, (pool(1, 2),), (tick(10),))
        assert it.legal_commands() == [("start", 0, 0), ("start", 0, 1), ("start", 0, 2)]
        it.apply("start", 0, 0)
        assert it.legal_commands() == expected


def test_allowed_pools_and_gpu_range_restrict_configurations() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, 1), config_row(1, 1), config_row(1, 2), config_row(0, 1, 1, 1)]))
    it = oracle([{"work": 1, "pools": 2}], table, (pool(1, 2), pool(1, 2, "b")))
    assert it.legal_commands() == [("start", 0, 1)]
    it = oracle([{"work": 1, "min_gpus": 2, "max_gpus": 2}], table, (pool(1, 2), pool(1, 2, "b")))
    assert it.legal_commands() == [("start", 0, 2), ("start", 0, 3)]


# Placement

"""The oracle on tiny worlds whose answers were computed by hand, and its invariants on random ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hetenv.cluster import ClusterConfig, PoolConfig, SiteConfig
from hetenv.configurations import Configurations
from hetenv.events.stream import Effect, EventClock, merge, rows
from hetenv.objective import Account
from hetenv.scenario import CandidateConfig, DrainEnd, EventClockConfig, MeasureConfig, RoundClockConfig, make_world
from hetenv.workload.requests import Elasticity, by_submit, requests
from tests.oracle import LIVE, Job, Oracle
from tests.random_worlds import Dice, assemble, config_row, random_command, random_world, tabulate

WATTLESS = {"accelerator": "A100-SXM-80", "node_overhead_w": 0.0, "idle_w": 0.0}
ONE_GPU = tabulate((0.0, 0.0, [config_row(0, 1)]))


def pool(nodes: int = 1, gpus: int = 1, name: str = "a", **fields: Any) -> PoolConfig:
    return PoolConfig(name=name, nodes=nodes, gpus_per_node=gpus, **{**WATTLESS, **fields})


def oracle(
    jobs: list[dict[str, Any]],
    configurations: Configurations = ONE_GPU,
    pools: tuple[PoolConfig, ...] = (pool(),),
    events: tuple[np.ndarray, ...] = (),
    site: SiteConfig | None = None,
    window: MeasureConfig | None = None,
    **rules: Any,
) -> Oracle:
    """A world of jobs given as the REQUEST columns that differ from the defaults."""
    table = requests(len(jobs))
    for row, job in zip(table, jobs):
        for name, value in job.items():
            row[name] = value
    cluster = ClusterConfig(pools=pools, sites=(site or SiteConfig(name="site"),))
    compiled = assemble(cluster, configurations=configurations, measure=window or MeasureConfig(), **rules)
    drawn = merge({str(i): event for i, event in enumerate(events)})
    return Oracle(compiled, make_world(compiled, by_submit(table), drawn), measure=window is not None)


def greedy(it: Oracle, until: Callable[[], bool] = lambda: False) -> Oracle:
    """First-fit FIFO: start what can start, by job id, then wait; until the end or until `until`."""
    while not it.done and not until():
        starts = [command for command in it.legal_commands() if command[0] == "start"]
        it.apply(*(starts[0] if starts else ("wait",)))
    return it


def ends(it: Oracle) -> list[float]:
    return [job.end_s for job in it.jobs]


def states(it: Oracle) -> list[str]:
    return [job.state for job in it.jobs]


def tick(*at_s: float) -> np.ndarray:
    """Rows that change nothing but make instants."""
    return rows(Effect.SITE_PRICE, at_s, 0, 0.0)


def down(node: int, at_s: float, for_s: float = 1.0) -> np.ndarray:
    return rows(Effect.NODE_DOWN, at_s, node, for_s)


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


def allocation(it: Oracle, job: int, config: int) -> dict[int, int]:
    assert it.apply("start", job, config)
    return it.jobs[job].allocation


def sized(*sizes: int, **more: Any) -> list[dict[str, Any]]:
    return [{"work": 100, "min_gpus": n, "max_gpus": n, **more} for n in sizes]


def test_whole_nodes_by_lowest_index_and_the_rest_by_best_fit() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, n) for n in range(1, 9)]))
    it = oracle(sized(2, 3, 1, 6, 4), table, (pool(4, 4),))
    assert allocation(it, 0, 1) == {0: 2}
    assert allocation(it, 1, 2) == {1: 3}
    assert allocation(it, 2, 0) == {1: 1}  # one free GPU is the tightest fit
    assert allocation(it, 3, 5) == {2: 4, 0: 2}
    assert it.is_legal("start", 4, 3)  # node 3 is whole


def test_rows_for_any_nodes_scatter_where_their_footprint_is_not_there() -> None:
    rigid, loose = config_row(0, 2, spread_penalty=0.5), config_row(0, 2, any_nodes=1, spread_penalty=0.5)
    it = oracle(sized(3, 3, 2), tabulate((0.0, 0.0, [config_row(0, 3), rigid, loose])), (pool(2, 4),))
    assert it.is_legal("start", 2, 1)
    it.apply("start", 0, 0)
    it.apply("start", 1, 0)
    assert it.legal_commands() == [("start", 2, 2)]
    it.apply("start", 2, 2)
    assert it.now == 100.0 and it.jobs[2].allocation == {0: 1, 1: 1} and it.jobs[2].rate == 0.5
    it.apply("wait")
    assert ends(it) == [100.0, 100.0, 200.0]


def test_scattering_takes_the_emptiest_nodes_first() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, 2), config_row(0, 3, any_nodes=1)]))
    it = oracle(sized(3, 2, 3, 3, 3), table, (pool(3, 4),))
    for job, config in enumerate((1, 0, 1)):
        it.apply("start", job, config)
    assert [node.free_gpus for node in it.nodes] == [1, 2, 1]
    assert allocation(it, 3, 1) == {1: 2, 0: 1}
    assert not it.is_legal("start", 4, 1)


def test_job_scattered_over_as_many_nodes_as_its_footprint_is_spread_too() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, n, any_nodes=1, spread_penalty=0.5) for n in (1, 3, 6)]))
    it = oracle(sized(1, 3, 1, 6), table, (pool(2, 4),), (rows(Effect.JOB_CANCEL, 10, 1, 0.0), tick(20)))
    for job, config in enumerate((0, 1, 0)):
        it.apply("start", job, config)
    it.apply("wait")
    assert [node.free_gpus for node in it.nodes] == [3, 3]
    it.apply("start", 3, 2)
    assert it.jobs[3].allocation == {0: 3, 1: 3} and it.jobs[3].rate == 0.5


def test_two_pools_are_placed_apart() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, 2), config_row(0, 2, 1, 3)]))
    it = oracle(sized(2, 5, 5, 5), table, (pool(2, 4), pool(2, 4, "b")))
    it.apply("start", 0, 0)
    assert allocation(it, 1, 1) == {0: 2, 2: 3}
    assert allocation(it, 2, 1) == {1: 2, 3: 3}
    assert it.accounts[Account.N_STARTED] == 3.0


def test_two_pool_job_is_slowed_by_the_slower_pool() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, 1, 1, 1, straggler_share=1.0, inter_s=1.0, inter_hideable_s=1.0)]))
    slow_node, slow_link = rows(Effect.NODE_SPEED, 10, 1, 0.5), rows(Effect.LINK_BANDWIDTH, 30, 2 * 1 + 1, 0.5)
    it = oracle(sized(2), table, (pool(1, 1), pool(1, 1, "b")), (slow_node, slow_link))
    it.apply("start", 0, 0)
    assert it.now == 10.0 and it.jobs[0].rate == 0.5
    it.apply("wait")
    assert it.now == 30.0 and it.jobs[0].work == 20.0 and it.jobs[0].rate == pytest.approx(1 / 3)
    it.apply("wait")
    assert it.now == pytest.approx(30 + 80 * 3)


def test_straggler_share_scales_the_loss_of_a_slow_member() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, 2, straggler_share=0.5)]))
    it = oracle(sized(2), table, (pool(2, 1),), (rows(Effect.NODE_SPEED, 0, 1, 0.25),))
    it.apply("start", 0, 0)
    assert it.now == 250.0  # 1 + 0.5 x (4 - 1) seconds per step


def test_cpus_and_host_memory_limit_the_gpus_of_a_node() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, 1), config_row(0, 2)]))
    tight = (pool(1, 4, cpus_per_node=8, host_memory_gbytes_per_node=10),)
    it = oracle(sized(1, 1, 1, cpus_per_gpu=3), table, tight)
    it.apply("start", 0, 0)
    it.apply("start", 1, 0)
    assert it.nodes[0].free_gpus == 2 and it.nodes[0].free_cpus == 2 and not it.is_legal("start", 2, 0)
    it = oracle(sized(2, 2, host_mbytes_per_gpu=3000), table, tight)
    it.apply("start", 0, 1)
    assert it.nodes[0].free_mbytes == 4000 and not it.is_legal("start", 1, 1)


def test_own_gpus_count_as_free_for_a_change() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, 2), config_row(0, 4)]))
    job = {"work": 100, "min_gpus": 2, "max_gpus": 4, "elasticity": Elasticity.MALLEABLE, "cpus_per_gpu": 2}
    it = oracle([job], table, (pool(1, 4, cpus_per_node=8),), (tick(10),))
    it.apply("start", 0, 0)
    assert it.apply("change", 0, 1) and it.done == "terminated"
    assert it.accounts[Account.HELD_GPU_S] == 2 * 10 + 4 * 90


# Energy


DAY_LONG = tabulate((0.0, 0.0, [config_row(0, 8, power_w=5600.0)]))
PLAIN_SITE = SiteConfig(name="site", pue=1.2, carbon_g_per_kwh=400.0, price_usd_per_mwh=80.0)


def test_energy_carbon_and_cost_of_eight_gpus_for_ten_hours() -> None:
    it = greedy(oracle(sized(8, work=36_000), DAY_LONG, (pool(1, 8, rent_usd_per_gpu_hour=2.0),), site=PLAIN_SITE))
    assert it.accounts[Account.ENERGY_J] == pytest.approx(1.2 * 201.6e6, rel=1e-12)
    assert it.accounts[Account.CARBON_KG] == pytest.approx(26.88, rel=1e-12)
    assert it.accounts[Account.GRID_COST_USD] == pytest.approx(0.056 * 1.2 * 80, rel=1e-12)
    assert it.accounts[Account.RENT_USD] == pytest.approx(160.0, rel=1e-12)


def test_renewable_power_covers_its_part_and_the_rest_is_curtailed() -> None:
    site = SiteConfig(name="site", pue=1.0, carbon_g_per_kwh=3600.0, renewable_w=600.0)
    signals = (rows(Effect.SITE_RENEWABLE, 50, 0, 1500.0), rows(Effect.SITE_CARBON, 25, 0, 2e-6))
    table = tabulate((0.0, 0.0, [config_row(0, 1, power_w=1000.0)]))
    it = greedy(oracle(sized(1), table, events=signals, site=site))
    assert it.accounts[Account.ENERGY_J] == 100_000.0
    assert it.accounts[Account.RENEWABLE_J] == 600 * 50 + 1000 * 50
    assert it.accounts[Account.CURTAILED_J] == 500 * 50
    assert it.accounts[Account.CARBON_KG] == pytest.approx(400 * 25 * 1e-6 + 400 * 25 * 2e-6, rel=1e-12)


def test_negative_price_earns_money() -> None:
    site = SiteConfig(name="site", pue=1.0, price_usd_per_mwh=-20.0)
    table = tabulate((0.0, 0.0, [config_row(0, 1, power_w=1e6)]))
    it = greedy(oracle(sized(1, work=3600), table, site=site))
    assert it.accounts[Account.GRID_COST_USD] == pytest.approx(-20.0, rel=1e-12)


def test_idle_starting_and_dead_gpus_draw_idle_idle_and_no_power() -> None:
    table = tabulate((20.0, 0.0, [config_row(0, 1, power_w=500.0)]))
    pools = (pool(2, 2, idle_w=50.0, node_overhead_w=100.0),)
    site = SiteConfig(name="site", pue=1.0)
    it = greedy(oracle(sized(1), table, pools, (down(1, 10, 10),), site=site, horizon_s=30.0))
    # 10 s: 2 nodes, 4 idle GPUs; 10 s: 1 node, 2 idle; 10 s: 2 nodes, 3 idle, one job steps
    assert it.accounts[Account.ENERGY_J] == 10 * 400 + 10 * 200 + 10 * (200 + 150 + 500)


def test_power_of_a_two_pool_job_is_shared_by_gpu_count() -> None:
    table = tabulate((0.0, 0.0, [config_row(0, 1, 1, 3, power_w=400.0)]))
    sites = (SiteConfig(name="x", pue=1.0, renewable_w=1e9), SiteConfig(name="y", pue=2.0))
    pools = (pool(1, 1, site="x"), pool(1, 3, "b", site="y"))
    compiled = assemble(ClusterConfig(pools=pools, sites=sites), configurations=table)
    jobs = requests(1)
    jobs["work"], jobs["min_gpus"], jobs["max_gpus"] = 10.0, 4, 4
    it = greedy(Oracle(compiled, make_world(compiled, jobs, merge({}))))
    assert it.accounts[Account.RENEWABLE_J] == 10 * 100.0
    assert it.accounts[Account.ENERGY_J] == 10 * (100.0 + 2 * 300.0)


# The clock and the end


def decisions(it: Oracle) -> list[float]:
    seen = []
    while not it.done:
        seen.append(it.now)
        it.apply("wait")
    return seen


def test_event_clock_decides_at_instants_and_after_the_longest_interval() -> None:
    clock = EventClockConfig(max_interval_s=40.0)
    it = oracle([{"work": 1, "submit_s": 50}], events=(tick(70, 110),), clock=clock, horizon_s=160.0)
    assert decisions(it) == [0.0, 40.0, 50.0, 70.0, 110.0, 150.0]
    assert (it.now, it.done) == (160.0, "truncated")


def test_round_clock_decides_at_rounds_only() -> None:
    it = oracle([{"work": 30}, {"work": 1, "submit_s": 7}], clock=RoundClockConfig(round_s=20.0), horizon_s=100.0)
    it.apply("start", 0, 0)
    assert (it.now, states(it)) == (20.0, ["RUNNING", "QUEUED"])
    it.apply("wait")
    assert (it.now, ends(it)[0]) == (40.0, 30.0)
    it.apply("start", 1, 0)
    assert (it.now, it.done) == (41.0, "terminated")


def test_what_happens_at_the_limit_has_happened_and_completion_there_terminates() -> None:
    it = greedy(oracle([{"work": 100}], horizon_s=100.0))
    assert (it.now, it.done, states(it)) == (100.0, "terminated", ["FINISHED"])
    it = greedy(oracle([{"work": 101}], horizon_s=100.0, end=DrainEnd(limit_s=100.5), events=(down(0, 100.5),)))
    assert (it.now, it.done, states(it)) == (100.5, "truncated", ["QUEUED"])


def test_jobs_submitted_before_time_zero_are_queued_at_zero() -> None:
    it = oracle([{"work": 10, "submit_s": -50}, {"work": 10, "submit_s": 0}])
    assert states(it) == ["QUEUED", "QUEUED"] and it.commands_left == 2
    assert greedy(it).accounts[Account.JOB_S] == 10 + 20


def test_world_without_jobs_terminates_at_zero() -> None:
    it = oracle([])
    assert (it.now, it.done, it.commands_left) == (0.0, "terminated", 0)


def test_measured_accounts_cover_the_window() -> None:
    window = MeasureConfig(from_s=25.0, to_s=110.0)
    it = greedy(oracle([{"work": 100}, {"work": 30}], window=window))
    assert it.measured[Account.ELAPSED_S] == 85.0 and it.measured[Account.JOB_S] == 2 * 75 + 10
    assert it.measured[Account.N_FINISHED] == 1.0 and it.accounts[Account.N_FINISHED] == 2.0


# Random worlds


@pytest.mark.parametrize("seed", range(60))
def test_invariants_hold_in_random_worlds(seed: int) -> None:
    it = Oracle(*random_world(seed))
    dice = Dice(np.random.default_rng(seed), exact=True)
    restless = dice.pick(0.3, 0.05, 0.0)
    while not it.done:
        before, at = list(it.accounts), it.now
        legal = it.legal_commands()
        command = random_command(legal, len(it.jobs), len(it.configs), dice, restless)
        was_legal = command[0] == "wait" or command[: 2 + (command[0] != "preempt")] in legal
        assert it.apply(*command) == was_legal
        assert it.now >= at and (it.commands_left > 0 or it.done or not any(job.state in LIVE for job in it.jobs))
        _check_conservation(it)
        grown = [b - a for a, b in zip(before, it.accounts)]
        assert grown[Account.HELD_GPU_S] <= grown[Account.AVAILABLE_GPU_S] + 1e-6
        assert all(growth >= 0 for account, growth in enumerate(grown) if account != Account.GRID_COST_USD)
    _check_ends(it)


def _check_conservation(it: Oracle) -> None:
    for node in it.nodes:
        held = {job.id: job.allocation[node.id] for job in it.jobs if node.id in job.allocation}
        assert node.free_gpus == node.pool.gpus - sum(held.values()) and min(held.values(), default=1) > 0
        assert min(node.free_gpus, node.free_cpus, node.free_mbytes) >= 0
        assert node.up or not held
    for job in it.jobs:
        assert (job.state == "RUNNING") == bool(job.allocation) == (job.config >= 0)
        assert 0 <= job.durable <= job.request.work and job.work <= job.request.work
        assert sum(job.allocation.values()) == (it.configs[job.config].n_gpus if job.allocation else 0)


def _check_ends(it: Oracle) -> None:
    ledger = it.accounts
    in_use = ledger[Account.OVERHEAD_GPU_S] + ledger[Account.PRODUCTIVE_GPU_S]
    assert ledger[Account.HELD_GPU_S] == pytest.approx(in_use)
    assert ledger[Account.LOST_GPU_S] <= ledger[Account.PRODUCTIVE_GPU_S] + 1e-6
    assert ledger[Account.RENEWABLE_J] <= ledger[Account.ENERGY_J] + 1e-6
    assert ledger[Account.ELAPSED_S] == pytest.approx(it.now)

    def in_system_s(job: Job) -> float:
        return max(0.0, min(job.end_s, it.now) - max(0.0, job.request.submit_s))

    assert ledger[Account.JOB_S] == pytest.approx(sum(job.request.weight * in_system_s(job) for job in it.jobs))
    for state in ("FINISHED", "CRASHED", "CANCELLED", "REJECTED"):
        assert ledger[Account[f"N_{state}"]] == states(it).count(state)
    assert ledger[Account.N_STARTED] == sum(job.n_starts for job in it.jobs)
    assert (it.done == "terminated") == all(job.state not in ("FUTURE", *LIVE) for job in it.jobs)

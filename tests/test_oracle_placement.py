"""The oracle on placement, energy and the clock, by hand; its invariants on random worlds."""


import numpy as np
import pytest

from hetenv.cluster import ClusterConfig, SiteConfig
from hetenv.events.stream import Effect, merge, rows
from hetenv.objective import Account
from hetenv.scenario import DrainEnd, EventClockConfig, MeasureConfig, RoundClockConfig, make_world
from hetenv.workload.requests import Elasticity, requests
from tests.oracle import LIVE, Job, Oracle
from tests.oracle_worlds import allocation, down, ends, greedy, oracle, pool, sized, states, tick
from tests.random_worlds import Dice, assemble, config_row, random_command, random_world, tabulate


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
        may_fall = (Account.GRID_COST_USD, Account.EXPORT_USD)  # prices and tariffs may be negative
        assert all(growth >= 0 for account, growth in enumerate(grown) if account not in may_fall)
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

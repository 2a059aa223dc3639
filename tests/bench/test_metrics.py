"""Metrics on worlds whose answers were computed by hand."""

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from hetenv.bench.jobs import mean_contention
from hetenv.bench.metrics import METRICS, metrics
from hetenv.events.stream import Effect
from hetenv.scenario import MeasureConfig
from hetenv.sim.simulator import Simulator

from .worlds import compiled, first_fit, world


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_every_metric_comes_in_the_order_of_the_registry_and_is_plain_data() -> None:
    found = metrics(first_fit(compiled(), world(compiled(), [(0, 1, 100)])))
    assert list(found) == list(METRICS)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_completion_times_with_unfinished_jobs() -> None:
    """P23: finished 100, 200, 300; one running since 100, one queued since 600, horizon 1000."""
    scenario = compiled(nodes=1, gpus=4)
    jobs = [(0, 1, 100), (0, 1, 200), (0, 1, 300), (100, 1, 5000), (600, 4, 10)]
    found = metrics(first_fit(scenario, world(scenario, jobs)))
    assert (found["jct_mean_s"], found["n_finished"], found["n_unfinished"]) == (200.0, 3, 2)
    assert found["finished_share"] == 0.6
    assert found["jct_lower_bound_mean_s"] == 380.0
    assert found["makespan_s"] is None
    assert (found["wait_mean_s"], found["wait_lower_bound_mean_s"]) == (0.0, 80.0)


def test_nothing_finished_gives_none_and_no_warning() -> None:
    scenario = compiled()
    found = metrics(first_fit(scenario, world(scenario, [(0, 1, 5000)])))
    for name in ("jct_mean_s", "jct_p50_s", "jct_p99_s", "makespan_s", "bounded_slowdown_mean", "finish_time_fairness_mean"):
        assert found[name] is None
    assert (found["n_finished"], found["finished_share"]) == (0, 0.0)


def test_no_job_at_all() -> None:
    """P16: an empty world; an episode that is over at once has no time to be utilised in."""
    scenario = compiled()
    found = metrics(first_fit(scenario, world(scenario, [])))
    assert (found["n_jobs"], found["elapsed_s"], found["objective"]) == (0, 0.0, 0.0)
    assert found["utilisation_available"] is found["utilisation_nominal"] is found["finished_share"] is None
    json.dumps(found, allow_nan=False)


def test_a_job_of_no_work_finishes_at_once() -> None:
    """P16: start = finish = first moment placed; the slowdown has a floor."""
    scenario = compiled()
    found = metrics(first_fit(scenario, world(scenario, [(0, 1, 50), (10, 1, 0)])))
    assert (found["n_finished"], found["jct_mean_s"]) == (2, (50 + 40) / 2)
    assert found["bounded_slowdown_mean"] == (1.0 + 4.0) / 2
    assert found["finish_time_fairness_mean"] == pytest.approx(50 / (50 * (90 / 50)))


def test_utilisation_of_available_and_of_nominal() -> None:
    """P22: 2 nodes x 8 GPUs, horizon 100 s, one node down from 50 to 100, all GPUs that are up busy."""
    scenario = compiled(nodes=2, gpus=8, horizon_s=100.0)
    jobs = [(0.0, 8, 1000.0), (0.0, 8, 1000.0)]
    found = metrics(first_fit(scenario, world(scenario, jobs, [(Effect.NODE_DOWN, 1, 50.0, 50.0)])))
    assert found["held_gpu_s"] == 1200.0
    assert (found["utilisation_available"], found["utilisation_nominal"]) == (1.0, 0.75)
    assert (found["n_evicted"], found["lost_gpu_s"], found["goodput_available"]) == (1, 400.0, 800 / 1200)


def test_no_available_capacity_is_none_and_idle_is_zero() -> None:
    scenario = compiled(horizon_s=100.0)
    down = metrics(first_fit(scenario, world(scenario, [(0, 1, 10)], [(Effect.NODE_DOWN, 0, 0.0, np.inf)])))
    assert down["utilisation_available"] is None
    assert down["utilisation_nominal"] == 0.0
    idle = metrics(first_fit(scenario, world(scenario, [(50, 1, 100)])))
    assert idle["utilisation_available"] == 0.5


def test_only_jobs_submitted_in_the_measured_window_count() -> None:
    scenario = compiled(measure={"from_s": 100.0, "to_s": 200.0})
    found = metrics(first_fit(scenario, world(scenario, [(0, 1, 120), (100, 1, 10), (150, 1, 10), (200, 1, 10)])))
    assert (found["n_jobs"], found["elapsed_s"]) == (2, 100.0)
    assert found["jct_mean_s"] == (30 + 10) / 2  # 100-130 (waits for 120), 150-160
    assert found["held_gpu_s"] == 40.0
    assert MeasureConfig().from_s == 0.0


def test_jobs_present_before_the_start_count() -> None:
    scenario = compiled()
    found = metrics(first_fit(scenario, world(scenario, [(-100, 1, 10)])))
    assert (found["n_jobs"], found["jct_mean_s"], found["makespan_s"]) == (1, 110.0, 110.0)


def test_a_rejected_job_is_counted_and_moves_no_other_metric() -> None:
    scenario = compiled(gpus=4)
    jobs = [(0.0, 2, 100.0), (5.0, 4, 50.0)]
    alone = metrics(first_fit(scenario, world(scenario, jobs)))
    rejected = world(scenario, [*jobs, (10.0, 16, 10.0)], rejected=[0, 0, 1])
    found = metrics(first_fit(scenario, rejected))
    assert (found["n_jobs"], found["n_rejected"]) == (3, 1)
    assert {k: v for k, v in found.items() if k not in ("n_jobs", "n_rejected")} == {
        k: v for k, v in alone.items() if k not in ("n_jobs", "n_rejected")
    }


def test_deadlines() -> None:
    scenario = compiled()
    jobs = [(0, 1, 100), (0, 1, 100), (0, 1, 5000), (0, 1, 5), (0, 1, 5)]
    episode = world(scenario, jobs, deadline_s=[100.0, 150.0, np.inf, 900.0, 1001.0])
    found = metrics(first_fit(scenario, episode))  # on time; 50 s late; none; still queued at 1000; not yet due
    assert (found["n_deadline_misses"], found["deadline_miss_share"]) == (2, 2 / 3)


def test_energy_carbon_and_a_negative_price() -> None:
    """P28: 8 GPUs x 700 W x 10 h, PUE 1.2, 400 g/kWh; 67.2 kWh at -20 USD/MWh."""
    site = {"name": "site", "pue": 1.2, "carbon_g_per_kwh": 400.0, "price_usd_per_mwh": -20.0}
    scenario = compiled(gpus=8, horizon_s=36000.0, classes={"script": {"kind": "fixed", "gpu_counts": [8], "power_w": 700.0}})
    cluster = scenario.scenario.cluster.model_dump() | {"sites": [site]}
    scenario = compiled(
        horizon_s=36000.0, cluster=cluster, classes={"script": {"kind": "fixed", "gpu_counts": [8], "power_w": 700.0}}
    )
    found = metrics(first_fit(scenario, world(scenario, [(0, 8, 36000)])))
    assert found["energy_kwh"] == pytest.approx(56 * 1.2, rel=1e-12)
    assert found["carbon_kg"] == pytest.approx(26.88, rel=1e-12)
    assert found["cost_usd"] == pytest.approx(-20.0 * 0.0672, rel=1e-12)
    assert (found["renewable_share"], found["curtailed_kwh"]) == (0.0, 0.0)


def test_time_in_system_is_what_the_ledger_integrates() -> None:
    scenario = compiled(nodes=2, gpus=2)
    rng = np.random.default_rng(0)
    jobs = [(float(s), int(g), float(w)) for s, g, w in zip(rng.uniform(0, 900, 40), rng.choice([1, 2], 40), rng.uniform(0, 90, 40))]
    simulator = first_fit(scenario, world(scenario, jobs))
    found = metrics(simulator)
    assert found["jct_lower_bound_mean_s"] * 40 == pytest.approx(simulator.state.ledger[0, 1, 1], rel=1e-12)
    assert found["objective"] == pytest.approx(found["jct_lower_bound_mean_s"] * 40 / 3600, rel=1e-12)


def test_contention_counts_the_job_itself_and_every_overlap() -> None:
    submit, left = np.array([0.0, 50.0, 200.0, 300.0]), np.array([100.0, 150.0, 200.0, 400.0])
    assert mean_contention(submit, left).tolist() == [1.5, 1.5, 1.0, 1.0]
    assert mean_contention(np.zeros(0), np.zeros(0)).size == 0


def test_finish_time_fairness_of_two_jobs_that_share_in_turn() -> None:
    """Both present at 0 on one GPU: the first meets (100 + 200) job seconds over 100 s, the second 3/2 jobs over 200 s."""
    scenario = compiled()
    found = metrics(first_fit(scenario, world(scenario, [(0, 1, 100), (0, 1, 100)])))
    assert found["finish_time_fairness_mean"] == pytest.approx((100 / 200 + 200 / 150) / 2)
    assert found["unfair_share"] == 0.5


def test_metrics_of_a_simulation_in_a_batch_are_those_of_it_alone() -> None:
    scenario = compiled()
    episode = world(scenario, [(0, 1, 100), (10, 1, 20)])
    pair = Simulator(scenario, 2)
    pair.reset(world(scenario, [(0, 1, 1)]), 0)
    pair.reset(replace(episode), 1)
    alone = Simulator(scenario)
    alone.reset(episode)
    assert metrics(pair, 1) == metrics(alone)

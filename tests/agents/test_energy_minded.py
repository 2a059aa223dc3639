"""best_throughput, least_energy and carbon_aware on tiny worlds with answers by hand."""

from typing import Any

import numpy as np
import pytest

from hetenv.cluster import ClusterConfig, PoolConfig
from hetenv.configurations import Configurations
from hetenv.events.stream import Effect, merge, rows
from hetenv.scenario import Compiled, EventClockConfig, make_world
from hetenv.workload.requests import Elasticity, by_submit, requests
from tests.random_worlds import assemble, config_row, tabulate

from .episodes import Episode, play

G_PER_KWH = 1e-3 / 3.6e6


def scenario(configurations: Configurations, idle_w: float = 0.0, gpus: int = 2, **rules: Any) -> Compiled:
    """One node whose GPUs draw idle_w each when nobody holds them."""
    pool = PoolConfig(name="a", accelerator="A100-SXM-80", nodes=1, gpus_per_node=gpus, idle_w=idle_w, node_overhead_w=0.0)
    return assemble(ClusterConfig(pools=(pool,)), configurations=configurations, horizon_s=1e5, **rules)


def episode(made: Compiled, policy: str, jobs: list[dict[str, float]], *events: np.ndarray) -> Episode:
    """Jobs of 1 or 2 GPUs, given as the REQUEST columns that differ from the defaults."""
    table = requests(len(jobs))
    table["max_gpus"], table["elasticity"] = 2, Elasticity.MOLDABLE
    for row, job in zip(table, jobs):
        for name, value in job.items():
            row[name] = value
        row["believed_work"] = row["believed_s"] = row["work"]
    return play(made, make_world(made, by_submit(table), merge({str(k): event for k, event in enumerate(events)})), policy)


def started(found: Episode) -> list[tuple[float, int, int]]:
    """(time, job, CONFIG row) of each order."""
    return [(at_s, job, config) for at_s, _, job, config in found.orders]


@pytest.mark.parametrize(
    ("double_w", "idle_w", "config"),
    [
        (600.0, 0.0, 0),  # 300 J a unit of work on one GPU, 360 on two
        (540.0, 0.0, 1),  # 324 J: within a tenth, so the faster way counts
        (583.0, 0.0, 0),  # 350 J
        (583.0, 200.0, 1),  # above idle power 100 and 110 J
    ],
)
def test_least_energy_counts_what_a_job_adds(double_w: float, idle_w: float, config: int) -> None:
    ways = tabulate((0.0, 0.0, [config_row(0, 1, power_w=300.0), config_row(0, 2, power_w=double_w, compute_s=0.6)]))
    assert started(episode(scenario(ways, idle_w), "least_energy", [{"work": 100.0}])) == [(0.0, 0, config)]


def test_least_energy_starts_what_fits_in_order_of_submit() -> None:
    ways = tabulate((0.0, 0.0, [config_row(0, 1, power_w=100.0), config_row(0, 2, power_w=900.0)]))
    jobs = [{"work": 50.0}, {"work": 70.0, "min_gpus": 2}, {"work": 10.0}, {"work": 10.0}]
    found = episode(scenario(ways), "least_energy", jobs)
    assert started(found) == [(0.0, 0, 0), (0.0, 2, 0), (10.0, 3, 0), (50.0, 1, 1)]  # the pair has to wait for two GPUs


def test_least_energy_takes_nothing_that_is_far_too_slow() -> None:
    """A thrifty single GPU at a third of the speed is taken while nothing runs, but not beside the pair that is free."""
    ways = tabulate((0.0, 0.0, [config_row(0, 1, power_w=10.0, compute_s=3.0), config_row(0, 2, power_w=900.0)]))
    jobs = [{"work": 10.0}, {"work": 10.0, "min_gpus": 1}]
    found = episode(scenario(ways, gpus=3), "least_energy", jobs)
    assert started(found) == [(0.0, 0, 0), (0.0, 1, 1)]


def test_best_throughput_gives_gpus_to_the_kind_that_suits_them() -> None:
    ways = tabulate((0.0, 0.0, [config_row(0, 1, efficiency=0.3)]), (0.0, 0.0, [config_row(0, 1, efficiency=0.9)]))
    jobs = [{"work": 10.0}, {"work": 20.0, "job_class": 1}, {"work": 30.0, "job_class": 1}, {"work": 5.0}]
    found = episode(scenario(ways, gpus=1), "best_throughput", jobs)
    assert started(found) == [(0.0, 1, 1), (20.0, 2, 1), (50.0, 0, 0), (60.0, 3, 0)]


ONE_WAY = tabulate((0.0, 0.0, [config_row(0, 1, power_w=1000.0)]))


def carbon(at_s: float, g_per_kwh: float) -> np.ndarray:
    return rows(Effect.SITE_CARBON, [at_s], 0, g_per_kwh * G_PER_KWH)


@pytest.mark.parametrize(
    ("job", "start_s"),
    [
        ({}, 9000.0),  # waits for the clean hours
        ({"weight": 6.0}, 7000.0),  # a sixth of six hours is its patience
        ({"deadline_s": 3549.0}, 3400.0),  # no more than half its time to spare
        ({"deadline_s": 6550.0}, 6400.0),
    ],
)
def test_carbon_aware_waits_for_clean_power_while_it_may(job: dict[str, float], start_s: float) -> None:
    """100 g/kWh, from 3000 s on 500, from 9000 s on 100 again; decisions at least every 600 s."""
    made = scenario(ONE_WAY, clock=EventClockConfig(max_interval_s=600.0))
    signal = [carbon(0.0, 100.0), carbon(3000.0, 500.0), carbon(9000.0, 100.0)]
    found = episode(made, "carbon_aware", [{"work": 100.0}, {"work": 100.0, "submit_s": 3400.0, **job}], *signal)
    assert found.starts_s().tolist() == [0.0, start_s]


def test_carbon_aware_counts_surplus_as_clean() -> None:
    """The grid stays as it is; 5 kW of renewable power come at 3000 s."""
    made = scenario(ONE_WAY)
    power = [rows(Effect.SITE_RENEWABLE, [at_s], 0, watts) for at_s, watts in ((0.0, 5000.0), (600.0, 0.0), (3000.0, 5000.0))]
    found = episode(made, "carbon_aware", [{"work": 100.0}, {"work": 100.0, "submit_s": 1000.0}], *power)
    assert found.starts_s().tolist() == [0.0, 3000.0]


def test_carbon_aware_waits_for_nothing_that_has_not_been_seen() -> None:
    found = episode(scenario(ONE_WAY), "carbon_aware", [{"work": 100.0}, {"work": 100.0, "submit_s": 1000.0}])
    assert found.starts_s().tolist() == [0.0, 1000.0]


def test_carbon_aware_starves_nobody() -> None:
    """A pair of GPUs is never free at once while small jobs keep coming; at 25,200 s its six hours are over, and they wait."""
    ways = tabulate((0.0, 0.0, [config_row(0, 1), config_row(0, 2)]))
    small = [{"work": 7200.0, "submit_s": 3600.0 * k, "max_gpus": 1} for k in range(20)]
    found = episode(scenario(ways), "carbon_aware", [*small, {"work": 60.0, "submit_s": 10.0, "min_gpus": 2}])
    assert found.starts_s()[1] == 28_800.0  # when the job that began at 21,600 s has ended

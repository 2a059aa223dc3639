"""Failures: rates, spread, clocks, repairs."""

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from hetenv.cluster import Cluster, ClusterConfig, PoolConfig, build
from hetenv.errors import ScenarioError
from hetenv.events import Failures
from hetenv.events.stream import Effect, EventClock, EventContext, source_rng

HOUR_S = 3600.0
NO_REQUESTS: NDArray[np.void] = np.zeros(0, [("submit_s", "f8")])


def large() -> Cluster:
    return build(
        ClusterConfig(pools=(PoolConfig(name="pool", accelerator="A100-SXM-80", nodes=2000, inter_link="IB-HDR"),))
    )


def draw(config: Failures, cluster: Cluster, horizon_h: float = 1000.0, seed: int = 0) -> NDArray[np.void]:
    return config.draw(source_rng(seed, 0, config.source_name), EventContext(cluster, NO_REQUESTS, horizon_h * HOUR_S))


def test_equal_nodes_fail_at_one_over_mtbf() -> None:
    found = draw(Failures(mtbf_h=100, spread_sigma=0, repair_median_h=1e-6, clock="wall"), large())
    expected = 2000 * 1000 / 100
    assert abs(found.size - expected) < 4 * np.sqrt(expected)
    gaps_h = np.diff(np.sort(found["at"])) / HOUR_S
    assert gaps_h.std() / gaps_h.mean() == pytest.approx(1.0, abs=0.05)  # exponential


def test_repairs_stop_the_clock_of_a_wall_node() -> None:
    config = Failures(mtbf_h=10, spread_sigma=0, repair_median_h=10, repair_sigma=0)
    found = draw(config, large())
    assert found.size == pytest.approx(2000 * 1000 / 20, rel=0.02)  # a cycle is 10 h up, 10 h down
    by_node = found[np.lexsort((found["at"], found["target"]))]
    same = by_node["target"][1:] == by_node["target"][:-1]
    assert np.all(np.diff(by_node["at"])[same] > by_node["value"][:-1][same])


def test_repair_times_are_log_normal() -> None:
    logs = np.log(draw(Failures(mtbf_h=50, repair_median_h=3, repair_sigma=0.7), large())["value"] / HOUR_S)
    assert logs.mean() == pytest.approx(np.log(3), abs=0.02)
    assert logs.std() == pytest.approx(0.7, abs=0.02)


def test_hazards_are_unequal_by_spread_sigma() -> None:
    config = Failures(mtbf_h=5, spread_sigma=0.8, clock="busy")
    counts = np.bincount(draw(config, large())["target"], minlength=2000)
    logs = np.log(np.maximum(counts, 1))
    assert np.median(counts) == pytest.approx(200, rel=0.08)
    assert logs.std() == pytest.approx(0.8, abs=0.05)


def test_busy_clock_writes_thresholds_of_every_node_within_the_horizon() -> None:
    found = draw(Failures(mtbf_h=50, spread_sigma=0, clock="busy"), large())
    assert np.all(found["clock"] == EventClock.NODE_BUSY) and np.all(found["effect"] == Effect.NODE_DOWN)
    assert found["at"].min() > 0 and found["at"].max() <= 1000 * HOUR_S
    assert found.size == pytest.approx(2000 * 20, rel=0.03)


def test_only_named_pools_fail(cluster: Cluster) -> None:
    found = draw(Failures(mtbf_h=1, pools=("old",)), cluster)
    assert set(found["target"]) == set(range(3, 8))


def test_an_unknown_pool_is_named(cluster: Cluster) -> None:
    with pytest.raises(ScenarioError, match=r"events\.failures\.pools: unknown pool 'odl'; did you mean 'old'"):
        draw(Failures(mtbf_h=1, pools=("odl",)), cluster)


def test_no_failures_within_a_short_horizon(cluster: Cluster) -> None:
    assert draw(Failures(mtbf_h=1e6), cluster, horizon_h=0.01).size == 0


@pytest.mark.parametrize("field", [{"mtbf_h": 0}, {"mtbf_h": float("inf")}, {"repair_median_h": -1}, {"clock": "cpu"}])
def test_values_out_of_range_are_refused(field: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Failures.model_validate({"mtbf_h": 10, **field})

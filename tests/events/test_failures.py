"""Failures: rates, spread, clocks, repairs."""

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from hetenv.cluster import Cluster, ClusterConfig, PoolConfig, build
from hetenv.errors import ScenarioError
from hetenv.events import Failures
from hetenv.events.failures import STALL_SPEED
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


def test_hidden_failures_hold_their_node_until_they_are_seen() -> None:
    detection = {"crash_s": 60, "hang_share": 0.3, "hang_s": 600, "slow_share": 0.2, "slow_s": 1800, "slow_factor": 0.5}
    config = Failures.model_validate({"mtbf_h": 100, "spread_sigma": 0, "detection": detection})
    found = draw(config, large())
    slow = found[(found["effect"] == Effect.NODE_SPEED) & (found["value"] == 0.5)]
    stalled = found[(found["effect"] == Effect.NODE_SPEED) & (found["value"] == STALL_SPEED)]
    down = found[found["effect"] == Effect.NODE_DOWN]
    n = slow.size + stalled.size
    assert slow.size / n == pytest.approx(0.2, abs=0.01) and down.size == pytest.approx(n, abs=30)
    begins, seen = found[(found["effect"] == Effect.NODE_SPEED) & (found["value"] < 1)], down
    order_a, order_b = np.lexsort((begins["at"], begins["target"])), np.lexsort((seen["at"], seen["target"]))
    keys = {(t, round(a + d, 3)) for t, a in zip(begins["target"][order_a], begins["at"][order_a]) for d in (60, 600, 1800)}
    assert all((t, round(a, 3)) in keys for t, a in zip(seen["target"][order_b], seen["at"][order_b]))
    back = found[(found["effect"] == Effect.NODE_SPEED) & (found["value"] == 1)]
    assert {*zip(back["target"], back["at"])} == {*zip(down["target"], down["at"])}


def test_detection_moves_no_failure() -> None:
    plain = draw(Failures(mtbf_h=1000, spread_sigma=0, repair="deterministic"), large())
    seen_at_once = draw(
        Failures.model_validate({"mtbf_h": 1000, "spread_sigma": 0, "repair": "deterministic", "detection": {"crash_s": 0}}),
        large(),
    )
    assert plain.tobytes() == seen_at_once.tobytes()


@pytest.mark.parametrize(("age_h", "expected"), [(0.0, 1000**0.5), (1000.0, 2000**0.5 - 1000**0.5)])
def test_infant_mortality_falls_with_age(age_h: float, expected: float) -> None:
    config = Failures(mtbf_h=1, spread_sigma=0, shape=0.5, age_h=age_h, repair_median_h=1e-9)
    found = draw(config, large())
    assert found.size / 2000 == pytest.approx(expected, rel=0.03)
    early = (found["at"] < 100 * HOUR_S).mean()
    assert early == pytest.approx(((age_h + 100) ** 0.5 - age_h**0.5) / expected, abs=0.02)


@pytest.mark.parametrize("kind", ["lognormal", "exponential", "deterministic"])
def test_repairs_have_the_stated_median(kind: str) -> None:
    config = Failures.model_validate({"mtbf_h": 50, "spread_sigma": 0, "repair": kind, "repair_median_h": 3})
    repair_h = draw(config, large())["value"] / HOUR_S
    assert np.median(repair_h) == pytest.approx(3, rel=0.03)
    cv = {"lognormal": np.sqrt(np.expm1(0.64)), "exponential": 1.0, "deterministic": 0.0}[kind]
    assert repair_h.std() / repair_h.mean() == pytest.approx(cv, rel=0.05, abs=1e-9)


def test_a_domain_fails_and_returns_as_one(cluster: Cluster) -> None:
    config = Failures.model_validate({"domains": [{"label": "rack", "nodes": 2, "mtbf_h": 5}]})
    found = draw(config, cluster)
    racks = {frozenset(found["target"][found["at"] == at]) for at in np.unique(found["at"])}
    # pools of 3, 5 and 2 nodes: racks do not reach over a pool's end
    assert racks == {frozenset(r) for r in ({0, 1}, {2}, {3, 4}, {5, 6}, {7}, {8, 9})}
    for at in np.unique(found["at"]):
        assert np.unique(found["value"][found["at"] == at]).size == 1
    n_racks, cycle_h = 6, 5 + np.exp(0.32)
    assert np.unique(found["at"]).size == pytest.approx(n_racks * 1000 / cycle_h, rel=0.12)


def test_pools_and_sites_are_domains(cluster: Cluster) -> None:
    for of, members in (("pool", {0, 1, 2}), ("site", {3, 4, 5, 6, 7})):
        pools = None if of == "pool" else ("old", "new")
        config = Failures.model_validate({"domains": [{"label": "x", "of": of, "mtbf_h": 50}], "pools": pools})
        found = draw(config, cluster)
        assert frozenset(members) in {frozenset(found["target"][found["at"] == at]) for at in np.unique(found["at"])}


def test_a_domain_more_moves_no_other_row(cluster: Cluster) -> None:
    rack, power = {"label": "rack", "nodes": 2, "mtbf_h": 9}, {"label": "power", "of": "site", "mtbf_h": 30}
    alone = draw(Failures.model_validate({"mtbf_h": 20, "domains": [rack]}), cluster)
    more = draw(Failures.model_validate({"mtbf_h": 20, "domains": [rack, power]}), cluster)
    assert more[: alone.size].tobytes() == alone.tobytes() and more.size > alone.size


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"mtbf_h": 10, "clock": "busy", "detection": {}},
        {"domains": [{"label": "x", "mtbf_h": 1}]},
        {"domains": [{"label": "x", "of": "site", "nodes": 2, "mtbf_h": 1}]},
        {"mtbf_h": 10, "detection": {"hang_share": 0.7, "slow_share": 0.7}},
        {"mtbf_h": 10, "repair": "weekly"},
    ],
)
def test_fields_that_do_not_fit_together_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Failures.model_validate(fields)

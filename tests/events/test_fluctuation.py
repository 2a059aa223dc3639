"""Speeds and links that vary: spread, slow spells, heat, congestion; and how their factors multiply."""

from itertools import product
from math import factorial

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from hetenv.cluster import Cluster, ClusterConfig, PoolConfig, build
from hetenv.errors import ScenarioError
from hetenv.events.congestion import Congestion, HashCollisions
from hetenv.events.factors import compose
from hetenv.events.slow_nodes import SlowNodes
from hetenv.events.speed_spread import SpeedSpread
from hetenv.events.stream import Effect, EventContext, EventSource, merge, rows, source_rng
from hetenv.events.thermal import SiteHeat, Thermal
from tests.bench.worlds import compiled

HOUR_S = 3600.0


@pytest.fixture(scope="module")
def large() -> Cluster:
    return build(ClusterConfig(pools=(PoolConfig(name="p", accelerator="A100-SXM-80", nodes=4000),)))


def draw(source: EventSource, cluster: Cluster, horizon_h: float = 100, seed: int = 0) -> NDArray[np.void]:
    context = EventContext(cluster, np.zeros(0), horizon_h * HOUR_S)
    return source.draw(source_rng(seed, 0, source.source_name), context)


def test_a_node_is_as_fast_as_its_slowest_gpu(large: Cluster) -> None:
    found = draw(SpeedSpread(gpu_sigma=0.02), large)
    assert set(found["at"]) == {0.0} and list(found["target"]) == list(range(4000))
    # expected minimum of 8 standard normals: -1.4236
    assert found["value"].mean() == pytest.approx(1 - 0.02 * 1.4236, abs=0.001)
    slow = draw(SpeedSpread(gpu_sigma=0, slow_share=0.01, slow_factor=0.5), large)
    assert set(slow["value"]) == {1.0, 0.5}
    assert (slow["value"] == 0.5).mean() == pytest.approx(1 - 0.99**8, abs=0.015)


def test_slow_spells_have_the_stated_share_and_factors(large: Cluster) -> None:
    config = SlowNodes(apart_mean_h=9, lasting_mean_h=1, slowest=0.4, fastest=0.6)
    found = draw(config, large)
    begins, ends = found[found["value"] < 1], found[found["value"] == 1]
    assert begins["value"].mean() == pytest.approx(0.5, abs=0.005) and begins["value"].min() >= 0.4
    slow_s = np.sum(np.minimum(ends["at"], 1e9)) - np.sum(begins["at"]) + 100 * HOUR_S * (begins.size - ends.size)
    assert slow_s / (4000 * 100 * HOUR_S) == pytest.approx(0.1, abs=0.005)


def test_co_tenants_slow_a_group_at_once(large: Cluster) -> None:
    found = draw(SlowNodes(apart_mean_h=50, lasting_mean_h=1, group_nodes=4), large)
    later = found[(found["at"] > 0) & (found["value"] < 1)]
    assert later.size / np.unique(later["at"]).size == pytest.approx(4, rel=0.1)


def test_heat_throttles_in_the_afternoon(cluster: Cluster) -> None:
    heat = {"mean_c": 30, "swing_c": 8, "noise_c": 0, "throttle_from_c": 34, "loss_per_c": 0.05, "floor": 0.85}
    found = draw(Thermal.model_validate({"sites": {"south": heat}}), cluster, 24)
    stated = found[found["effect"] == Effect.SITE_TEMPERATURE]
    assert set(stated["target"]) == {1} and stated.size == 96 and stated["value"].max() == pytest.approx(38, abs=0.01)
    found = found[found["effect"] == Effect.NODE_SPEED]
    assert set(found["target"]) == {3, 4, 5, 6, 7}
    at_h = found["at"] / HOUR_S
    # 30 + 8 cos = 34 at 4 h from 15 h: throttled from 11 to 19 h, 0.85 from 37 deg C on
    assert 10.9 <= at_h.min() <= 11.6 and 18.4 <= at_h.max() <= 19.1
    assert found["value"].min() == 0.85 and found["value"][np.argmax(found["at"])] == 1.0
    cool = draw(Thermal.model_validate({"sites": {"south": {**heat, "mean_c": 10}}, "states_temperature": False}), cluster, 24)
    assert cool.size == 0


def test_heat_by_hand() -> None:
    heat = SiteHeat(mean_c=20, swing_c=10, noise_c=0, throttle_from_c=25, loss_per_c=0.1, floor=0.3)
    assert heat.temperature_c(np.zeros(24), HOUR_S, 0.0)[[14, 2]] == pytest.approx([29.914, 10.086], abs=1e-3)
    assert heat.speed(np.array([20.0, 26.0, 31.0, 40.0])).tolist() == [1.0, 0.9, 0.4, 0.3]


def test_a_heat_wave_adds_to_the_day(cluster: Cluster) -> None:
    wave = {"from_h": 24, "lasting_h": 48, "hotter_c": 9}
    plain, hot = (
        draw(Thermal.model_validate({"sites": {"east": {"mean_c": 20, "waves": waves}}, "step_s": 3600}), cluster, 96)
        for waves in ([], [wave])
    )
    plain, hot = (found["value"][found["effect"] == Effect.SITE_TEMPERATURE] for found in (plain, hot))
    assert hot - plain == pytest.approx(np.repeat([0.0, 9.0, 0.0], [24, 48, 24]))


def exact_worst_load(flows: int, uplinks: int) -> tuple[float, float]:
    """Probability of no collision and expected worst load, over all ways to hash."""
    worst = [max(np.bincount(ways)) for ways in product(range(uplinks), repeat=flows)]
    return float(np.mean(np.array(worst) == 1)), float(np.mean(worst))


def test_four_flows_on_four_uplinks_collide_as_published() -> None:
    """vClos (Computer Networks 2025): no collision 9.4 %, expected worst load 2.13."""
    clear, mean = exact_worst_load(4, 4)
    assert clear == factorial(4) / 4**4 == pytest.approx(0.094, abs=5e-4) and mean == pytest.approx(2.13, abs=5e-3)
    loads = HashCollisions(flows=4, uplinks=4).worst_loads(np.random.default_rng(0), 200_000)
    assert (loads == 1).mean() == pytest.approx(clear, abs=0.003) and loads.mean() == pytest.approx(mean, abs=0.01)


def test_a_collision_leaves_the_worst_flow_its_share_of_the_uplink(large: Cluster) -> None:
    found = draw(Congestion.model_validate({"process": {"kind": "hash"}}), large, 10_000)
    assert set(found["effect"]) == {Effect.LINK_BANDWIDTH} and set(found["target"]) == {1} and found["at"].min() == 0
    assert set(np.round(1 / found["value"], 9)) == {1.0, 2.0, 3.0, 4.0}
    assert found.size == pytest.approx(10_000, rel=0.05)
    assert (1 / found["value"]).mean() == pytest.approx(2.13, abs=0.03)
    ample = draw(Congestion.model_validate({"process": {"kind": "hash", "flows": 1, "uplinks": 4}}), large, 10)
    assert set(ample["value"]) == {0.25}  # one flow can use one uplink of four


def test_busy_spells_return_to_full_bandwidth(cluster: Cluster) -> None:
    process = {"kind": "spells", "apart_mean_h": 3, "lasting_mean_h": 1, "lowest": 0.2, "highest": 0.4}
    found = draw(Congestion.model_validate({"process": process, "level": "intra", "pools": ["old"]}), cluster, 5000)
    assert set(found["target"]) == {2}
    found = np.sort(found, order="at")
    assert set(found["value"][1::2] == 1.0) | set(found["value"][::2] == 1.0) == {True, False}
    busy_s = np.diff(found["at"])[found["value"][:-1] < 1].sum()
    assert busy_s / (5000 * HOUR_S) == pytest.approx(0.25, abs=0.03)


def test_factors_of_several_sources_multiply() -> None:
    spread = rows(Effect.NODE_SPEED, 0.0, [0, 1], [0.9, 0.8])
    slow = rows(Effect.NODE_SPEED, [10.0, 20.0], [0, 0], [0.5, 1.0])
    heat = rows(Effect.NODE_SPEED, [15.0, 20.0], [0, 0], [0.7, 1.0])
    down = rows(Effect.NODE_DOWN, 5.0, 0, 60.0)
    before = {name: part.tobytes() for name, part in (("spread", spread), ("slow", slow), ("heat", heat))}
    together = compose({"spread": spread, "slow": slow, "down": down, "heat": heat})
    assert list(together["spread"]["value"]) == [0.9, 0.8]
    assert list(together["slow"]["value"]) == pytest.approx([0.45, 0.63])  # at 20 s the heat's row comes after
    assert list(together["heat"]["value"]) == pytest.approx([0.315, 0.9])
    merged = merge(together)
    assert merged["value"][-1] == 0.9  # what holds in the end is the spread alone, to the bit
    assert together["down"] is down
    assert {"spread": spread.tobytes(), "slow": slow.tobytes(), "heat": heat.tobytes()} == before


def test_of_several_caps_the_lowest_counts() -> None:
    calls = rows(Effect.SITE_POWER_CAP, [10.0, 30.0], 0, [500.0, np.inf])
    calendar = rows(Effect.SITE_POWER_CAP, [20.0, 40.0], 0, [700.0, np.inf])
    together = compose({"calls": calls, "calendar": calendar})
    assert list(together["calls"]["value"]) == [500.0, 700.0] and list(together["calendar"]["value"]) == [500.0, np.inf]


def test_a_source_alone_keeps_its_rows() -> None:
    slow = rows(Effect.NODE_SPEED, [10.0, 20.0], [0, 0], [0.5, 1.0])
    links = rows(Effect.LINK_BANDWIDTH, [10.0, 20.0], [0, 0], [0.5, 1.0])
    together = compose({"slow": slow, "links": links})
    assert together["slow"] is slow and together["links"] is links
    two = compose({"slow": slow, "other": rows(Effect.NODE_SPEED, 0.0, 1, 0.3)})
    assert two["slow"].tobytes() == slow.tobytes()


def test_a_world_holds_the_product() -> None:
    events = [
        {"kind": "speed_spread", "gpu_sigma": 0, "slow_share": 1.0, "slow_factor": 0.5},
        {"kind": "slow_nodes", "apart_mean_h": 0.05, "lasting_mean_h": 0.05, "slowest": 0.4, "fastest": 0.4},
    ]
    world = compiled(nodes=2, horizon_s=3600.0, events=events).sample(0)
    speeds = world.events["value"][world.events["effect"] == Effect.NODE_SPEED]
    assert set(np.round(speeds, 12)) == {0.5, 0.2}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (SlowNodes, {"apart_mean_h": 1, "lasting_mean_h": 1, "slowest": 0.9, "fastest": 0.5}),
        (Congestion, {"process": {"kind": "spells", "apart_mean_h": 1, "lasting_mean_h": 1, "lowest": 1, "highest": 0.1}}),
        (Congestion, {"process": {"kind": "hash", "flows": 0}}),
        (SpeedSpread, {"slow_factor": 0}),
        (Thermal, {"sites": {}}),
    ],
)
def test_values_out_of_range_are_refused(kind: type[Thermal], fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        kind.model_validate(fields)


def test_unknown_names_are_named(cluster: Cluster) -> None:
    with pytest.raises(ScenarioError, match=r"events\.thermal\.sites: unknown site 'soth'; did you mean 'south'"):
        draw(Thermal.model_validate({"sites": {"soth": {"mean_c": 1}}}), cluster)
    with pytest.raises(ScenarioError, match=r"events\.congestion\.pools: unknown pool 'odl'"):
        draw(Congestion.model_validate({"process": {"kind": "hash"}, "pools": ["odl"]}), cluster)

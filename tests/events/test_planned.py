"""Capacity by plan: loans by calendar and at random, maintenance in batches."""

import numpy as np
import pytest
from pydantic import ValidationError

from hetenv.cluster import Cluster, ClusterConfig, PoolConfig, SiteConfig, build
from hetenv.events.job_ranges import JobRanges
from hetenv.events.lending import Lending
from hetenv.events.maintenance import Maintenance
from hetenv.events.power_caps import PowerCaps
from hetenv.events.rates import absences
from hetenv.events.spells import away
from hetenv.events.stream import Effect, EventContext, source_rng
from hetenv.workload.requests import requests as new_requests

HOUR_S = 3600.0


def draw(config: Lending | Maintenance, cluster: Cluster, horizon_h: float, seed: int = 0) -> list[tuple[int, float, float]]:
    """(node, hour, hours) of each row, by time."""
    found = config.draw(source_rng(seed, 0, config.source_name), EventContext(cluster, np.zeros(0), horizon_h * HOUR_S))
    found = found[found["effect"] == Effect.NODE_DOWN]
    found = np.sort(found, order=["at", "target"])
    return [(int(r["target"]), round(r["at"] / HOUR_S, 9), round(r["value"] / HOUR_S, 9)) for r in found]


def lending(**fields: object) -> Lending:
    return Lending.model_validate({"pools": ["old"], "notice_s": 0, **fields})


def test_a_calendar_lends_the_last_nodes_of_the_pool(cluster: Cluster) -> None:
    window = {"from_hour": 9, "to_hour": 17, "nodes": 2}
    assert draw(lending(calendar=[window]), cluster, 48) == [(6, 9, 8), (7, 9, 8), (6, 33, 8), (7, 33, 8)]


def test_a_window_over_midnight_is_open_at_the_start(cluster: Cluster) -> None:
    window = {"from_hour": 20, "to_hour": 6, "nodes": 1}
    assert draw(lending(calendar=[window]), cluster, 48) == [(7, 0, 6), (7, 20, 10), (7, 44, 10)]


def test_weekdays_and_the_start_shift_the_calendar(cluster: Cluster) -> None:
    window = {"from_hour": 9, "to_hour": 17, "nodes": 1, "weekdays": [0]}
    # time 0 is Saturday 12 h: Monday 9 h comes 45 h later
    config = lending(calendar=[window], week={"start_weekday": 5, "start_hour": 12})
    assert draw(config, cluster, 14 * 24) == [(7, 45, 8), (7, 45 + 168, 8)]


def test_a_window_of_the_whole_day(cluster: Cluster) -> None:
    window = {"from_hour": 0, "to_hour": 24, "nodes": 99, "weekdays": [1]}
    assert draw(lending(calendar=[window]), cluster, 72) == [(node, 24, 24) for node in range(3, 8)]


def test_random_loans_have_the_stated_share(cluster: Cluster) -> None:
    config = lending(random={"home_mean_h": 6, "lent_mean_h": 2})
    found = config.draw(source_rng(0, 0, "x"), EventContext(cluster, np.zeros(0), 20_000 * HOUR_S))
    _, from_s, to_s = absences(found, 20_000 * HOUR_S)
    assert (to_s - from_s).sum() / (5 * 20_000 * HOUR_S) == pytest.approx(0.25, abs=0.01)


def test_maintenance_rolls_over_the_nodes(cluster: Cluster) -> None:
    config = Maintenance(pools=("old",), first_h=10, lasting_h=2, gap_h=1, nodes_at_once=2)
    assert draw(config, cluster, 100) == [(3, 10, 2), (4, 10, 2), (5, 13, 2), (6, 13, 2), (7, 16, 2)]
    assert draw(config, cluster, 13) == [(3, 10, 2), (4, 10, 2)]


def test_maintenance_recurs_with_jitter(cluster: Cluster) -> None:
    config = Maintenance(pools=("spare",), first_h=0, every_h=24, lasting_h=1, nodes_at_once=2, jitter_h=5)
    begins = sorted({at for _, at, _ in draw(config, cluster, 24 * 50)})
    assert len(begins) == 50
    late = np.array(begins) - 24 * np.arange(50)
    assert late.min() >= 0 and late.max() < 5 and late.std() > 1


def test_maintenance_after_the_horizon_never_comes(cluster: Cluster) -> None:
    assert draw(Maintenance(first_h=200, every_h=1, lasting_h=1), cluster, 100) == []


def test_notices_come_ahead_but_not_while_the_node_is_away() -> None:
    nodes, from_s, to_s = np.array([4, 4, 5, 6]), np.array([100.0, 250.0, 0.0, 30.0]), np.array([200.0, 300.0, 9.0, np.inf])
    found = away(nodes, from_s, to_s, notice_s=60.0)
    said = found[found["effect"] == Effect.NODE_NOTICE]
    assert [tuple(r) for r in said[["target", "at", "value"]].tolist()] == [(4, 40, 60), (4, 200, 50), (6, 0, 30)]
    assert found[found["effect"] == Effect.NODE_DOWN].tobytes() == away(nodes, from_s, to_s).tobytes()


def test_maintenance_is_announced(cluster: Cluster) -> None:
    config = Maintenance(pools=("spare",), first_h=30, lasting_h=1, notice_h=24)
    found = config.draw(source_rng(0, 0, "x"), EventContext(cluster, np.zeros(0), 100 * HOUR_S))
    said = found[found["effect"] == Effect.NODE_NOTICE]
    assert list(said["at"] / HOUR_S) == [6, 7] and set(said["value"]) == {24 * HOUR_S}


def caps(cluster: Cluster, horizon_h: float, **cap: object) -> list[tuple[float, float]]:
    """(hour, W) of each row of a site."""
    config = PowerCaps.model_validate({"sites": {"south": cap}})
    found = config.draw(source_rng(0, 0, "x"), EventContext(cluster, np.zeros(0), horizon_h * HOUR_S))
    assert set(found["target"]) <= {1} and set(found["effect"]) <= {Effect.SITE_POWER_CAP}
    return [(r["at"] / HOUR_S, r["value"]) for r in found]


def test_the_lowest_cap_of_the_calendar_counts(cluster: Cluster) -> None:
    evening = {"from_hour": 17, "to_hour": 21, "cap_w": 1000}
    peak = {"from_hour": 18, "to_hour": 19, "cap_w": 400}
    found = caps(cluster, 24, calendar=[evening, peak])
    assert found == [(17, 1000), (18, 400), (19, 1000), (21, np.inf)]
    assert caps(cluster, 24, calendar=[evening], always_w=800) == [(0, 800)]


def test_a_site_returns_to_its_own_cap() -> None:
    site = SiteConfig(name="south", power_cap_w=900)
    own = build(ClusterConfig(sites=(SiteConfig(name="x"), site), pools=(PoolConfig(name="p", accelerator="L40S", nodes=1, site="x"),)))
    windows = [{"from_hour": 17, "to_hour": 21, "cap_w": 1000}, {"from_hour": 18, "to_hour": 19, "cap_w": 400}]
    assert caps(own, 24, calendar=windows) == [(18, 400), (19, 900)]


def test_calls_for_less_power_have_the_stated_share(cluster: Cluster) -> None:
    found = caps(cluster, 20_000, calls={"apart_mean_h": 9, "lasting_mean_h": 1, "cap_w": 300})
    hours = np.array([at for at, _ in found] + [20_000])
    called = sum(b - a for a, b, (_, cap) in zip(hours, hours[1:], found) if cap == 300)
    assert called / 20_000 == pytest.approx(0.1, abs=0.01)


def test_a_job_may_hold_less_for_a_while(cluster: Cluster) -> None:
    jobs = new_requests(3000)
    jobs["min_gpus"], jobs["max_gpus"] = 2, 16
    jobs["elasticity"] = np.arange(3000) % 3
    config = JobRanges(apart_mean_h=3, lasting_mean_h=1, gpus_share=0.3)
    found = config.draw(source_rng(0, 0, "x"), EventContext(cluster, jobs, 50 * HOUR_S))
    assert set(found["value"]) == {4, 16} and set(found["target"] % 3) == {1, 2}
    at_start = found[(found["at"] == 0)]
    assert at_start.size / 2000 == pytest.approx(0.25, abs=0.03)
    floor = JobRanges(apart_mean_h=3, lasting_mean_h=1, gpus_share=0)
    lowest = floor.draw(source_rng(0, 0, "x"), EventContext(cluster, jobs, 50 * HOUR_S))
    assert set(lowest["value"]) == {2, 16}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Lending, {"pools": ["old"]}),
        (Lending, {"pools": ["old"], "calendar": [{"from_hour": 1, "to_hour": 2, "nodes": 1, "weekdays": [7]}]}),
        (Lending, {"pools": ["old"], "calendar": [{"from_hour": 25, "to_hour": 2, "nodes": 1}]}),
        (Maintenance, {"first_h": 0, "lasting_h": 0}),
        (PowerCaps, {"sites": {"south": {}}}),
        (PowerCaps, {"sites": {"south": {"always_w": 0}}}),
        (Maintenance, {"first_h": 0, "lasting_h": 1, "nodes_at_once": 0}),
    ],
)
def test_plans_that_make_no_sense_are_refused(kind: type[Lending], fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        kind.model_validate(fields)

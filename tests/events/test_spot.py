"""Spot markets: availability, groups, bids."""

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from hetenv.cluster import Cluster, ClusterConfig, PoolConfig, build
from hetenv.errors import ScenarioError
from hetenv.events.rates import absences
from hetenv.events.spells import groups, off_spells
from hetenv.events.spot import Spot
from hetenv.events.stream import Effect, EventContext, source_rng

HOUR_S = 3600.0


@pytest.fixture(scope="module")
def pool() -> Cluster:
    return build(ClusterConfig(pools=(PoolConfig(name="p", accelerator="L40S", nodes=40),)))


def draw(market: dict[str, object], cluster: Cluster, horizon_h: float = 500, seed: int = 0, pool: str = "p") -> NDArray[np.void]:
    config = Spot.model_validate({"pools": [pool], "market": market})
    context = EventContext(cluster, np.zeros(0), horizon_h * HOUR_S)
    return config.draw(source_rng(seed, 0, config.source_name), context)


def at_times(found: NDArray[np.void]) -> list[int]:
    """Nodes that leave at each time after 0."""
    return list(np.unique(found["at"][found["at"] > 0], return_counts=True)[1])


def test_a_pool_without_groups_goes_as_one(pool: Cluster) -> None:
    found = draw({"kind": "capacity", "up_mean_h": 5, "down_mean_h": 5}, pool)
    assert set(at_times(found)) == {40} and set(found["effect"]) == {Effect.NODE_DOWN}


def test_single_nodes_leave_alone(pool: Cluster) -> None:
    found = draw({"kind": "capacity", "up_mean_h": 3, "down_mean_h": 1, "group_nodes": 1}, pool)
    assert set(at_times(found)) == {1}
    node, from_s, to_s = absences(found, 500 * HOUR_S)
    assert 1 - (to_s - from_s).sum() / (40 * 500 * HOUR_S) == pytest.approx(0.75, abs=0.02)
    assert set(node) == set(range(40))
    assert (from_s == 0).mean() < 0.2  # and some are away at the start
    assert (from_s == 0).any()


def test_groups_have_the_stated_mean_size() -> None:
    rng = np.random.default_rng(0)
    n_groups = [groups(rng, 40, 4.0).max() + 1 for _ in range(2000)]
    assert np.mean(n_groups) == pytest.approx(10, rel=0.02)
    assert groups(rng, 5, None).tolist() == [0] * 5 and groups(rng, 1, 3.0).tolist() == [0]


def test_spells_are_stationary_and_exponential() -> None:
    owner, from_s, to_s = off_spells(np.random.default_rng(1), 20_000, 3.0, 1.0, 40.0)
    for now in (0.0, 5.0, 39.0):
        assert ((from_s <= now) & (now < to_s)).sum() / 20_000 == pytest.approx(0.25, abs=0.012)
    lasting = (to_s - from_s)[from_s > 0]
    assert lasting.mean() == pytest.approx(1.0, rel=0.02) and lasting.std() == pytest.approx(1.0, rel=0.03)
    assert np.all(np.diff(from_s) >= 0) and np.all(from_s < 40.0)
    again = np.lexsort((from_s, owner))
    same = owner[again][1:] == owner[again][:-1]
    assert np.all(from_s[again][1:][same] > to_s[again][:-1][same])


def test_equal_bids_leave_together_and_low_ones_first(pool: Cluster) -> None:
    equal = draw({"kind": "price", "bid_sigma": 0}, pool)
    assert set(at_times(equal)) == {40}
    found = draw({"kind": "price", "bid_sigma": 0.3}, pool, horizon_h=3000)
    sizes = at_times(found)
    assert max(sizes) > 1 and min(sizes) < 40
    away_s = np.bincount(found["target"], found["value"], 40)
    lowest, highest = np.argsort(away_s)[[-1, 0]]
    assert away_s[lowest] > 3 * max(away_s[highest], 1)
    low = found[found["target"] == lowest]
    for at in found["at"][found["target"] == highest]:  # whenever the highest bid is outbid, the lowest is away
        assert np.any((low["at"] <= at) & (at < low["at"] + low["value"]))


def test_availability_under_a_price_is_the_normal_share_below_the_bid(pool: Cluster) -> None:
    found = draw({"kind": "price", "volatility": 0.5, "bid": 1.5, "bid_sigma": 0, "reversion_h": 2}, pool, 20_000)
    away_s = (absences(found, 20_000 * HOUR_S)[2] - absences(found, 20_000 * HOUR_S)[1]).sum()
    # P(ln price > ln 1.5) with sigma 0.5: 1 - Phi(0.811) = 0.2087
    assert away_s / (40 * 20_000 * HOUR_S) == pytest.approx(0.2087, abs=0.015)


def test_an_unknown_pool_or_market_is_named(pool: Cluster) -> None:
    with pytest.raises(ScenarioError, match=r"events\.spot\.pools: unknown pool 'q'"):
        draw({"kind": "price"}, pool, pool="q")
    with pytest.raises(ValidationError, match="'capacity', 'price'"):
        Spot.model_validate({"pools": ["p"], "market": {"kind": "auction"}})

"""Renewables: units, shape of the day, negative prices, what a site without plants leaves alone."""

import numpy as np
import pytest
from numpy.typing import NDArray

from hetenv.cluster import Cluster
from hetenv.errors import ScenarioError
from hetenv.events import Renewables
from hetenv.events.stream import Effect, EventContext, source_rng

DAY_S = 86_400.0
JOULE_PER_KWH = 3.6e6


def draw(
    cluster: Cluster, site: dict[str, object], days: float = 1.0, seed: int = 0, **more: object
) -> NDArray[np.void]:
    config = Renewables.model_validate({"sites": {"south": {"latitude_deg": 40, **site}}, **more})
    return config.draw(source_rng(seed, 0, config.source_name), EventContext(cluster, np.zeros(0), days * DAY_S))


def series(found: NDArray[np.void], effect: Effect) -> NDArray[np.float64]:
    chosen = found[found["effect"] == effect]
    assert np.all(np.diff(chosen["at"]) > 0)
    return chosen["value"]


def test_solar_power_follows_the_local_day(cluster: Cluster) -> None:
    power = series(
        draw(cluster, {"solar": {"peak_w": 1e5}, "cloud_sigma": 0, "cloudiness": 0.01}), Effect.SITE_RENEWABLE
    )
    assert power.size == 96 and power[:16].max() == 0.0 and power[-12:].max() == 0.0
    assert power.argmax() in (47, 48) and 0.9e5 < power.max() <= 1e5
    later = series(
        draw(cluster, {"solar": {"peak_w": 1e5}, "cloud_sigma": 0, "cloudiness": 0.01, "utc_offset_h": -6}),
        Effect.SITE_RENEWABLE,
    )
    assert later.argmax() in (71, 72)  # six hours west: noon comes six hours later


def test_start_hour_shifts_the_day(cluster: Cluster) -> None:
    site = {"solar": {"peak_w": 1.0}, "cloud_sigma": 0}
    power = series(draw(cluster, site, start_hour_utc=12), Effect.SITE_RENEWABLE)
    assert power.argmax() in (0, 95)


def test_clouds_take_energy(cluster: Cluster) -> None:
    clear, grey = (
        np.mean(
            [
                series(draw(cluster, {"solar": {"peak_w": 1.0}, "cloudiness": c}, seed=s), Effect.SITE_RENEWABLE).mean()
                for s in range(30)
            ]
        )
        for c in (0.1, 0.9)
    )
    assert grey < 0.7 * clear


def test_wind_capacity_factor_is_that_of_its_distribution(cluster: Cluster) -> None:
    site = {"wind": {"rated_w": 2000.0, "mean_m_per_s": 7.0, "weibull_shape": 2.0}}
    power = series(draw(cluster, site, days=2000), Effect.SITE_RENEWABLE)
    speed = np.linspace(0, 40, 200_001)
    scale = 7.0 / 0.886227
    density = 2 / scale * (speed / scale) * np.exp(-((speed / scale) ** 2))
    share = np.where(speed < 25, np.clip((speed**3 - 27) / (1728 - 27), 0, 1), 0)
    assert power.mean() / 2000.0 == pytest.approx(np.sum(share * density) * (speed[1] - speed[0]), rel=0.05)


def test_carbon_is_in_kg_per_joule_and_dips_with_the_sun(cluster: Cluster) -> None:
    found = draw(cluster, {"carbon": {"mean_g_per_kwh": 400, "noise": 0}, "cloud_sigma": 0, "cloudiness": 0.01})
    g_per_kwh = series(found, Effect.SITE_CARBON) * JOULE_PER_KWH * 1000
    assert g_per_kwh.max() == pytest.approx(400 * 1.15, rel=0.02)  # at 19 h the sun is nearly down
    assert 10 * 4 < g_per_kwh.argmin() < 14 * 4
    assert set(found["effect"]) == {Effect.SITE_CARBON} and set(found["target"]) == {1}


def test_p28_price_may_be_negative_in_a_surplus(cluster: Cluster) -> None:
    found = draw(cluster, {"price": {"mean_usd_per_mwh": 30, "solar_drop_usd_per_mwh": 60}, "cloudiness": 0.01})
    usd_per_mwh = series(found, Effect.SITE_PRICE) * 3.6e9
    assert usd_per_mwh.min() < -10 and usd_per_mwh.max() > 30
    assert usd_per_mwh.max() < 30 * 2


def test_local_demand_is_served_before_the_site(cluster: Cluster) -> None:
    solar = {"solar": {"peak_w": 1e5}}
    whole = series(draw(cluster, solar), Effect.SITE_RENEWABLE)
    left = series(draw(cluster, {**solar, "local_demand_w": 3e4}), Effect.SITE_RENEWABLE)
    assert np.array_equal(left, np.maximum(whole - 3e4, 0.0)) and left.max() > 0


def test_curtailed_power_is_there_at_low_carbon_and_at_negative_prices(cluster: Cluster) -> None:
    site = {"carbon": {"mean_g_per_kwh": 120, "solar_share": 0.5}, "price": {"mean_usd_per_mwh": 20, "solar_drop_usd_per_mwh": 40}}
    rules = [{"kind": "low_carbon", "power_w": 1e4}, {"kind": "low_price", "power_w": 500}]
    found = draw(cluster, {**site, "curtailed": rules})
    power = series(found, Effect.SITE_RENEWABLE)
    g_per_kwh = series(found, Effect.SITE_CARBON) * JOULE_PER_KWH * 1000
    usd_per_mwh = series(found, Effect.SITE_PRICE) * 3.6e9
    assert np.array_equal(power, 1e4 * (g_per_kwh < 100) + 500.0 * (usd_per_mwh < 0))
    assert {0.0, 10_500.0} <= set(power)
    with pytest.raises(ScenarioError, match=r"events\.renewables\.sites\.south\.curtailed\[1\]: low_price needs the site's price"):
        draw(cluster, {"carbon": site["carbon"], "curtailed": rules})


def test_a_site_without_plants_keeps_its_own_power(cluster: Cluster) -> None:
    assert draw(cluster, {}).size == 0


def test_adding_a_plant_moves_no_other_signal(cluster: Cluster) -> None:
    carbon = {"carbon": {"mean_g_per_kwh": 400}}
    alone = series(draw(cluster, carbon), Effect.SITE_CARBON)
    beside = series(draw(cluster, {**carbon, "wind": {"rated_w": 5.0}, "solar": {"peak_w": 1.0}}), Effect.SITE_CARBON)
    assert alone.tobytes() == beside.tobytes()


def test_steps_cover_a_horizon_that_is_no_multiple_of_them(cluster: Cluster) -> None:
    found = draw(cluster, {"carbon": {"mean_g_per_kwh": 1}}, days=1.005)
    assert found["at"].max() == 96 * 900.0 and found.size == 97


def test_an_unknown_site_is_named(cluster: Cluster) -> None:
    config = Renewables.model_validate({"sites": {"soth": {"latitude_deg": 0}}})
    with pytest.raises(ScenarioError, match=r"events\.renewables\.sites: unknown site 'soth'; did you mean 'south'"):
        config.draw(source_rng(0, 0, "x"), EventContext(cluster, np.zeros(0), DAY_S))

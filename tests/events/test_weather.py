"""Formulas of sun, clouds and wind against hand-computed and published values."""

from math import gamma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetenv.events.weather import (
    autoregressive,
    clear_sky_w_per_m2,
    cloud_factor,
    weibull_speed,
    wind_power_share,
)


def test_noon_at_the_equator_on_the_equinox_is_near_the_zenith() -> None:
    # day 81: declination 0, cos z = 1: 1098 exp(-0.059) = 1035.1 W/m2
    assert clear_sky_w_per_m2(0.0, 81, np.array([12.0]))[0] == pytest.approx(1035.09, abs=0.1)


def test_june_noon_at_48_degrees() -> None:
    # declination 23.45 deg: cos z = cos(48 - 23.45 deg) = 0.9096; 1098 x 0.9096 x exp(-0.059/0.9096) = 936.0
    assert clear_sky_w_per_m2(48.0, 172, np.array([12.0]))[0] == pytest.approx(936.0, abs=0.5)


def test_the_sun_sets() -> None:
    hours = np.arange(0.0, 48.0, 0.25)
    light = clear_sky_w_per_m2(48.0, 172, hours)
    up_h = (light[:96] > 0).sum() * 0.25
    assert up_h == pytest.approx(16.0, abs=0.3)  # day length at 48 N on 21 June: 2/15 acos(-tan 48 tan 23.45) = 15.8 h
    assert light[0] == 0.0 and light[96] == 0.0
    assert clear_sky_w_per_m2(80.0, 355, hours).max() == 0.0  # polar night


@given(st.floats(-90, 90), st.integers(1, 366), st.floats(0, 10_000))
def test_irradiance_is_finite_and_in_range(latitude: float, day: int, hour: float) -> None:
    light = clear_sky_w_per_m2(latitude, day, np.array([hour]))[0]
    assert 0.0 <= light <= 1098.0


def test_an_overcast_sky_passes_a_quarter() -> None:
    assert cloud_factor(np.array([40.0]), 0.5, 1.0)[0] == pytest.approx(0.25)
    assert cloud_factor(np.array([-40.0]), 0.5, 1.0)[0] == pytest.approx(1.0)
    assert cloud_factor(np.array([0.0]), 0.5, 1.0)[0] == pytest.approx(1 - 0.75 * 0.5**3.4)


@pytest.mark.parametrize("shape", [1.5, 2.0, 3.0])
def test_wind_speed_is_weibull(shape: float) -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 200_000))
    speed = weibull_speed(x, y, 7.0, shape)
    second = gamma(1 + 2 / shape) / gamma(1 + 1 / shape) ** 2
    assert speed.mean() == pytest.approx(7.0, rel=0.01)
    assert (speed**2).mean() / speed.mean() ** 2 == pytest.approx(second, rel=0.01)


def test_the_power_curve_has_its_corners() -> None:
    speeds = np.array([0.0, 2.9, 3.0, 12.0, 20.0, 24.9, 25.0])
    assert list(wind_power_share(speeds)) == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]
    assert wind_power_share(np.array([8.0]))[0] == pytest.approx((512 - 27) / (1728 - 27))


def test_autoregressive_series_is_stationary_with_the_stated_memory() -> None:
    series = autoregressive(np.random.default_rng(1).standard_normal(200_000), 900.0, 3600.0)
    assert series.mean() == pytest.approx(0.0, abs=0.03) and series.std() == pytest.approx(1.0, abs=0.02)
    assert np.corrcoef(series[:-4], series[4:])[0, 1] == pytest.approx(np.exp(-1), abs=0.02)
    assert autoregressive(np.zeros(0), 900.0, 3600.0).size == 0

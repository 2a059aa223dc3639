"""Formulas of sun, clouds and wind. All take and give plain arrays over time [T]."""

from math import gamma

import numpy as np
from numpy.typing import NDArray

Series = NDArray[np.float64]

CUT_IN_M_PER_S, RATED_M_PER_S, CUT_OUT_M_PER_S = 3.0, 12.0, 25.0
"""Corner speeds of a common onshore turbine (IEC class II)."""


def clear_sky_w_per_m2(latitude_deg: float, day_of_year: int, solar_hour: Series) -> Series:
    """Global horizontal irradiance under a clear sky, W/m2, >= 0.

    Haurwitz, J. Meteorology 2 (1945): 1098 cos(z) exp(-0.059 / cos(z)), z the zenith angle; declination after Cooper,
    Solar Energy 12 (1969): 23.45 deg x sin(360 deg x (284 + day) / 365).

    Args:
        solar_hour: [T] hours of local solar time since the midnight that begins `day_of_year`; may pass 24.
    """
    day = day_of_year + np.floor(solar_hour / 24.0)
    declination = np.radians(23.45) * np.sin(2.0 * np.pi * (284.0 + day) / 365.0)
    latitude, hour_angle = np.radians(latitude_deg), np.pi * (solar_hour - 12.0) / 12.0
    height = np.sin(latitude) * np.sin(declination) + np.cos(latitude) * np.cos(declination) * np.cos(hour_angle)
    cos_zenith = np.maximum(height, 1e-3)
    return np.where(height > 1e-3, 1098.0 * cos_zenith * np.exp(-0.059 / cos_zenith), 0.0)


def cloud_factor(normal: Series, median_cover: float, sigma: float) -> Series:
    """Share of the clear-sky irradiance that passes, 0.25..1.

    Kasten and Czeplak, Solar Energy 24 (1980): 1 - 0.75 N^3.4 with cover N in 0..1, here logit-normal.
    """
    logit = np.log(median_cover / (1.0 - median_cover)) + sigma * normal
    cover: Series = 1.0 / (1.0 + np.exp(-logit))
    return 1.0 - 0.75 * cover**3.4


def weibull_speed(x: Series, y: Series, mean_m_per_s: float, shape: float) -> Series:
    """Wind speed, m/s, of Weibull distribution from two independent standard normal series.

    (x^2 + y^2) / 2 is exponential, so its power 1/shape is Weibull; mean = scale x Gamma(1 + 1/shape) (Justus et al.,
    J. Applied Meteorology 17, 1978).
    """
    scale = mean_m_per_s / gamma(1.0 + 1.0 / shape)
    speed: Series = scale * ((x * x + y * y) / 2.0) ** (1.0 / shape)
    return speed


def wind_power_share(speed_m_per_s: Series) -> Series:
    """Power over rated power, 0..1: cubic between cut-in and rated speed, 0 beyond cut-out.

    Carrillo et al., Renewable and Sustainable Energy Reviews 21 (2013), the cubic power curve.
    """
    low, high = CUT_IN_M_PER_S**3, RATED_M_PER_S**3
    share = np.clip((speed_m_per_s**3 - low) / (high - low), 0.0, 1.0)
    return np.where(speed_m_per_s < CUT_OUT_M_PER_S, share, 0.0)


def autoregressive(noise: Series, step_s: float, correlation_s: float) -> Series:
    """Stationary standard normal series with correlation exp(-lag/correlation_s), made of white noise [T]."""
    keep = float(np.exp(-step_s / correlation_s))
    series = noise * np.sqrt(1.0 - keep * keep)
    if series.size:
        series[0] = noise[0]
    values = series.tolist()
    for k in range(1, len(values)):
        values[k] += keep * values[k - 1]
    return np.array(values, np.float64)


def photovoltaic_share(irradiance_w_per_m2: Series, air_c: Series, power_per_c: float, noct_c: float) -> Series:
    """Power over peak power, 0..1: G/1000 x (1 + power_per_c x (cell temperature - 25 deg C)), at most 1 (inverter).

    Dobos, PVWatts Version 5 Manual, NREL/TP-6A20-62641 (2014), eq. 8; the cell's temperature after Ross (1976): air
    temperature + G/800 x (noct_c - 20), noct_c the cell's temperature at 800 W/m2 and 20 deg C.
    """
    cell_c = air_c + irradiance_w_per_m2 / 800.0 * (noct_c - 20.0)
    share = irradiance_w_per_m2 / 1000.0 * (1.0 + power_per_c * (cell_c - 25.0))
    return np.clip(share, 0.0, 1.0)


def speed_at_height(speed_m_per_s: Series, measured_m: float, hub_m: float, shear: float) -> Series:
    """Wind speed at hub height by the power law, exponent 1/7 over open land (Justus and Mikhail, Geophys. Res. Lett. 3, 1976)."""
    factor: float = (hub_m / measured_m) ** shear
    return speed_m_per_s * factor

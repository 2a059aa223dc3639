"""Solar and wind power of sites, and carbon intensity and price of their grids, by formula. Measured series: `series`."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from hetenv import catalog
from hetenv.errors import ScenarioError, unknown
from hetenv.events import energy_libraries
from hetenv.events.curtailment import Curtailment, curtailed_w
from hetenv.events.stream import Effect, EventContext, empty_rows, rows
from hetenv.events.weather import autoregressive, clear_sky_w_per_m2, cloud_factor, weibull_speed, wind_power_share
from hetenv.units import HOUR_S, JOULE_PER_KWH, JOULE_PER_MWH, KILO

STANDARD_W_PER_M2 = 1000.0
"""Irradiance at which a solar plant gives its peak power (IEC 60904 standard test conditions)."""
EVENING_PEAK_H = 19.0
"""Local hour at which demand, carbon intensity and price peak (the neck of the "duck curve", CAISO 2013)."""


DEGREES_PER_H = 15.0
"""Of longitude, in an hour of the sun's way."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SolarPlant(_Part):
    """Solar power of a site: peak_w at 1,000 W/m2, in proportion to irradiance, at most peak_w (inverter limit)."""

    peak_w: float = Field(gt=0.0, allow_inf_nan=False)


class WindPlant(_Part):
    """Wind power of a site."""

    rated_w: float = Field(gt=0.0, allow_inf_nan=False)
    mean_m_per_s: float = Field(default=7.0, gt=0.0, le=30.0, description="mean wind speed at hub height")
    weibull_shape: float = Field(default=2.0, gt=0.5, le=10.0)
    correlation_h: float = Field(default=6.0, gt=0.0, description="time in which the speed forgets")
    turbine: str | None = Field(default=None, description="type that windpowerlib knows; default: a cubic power curve")


class GridCarbon(_Part):
    """Carbon intensity = mean x (1 + swing x evening shape + noise) x (1 - solar_share x sun), g/kWh, at least 0.

    The evening shape is a cosine with its top at 19 h local time; sun is the irradiance over 1,000 W/m2 (0..1): where
    much solar power feeds the grid, intensity falls by noon as its share rises.
    """

    mean_g_per_kwh: float = Field(gt=0.0, allow_inf_nan=False)
    swing: float = Field(default=0.15, ge=0.0, le=1.0)
    solar_share: float = Field(default=0.3, ge=0.0, le=1.0, description="of the grid's power under a standard sun")
    noise: float = Field(default=0.05, ge=0.0, le=1.0, description="standard deviation, relative")


class GridPrice(_Part):
    """Price = mean x (1 + swing x evening shape + noise) - solar_drop x sun, USD/MWh; negative in a surplus.

    The drop with the sun is the merit-order effect (Sensfuss et al., Energy Policy 36, 2008).
    """

    mean_usd_per_mwh: float = Field(allow_inf_nan=False)
    swing: float = Field(default=0.3, ge=0.0, le=2.0)
    solar_drop_usd_per_mwh: float = Field(default=40.0, ge=0.0, allow_inf_nan=False)
    noise: float = Field(default=0.1, ge=0.0, le=2.0, description="standard deviation, relative")


class SiteWeather(_Part):
    """What the sun, the wind and the grid do at one site. A `preset` states fields of a region; those beside it win."""

    preset: str | None = Field(default=None, description="a row of catalog/event_presets.csv of kind renewables")
    latitude_deg: float = Field(ge=-90.0, le=90.0)
    utc_offset_h: float = Field(default=0.0, ge=-12.0, le=14.0, description="local solar time minus UTC; 15 deg of longitude an hour")
    cloudiness: float = Field(default=0.4, gt=0.0, lt=1.0, description="median share of the sky that is covered")
    cloud_sigma: float = Field(default=1.5, ge=0.0, le=5.0, description="spread of ln(covered/clear)")
    cloud_correlation_h: float = Field(default=3.0, gt=0.0)
    solar: SolarPlant | None = None
    wind: WindPlant | None = None
    carbon: GridCarbon | None = None
    price: GridPrice | None = None
    local_demand_w: float = Field(default=0.0, ge=0.0, allow_inf_nan=False, description="of others at the site; served first")
    curtailed: tuple[Curtailment, ...] = Field(default=(), description="power of others that the grid cannot use at times")

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("preset") is None:
            return data
        return {**catalog.event_preset("renewables", data["preset"]).fields, **data}


class Renewables(_Part):
    """Steps of renewable power, carbon intensity and price: one value a `step_s`, that of the step's middle.

    Effects: SITE_RENEWABLE (where the site has a solar or wind plant, or curtailment), SITE_CARBON, SITE_PRICE (where given).
    With `backend: pvlib` the clear sky is pvlib's instead of Haurwitz' formula, and wind plants may name a `turbine`.
    """

    kind: Literal["renewables"] = "renewables"
    name: str | None = Field(default=None, min_length=1, description="source name; default: the kind")
    step_s: float = Field(default=900.0, ge=60.0, allow_inf_nan=False)
    day_of_year: int = Field(default=172, ge=1, le=366, description="of time 0; 172 is 21 June")
    start_hour_utc: float = Field(default=0.0, ge=0.0, lt=24.0, description="of time 0")
    backend: Literal["formula", "pvlib"] = Field(default="formula", description="pvlib: with windpowerlib, extra `energy`")
    sites: dict[str, SiteWeather] = Field(min_length=1, description="site name -> weather")

    @model_validator(mode="after")
    def _turbines_need_their_library(self) -> "Renewables":
        for name, site in self.sites.items():
            if self.backend == "formula" and site.wind is not None and site.wind.turbine is not None:
                raise ValueError(f"sites.{name}.wind.turbine: needs `backend: pvlib`, which reads power curves")
        return self

    @property
    def source_name(self) -> str:
        return self.name or self.kind

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """Rows of all sites at 0, step_s, 2 step_s ... below the horizon."""
        cluster = context.cluster
        at_s = np.arange(int(np.ceil(context.horizon_s / self.step_s)), dtype=np.float64) * self.step_s
        drawn = [empty_rows()]
        for name, site in self.sites.items():
            if name not in cluster.site_names:
                raise ScenarioError(f"events.{self.source_name}.sites: {unknown('site', name, cluster.site_names)}")
            drawn.extend(self._site_rows(rng, name, site, cluster.site(name), at_s))
        return np.concatenate(drawn)

    def _site_rows(
        self, rng: np.random.Generator, name: str, site: SiteWeather, target: int, at_s: NDArray[np.float64]
    ) -> list[NDArray[np.void]]:
        """One array of rows per signal. The normal draws are the same whatever plants the site has."""
        clouds, wind_x, wind_y, carbon_noise, price_noise = rng.standard_normal((5, at_s.size))
        hour = self.start_hour_utc + site.utc_offset_h + (at_s + 0.5 * self.step_s) / HOUR_S
        evening = np.cos(2.0 * np.pi * (hour - EVENING_PEAK_H) / 24.0)
        cover = autoregressive(clouds, self.step_s, site.cloud_correlation_h * HOUR_S)
        sky = cloud_factor(cover, site.cloudiness, site.cloud_sigma)
        sun = np.minimum(self._clear_w(site, hour) * sky / STANDARD_W_PER_M2, 1.0)
        found, g_per_kwh, usd_per_mwh = [], None, None
        if site.carbon is not None:
            shape = 1.0 + site.carbon.swing * evening + site.carbon.noise * carbon_noise
            g_per_kwh = site.carbon.mean_g_per_kwh * np.maximum(shape, 0.0) * (1.0 - site.carbon.solar_share * sun)
            found.append(rows(Effect.SITE_CARBON, at_s, target, g_per_kwh / KILO / JOULE_PER_KWH))
        if site.price is not None:
            shape = 1.0 + site.price.swing * evening + site.price.noise * price_noise
            usd_per_mwh = site.price.mean_usd_per_mwh * shape - site.price.solar_drop_usd_per_mwh * sun
            found.append(rows(Effect.SITE_PRICE, at_s, target, usd_per_mwh / JOULE_PER_MWH))
        if site.solar is not None or site.wind is not None or site.curtailed:
            own_w = np.full(at_s.size, -site.local_demand_w)
            if site.solar is not None:
                own_w = own_w + site.solar.peak_w * sun
            if site.wind is not None:
                own_w = own_w + site.wind.rated_w * self._wind_share(site.wind, wind_x, wind_y)
            where = f"events.{self.source_name}.sites.{name}.curtailed"
            free_w = curtailed_w(site.curtailed, g_per_kwh, usd_per_mwh, where)
            found.insert(0, rows(Effect.SITE_RENEWABLE, at_s, target, np.maximum(own_w, 0.0) + free_w))
        return found

    def _clear_w(self, site: SiteWeather, hour: NDArray[np.float64]) -> NDArray[np.float64]:
        """[T] irradiance under a clear sky, W/m2, by hours of local solar time."""
        if self.backend == "pvlib":
            longitude_deg = DEGREES_PER_H * site.utc_offset_h
            return energy_libraries.clear_sky_w_per_m2(site.latitude_deg, longitude_deg, self.day_of_year, hour - site.utc_offset_h)
        return clear_sky_w_per_m2(site.latitude_deg, self.day_of_year, hour)

    def _wind_share(self, wind: WindPlant, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """[T] power over rated power, of two rows of white noise."""
        forget_s = 2.0 * wind.correlation_h * HOUR_S  # a square forgets twice as fast as its root
        x, y = (autoregressive(noise, self.step_s, forget_s) for noise in (x, y))
        speed = weibull_speed(x, y, wind.mean_m_per_s, wind.weibull_shape)
        return wind_power_share(speed) if wind.turbine is None else energy_libraries.turbine_share(wind.turbine, speed)

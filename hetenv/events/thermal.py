"""Thermal throttling: GPUs of a site slow down as the air outside gets hot."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hetenv.events.cause import Cause, Part
from hetenv.events.stream import Effect, EventContext, empty_rows, rows
from hetenv.events.weather import autoregressive
from hetenv.units import HOUR_S

HOTTEST_H = 15.0
"""Local hour of the day's highest temperature."""
DECIMALS = 2
"""Speed factors are rounded, so that a row is written only where one changes."""


class HeatWave(Part):
    """Days that are hotter than usual, all at once."""

    from_h: float = Field(ge=0.0, allow_inf_nan=False, description="since time 0")
    lasting_h: float = Field(gt=0.0, allow_inf_nan=False)
    hotter_c: float = Field(ge=-60.0, le=60.0)


class SiteHeat(Part):
    """Outside temperature = mean + swing x day's cosine (top at 15 h local time) + noise + waves, deg C; and what it costs.

    GPUs keep their speed up to `throttle_from_c` and lose `loss_per_c` of it for each degree above, down to `floor`.
    """

    mean_c: float = Field(ge=-60.0, le=60.0)
    swing_c: float = Field(default=6.0, ge=0.0, le=30.0, description="half of the day's range")
    noise_c: float = Field(default=2.0, ge=0.0, le=20.0, description="standard deviation")
    correlation_h: float = Field(default=12.0, gt=0.0, description="time in which the noise forgets")
    utc_offset_h: float = Field(default=0.0, ge=-12.0, le=14.0)
    waves: tuple[HeatWave, ...] = ()
    throttle_from_c: float = Field(default=30.0, ge=-60.0, le=80.0)
    loss_per_c: float = Field(default=0.02, ge=0.0, le=1.0)
    floor: float = Field(default=0.5, gt=0.0, le=1.0)

    def temperature_c(self, noise: NDArray[np.float64], step_s: float, first_hour: float) -> NDArray[np.float64]:
        """[T] deg C in the middle of each step; `noise` [T] is standard normal."""
        hour = first_hour + self.utc_offset_h + (np.arange(noise.size) + 0.5) * step_s / HOUR_S
        day = np.cos(2.0 * np.pi * (hour - HOTTEST_H) / 24.0)
        found: NDArray[np.float64] = (
            self.mean_c + self.swing_c * day + self.noise_c * autoregressive(noise, step_s, self.correlation_h * HOUR_S)
        )
        middle_h = (np.arange(noise.size) + 0.5) * step_s / HOUR_S
        for wave in self.waves:
            found += wave.hotter_c * ((middle_h >= wave.from_h) & (middle_h < wave.from_h + wave.lasting_h))
        return found

    def speed(self, temperature_c: NDArray[np.float64]) -> NDArray[np.float64]:
        """Speed factors, `floor`..1."""
        lost = self.loss_per_c * np.maximum(temperature_c - self.throttle_from_c, 0.0)
        lowest = max(self.floor, 10.0**-DECIMALS)
        found: NDArray[np.float64] = np.maximum(np.round(1.0 - lost, DECIMALS), lowest)
        return found


class Thermal(Cause):
    """All nodes of a site throttle with its temperature, which also sets the PUE of the site.

    Effects: SITE_TEMPERATURE each step (unless `states_temperature` is off because another source does), NODE_SPEED where
    the factor changes.
    """

    kind: Literal["thermal"] = "thermal"
    sites: dict[str, SiteHeat] = Field(min_length=1, description="site name -> heat")
    step_s: float = Field(default=900.0, ge=60.0, allow_inf_nan=False)
    states_temperature: bool = True
    start_hour_utc: float = Field(default=0.0, ge=0.0, lt=24.0, description="of time 0")

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """Rows site by site, in the order of `sites`."""
        cluster = context.cluster
        n_steps = int(np.ceil(context.horizon_s / self.step_s))
        drawn = [empty_rows()]
        for name, heat in self.sites.items():
            site = self.site_of(cluster, name, "sites")
            nodes = np.flatnonzero(cluster.pool_site[cluster.node_pool] == site)
            temperature_c = heat.temperature_c(rng.standard_normal(n_steps), self.step_s, self.start_hour_utc)
            if self.states_temperature:
                drawn.append(rows(Effect.SITE_TEMPERATURE, np.arange(n_steps) * self.step_s, site, temperature_c))
            speed = heat.speed(temperature_c)
            changes = np.flatnonzero(speed != np.concatenate([[1.0], speed[:-1]]))
            at_s = np.repeat(changes * self.step_s, nodes.size)
            drawn.append(rows(Effect.NODE_SPEED, at_s, np.tile(nodes, changes.size), np.repeat(speed[changes], nodes.size)))
        return np.concatenate(drawn)

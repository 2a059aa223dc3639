"""Arrival processes: when jobs are submitted. Each draws sorted times in [0, horizon)."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from hetenv.units import HOUR_S

Times = NDArray[np.float64]


class PoissonArrivals(BaseModel):
    """Independent arrivals at a constant rate; index of dispersion 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["poisson"] = "poisson"
    rate_per_h: float = Field(ge=0.0, allow_inf_nan=False, description="mean number of jobs per hour")

    def draw(self, rng: np.random.Generator, horizon_s: float) -> Times:
        """Submit times, s, sorted."""
        n = rng.poisson(self.rate_per_h * horizon_s / HOUR_S)
        return np.sort(rng.random(n)) * horizon_s


class DiurnalArrivals(BaseModel):
    """Independent arrivals whose rate follows the day: rate x (1 + amplitude x cos(2 pi (hour - peak_hour) / 24))."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["diurnal"] = "diurnal"
    rate_per_h: float = Field(ge=0.0, allow_inf_nan=False, description="mean over the day")
    amplitude: float = Field(default=0.5, ge=0.0, le=1.0)
    peak_hour: float = Field(default=15.0, ge=0.0, lt=24.0, description="clock hour of the highest rate")
    start_hour: float = Field(default=0.0, ge=0.0, lt=24.0, description="clock hour at time 0")

    def draw(self, rng: np.random.Generator, horizon_s: float) -> Times:
        """Submit times, s, sorted."""
        return np.sort(_day_shaped(rng, self, self.rate_per_h, 0.0, horizon_s))


class BurstyArrivals(BaseModel):
    """Bursts of jobs (parameter sweeps, retries) that come as diurnal arrivals do.

    A burst has a geometric number of jobs of mean m = (dispersion + 1) / 2, the first at once, the others after
    independent exponential delays of mean `burst_span_s`. The index of dispersion (variance over mean of the number
    of arrivals in a window) is then E[size^2] / E[size] = 2 m - 1 = `dispersion`, for amplitude 0 and windows that
    are long against burst_span_s (a Poisson cluster process; Neyman and Scott, J. R. Stat. Soc. B 20, 1958).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["bursty"] = "bursty"
    rate_per_h: float = Field(ge=0.0, allow_inf_nan=False, description="mean number of jobs per hour over the day")
    dispersion: float = Field(default=5.0, ge=1.0, le=1e4, description="index of dispersion; 1: no bursts")
    burst_span_s: float = Field(default=300.0, ge=0.0, allow_inf_nan=False)
    amplitude: float = Field(default=0.0, ge=0.0, le=1.0)
    peak_hour: float = Field(default=15.0, ge=0.0, lt=24.0, description="clock hour of the highest rate")
    start_hour: float = Field(default=0.0, ge=0.0, lt=24.0, description="clock hour at time 0")

    def draw(self, rng: np.random.Generator, horizon_s: float) -> Times:
        """Submit times, s, sorted. Bursts that began up to ten spans before time 0 count too: no lull at the start."""
        size = (self.dispersion + 1.0) / 2.0
        starts = _day_shaped(rng, self, self.rate_per_h / size, -10.0 * self.burst_span_s, horizon_s)
        sizes = rng.geometric(1.0 / size, starts.size)
        followers = sizes - 1
        delays = rng.exponential(self.burst_span_s, int(followers.sum()))
        times = np.concatenate([starts, np.repeat(starts, followers) + delays])
        return np.sort(times[(times >= 0.0) & (times < horizon_s)])


Arrivals = Annotated[PoissonArrivals | DiurnalArrivals | BurstyArrivals, Field(discriminator="kind")]


def _day_shaped(
    rng: np.random.Generator, shape: DiurnalArrivals | BurstyArrivals, rate_per_h: float, from_s: float, to_s: float
) -> Times:
    """Points in [from_s, to_s) of a Poisson process with the day's shape, by thinning; unsorted."""
    n = rng.poisson((1.0 + shape.amplitude) * rate_per_h * (to_s - from_s) / HOUR_S)
    times = from_s + rng.random(n) * (to_s - from_s)
    hour = shape.start_hour + times / HOUR_S
    rate = 1.0 + shape.amplitude * np.cos(2.0 * np.pi * (hour - shape.peak_hour) / 24.0)
    return times[rng.random(n) * (1.0 + shape.amplitude) < rate]

"""Forecasts of signals, with an error model. What a model may read of the future is said by its class, and it reads no more."""

from typing import Annotated, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from hetenv.events.signals import Signal
from hetenv.units import HOUR_S

Array = NDArray[np.float64]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PerfectForecast(_Model):
    """The truth. Reads the future up to the horizon."""

    kind: Literal["perfect"] = "perfect"

    def predict(self, signal: Signal, edges_s: Array, key: tuple[int, int, str]) -> Array:
        """[K] means between K + 1 edges, the first of which is now."""
        return signal.integrals(edges_s) / np.diff(edges_s)


class PersistenceForecast(_Model):
    """The past again: the present value, or with `period_s` that of the same time in the last period (a day for the sun).

    Reads nothing after now.
    """

    kind: Literal["persistence"] = "persistence"
    period_s: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)

    def predict(self, signal: Signal, edges_s: Array, key: tuple[int, int, str]) -> Array:
        """[K] the present value, or means one or more periods before."""
        now_s = float(edges_s[0])
        if self.period_s is None:
            return np.full(edges_s.size - 1, signal.value(now_s))
        found = np.empty(edges_s.size - 1)
        for k, (from_s, to_s) in enumerate(zip(edges_s[:-1].tolist(), edges_s[1:].tolist())):
            back_s = np.ceil((to_s - now_s) / self.period_s - 1e-12) * self.period_s
            past_s = min(to_s - back_s, now_s)
            is_recorded = past_s - (to_s - from_s) >= signal.first_s
            found[k] = signal.mean(past_s - (to_s - from_s), past_s) if is_recorded else signal.value(now_s)
        return found


class NoisyForecast(_Model):
    """The truth times 1 + error, at least 0 times; the error's standard deviation grows with the root of the time ahead.

    sigma(h) = min(sigma_1h x sqrt(h / 1 h), sigma_max). The error of one target time comes from one normal deviate per
    `correlation_s`, so that a forecast made later differs by being better, not by luck. Reads the future up to the horizon.
    """

    kind: Literal["noisy"] = "noisy"
    sigma_1h: float = Field(default=0.05, ge=0.0, le=2.0, description="relative, one hour ahead")
    sigma_max: float = Field(default=0.5, ge=0.0, le=2.0)
    correlation_s: float = Field(default=HOUR_S, gt=0.0, allow_inf_nan=False)

    def predict(self, signal: Signal, edges_s: Array, key: tuple[int, int, str]) -> Array:
        """[K] disturbed means."""
        truth = signal.integrals(edges_s) / np.diff(edges_s)
        middle_s = 0.5 * (edges_s[:-1] + edges_s[1:])
        ahead_h = (middle_s - edges_s[0]) / HOUR_S
        sigma = np.minimum(self.sigma_1h * np.sqrt(ahead_h), self.sigma_max)
        factor = np.maximum(1.0 + sigma * self._normal(middle_s, key), 0.0)
        disturbed: Array = truth * factor
        return disturbed

    def _normal(self, at_s: Array, key: tuple[int, int, str]) -> Array:
        """Standard normal at each time, the same whenever it is asked for; two neighbours blend with constant variance."""
        place = np.maximum(at_s, 0.0) / self.correlation_s
        before = np.floor(place).astype(np.int64)
        seed, episode, source = key
        drawn = np.random.default_rng([seed, episode, crc32(f"forecast:{source}".encode())]).standard_normal(int(before.max()) + 2)
        angle = 0.5 * np.pi * (place - before)
        blended: Array = np.cos(angle) * drawn[before] + np.sin(angle) * drawn[before + 1]
        return blended


ForecastModel = Annotated[PerfectForecast | PersistenceForecast | NoisyForecast, Field(discriminator="kind")]
"""How a forecast errs; `kind` picks the class."""


class Forecaster:
    """Forecasts of the signals of one source in one episode."""

    def __init__(self, model: ForecastModel, seed: int, episode: int, source_name: str) -> None:
        self.model = model
        self._key = (seed, episode, source_name)

    def forecast(self, signal: Signal, now_s: float, horizon_s: float, step_s: float) -> Array:
        """[K] believed means over the steps after now: K = ceil(horizon_s / step_s), also where the signal's record ends.

        Equal arguments give equal forecasts, in any order of calls.

        Raises:
            ValueError: horizon or step not above 0.
            TraceError: the record ends before, and its end policy is `raise`.
        """
        if not (step_s > 0 and horizon_s > 0 and np.isfinite([now_s, horizon_s, step_s]).all()):
            raise ValueError(f"forecast: horizon_s and step_s must be > 0 and finite (got {horizon_s:g} and {step_s:g})")
        n = int(np.ceil(horizon_s / step_s - 1e-9))
        edges_s = now_s + step_s * np.arange(n + 1, dtype=np.float64)
        return self.model.predict(signal, edges_s, self._key)

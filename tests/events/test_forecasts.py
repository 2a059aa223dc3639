"""Forecasts: what each model says, what it may read, how its error grows."""

import numpy as np
import pytest

from hetenv.events.forecasts import Forecaster, NoisyForecast, PerfectForecast, PersistenceForecast
from hetenv.events.signals import Signal
from tests.events.test_signals import hourly

HOUR = 3600.0
DAYS = hourly([float(100 + 10 * (h % 24) + h // 24) for h in range(96)], "hold")


def test_a_perfect_forecast_is_the_mean_of_each_step() -> None:
    found = Forecaster(PerfectForecast(), 0, 0, "x").forecast(DAYS, 1800, 3 * HOUR, HOUR)
    assert list(found) == [105, 115, 125]
    assert Forecaster(PerfectForecast(), 0, 0, "x").forecast(DAYS, 0, 2.5 * HOUR, HOUR).size == 3


def test_persistence_repeats_the_present_or_yesterday() -> None:
    now = 30 * HOUR + 600
    assert list(Forecaster(PersistenceForecast(), 0, 0, "x").forecast(DAYS, now, 2 * HOUR, HOUR)) == [161, 161]
    daily = Forecaster(PersistenceForecast(period_s=86400), 0, 0, "x")
    yesterday = [DAYS.mean(now - 86400 + k * HOUR, now - 86400 + (k + 1) * HOUR) for k in range(24)]
    assert list(daily.forecast(DAYS, now, 48 * HOUR, HOUR)) == pytest.approx(yesterday * 2)
    assert list(daily.forecast(DAYS, HOUR, 2 * HOUR, HOUR)) == [110, 110]  # no yesterday yet


def changed_after(signal: Signal, at_s: float) -> Signal:
    return Signal(signal.at_s, np.where(signal.at_s > at_s, signal.values * 3 - 7, signal.values), signal.end_s, signal.end)


def test_no_model_reads_more_of_the_future_than_it_says() -> None:
    now, horizon = 30 * HOUR + 600, 6 * HOUR
    for model in (PersistenceForecast(), PersistenceForecast(period_s=86400), PersistenceForecast(period_s=1800)):
        one = Forecaster(model, 1, 2, "x")
        assert list(one.forecast(DAYS, now, horizon, HOUR)) == list(one.forecast(changed_after(DAYS, now), now, horizon, HOUR))
    for other in (PerfectForecast(), NoisyForecast()):
        two = Forecaster(other, 1, 2, "x")
        truth, beyond, within = (s for s in (DAYS, changed_after(DAYS, now + horizon), changed_after(DAYS, now)))
        assert list(two.forecast(truth, now, horizon, HOUR)) == list(two.forecast(beyond, now, horizon, HOUR))
        assert list(two.forecast(truth, now, horizon, HOUR)) != list(two.forecast(within, now, horizon, HOUR))


def test_noise_grows_with_the_root_of_the_time_ahead() -> None:
    flat = hourly([200.0] * 24, "hold")
    model = NoisyForecast(sigma_1h=0.04, sigma_max=0.15)
    found = np.array([Forecaster(model, seed, 0, "x").forecast(flat, 0, 36 * HOUR, HOUR) for seed in range(3000)]) / 200 - 1
    sigma = found.std(axis=0)
    expected = np.minimum(0.04 * np.sqrt(np.arange(36) + 0.5), 0.15)
    assert sigma == pytest.approx(expected, rel=0.06)
    assert np.abs(found.mean(axis=0)) == pytest.approx(0, abs=0.012)


def test_noise_is_fixed_by_seed_episode_and_source_and_shrinks_as_its_time_nears() -> None:
    model = NoisyForecast(sigma_1h=0.1)

    def error(seed: int = 1, episode: int = 0, source: str = "carbon", now_h: int = 0) -> float:
        forecaster = Forecaster(model, seed, episode, source)
        forecaster.forecast(DAYS, 50 * HOUR, HOUR, HOUR)  # the order of calls does not matter
        found = forecaster.forecast(DAYS, now_h * HOUR, (21 - now_h) * HOUR, HOUR)[-1]
        return float(found / DAYS.value(20 * HOUR) - 1)

    assert error() == error()
    assert len({error(), error(seed=2), error(episode=1), error(source="price")}) == 4
    errors = np.abs([error(now_h=h) for h in (0, 10, 18, 20)])
    assert np.all(np.diff(errors) < 0)


def test_forecasts_stay_non_negative_and_keep_negative_prices() -> None:
    wild = Forecaster(NoisyForecast(sigma_1h=2.0, sigma_max=2.0), 3, 0, "x")
    assert wild.forecast(hourly([5.0] * 48), 0, 40 * HOUR, HOUR).min() >= 0
    assert wild.forecast(hourly([-5.0] * 48), 0, 40 * HOUR, HOUR).max() <= 0


def test_a_forecast_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="must be > 0"):
        Forecaster(PerfectForecast(), 0, 0, "x").forecast(DAYS, 0, 0, HOUR)

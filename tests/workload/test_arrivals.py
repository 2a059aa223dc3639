"""Arrival processes: rates, shape of the day, burstiness."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from hetenv.workload.arrivals import Arrivals, BurstyArrivals, DiurnalArrivals, PoissonArrivals

HOUR_S, DAY_S = 3600.0, 86_400.0
PARSE: TypeAdapter[Any] = TypeAdapter(Arrivals)


def index_of_dispersion(times: NDArray[np.float64], horizon_s: float, window_s: float) -> float:
    counts = np.histogram(times, np.arange(0.0, horizon_s + 1, window_s))[0]
    return float(counts.var() / counts.mean())


@pytest.mark.parametrize(
    "process",
    [
        PoissonArrivals(rate_per_h=20),
        DiurnalArrivals(rate_per_h=20, amplitude=0.8),
        BurstyArrivals(rate_per_h=20, dispersion=6, amplitude=0.5),
    ],
    ids=lambda process: process.kind,
)
def test_mean_rate_is_the_stated_one(process: Any) -> None:
    horizon_s = 400 * DAY_S
    times = process.draw(np.random.default_rng(0), horizon_s)
    expected = 20 * 24 * 400
    assert abs(times.size - expected) < 4 * np.sqrt(6 * expected)
    assert np.all(np.diff(times) >= 0) and times[0] >= 0 and times[-1] < horizon_s


@pytest.mark.parametrize("dispersion", [1.0, 3.0, 10.0, 40.0])
def test_index_of_dispersion_is_the_stated_one(dispersion: float) -> None:
    process = BurstyArrivals(rate_per_h=30, dispersion=dispersion, burst_span_s=120)
    horizon_s = 4000 * DAY_S
    times = process.draw(np.random.default_rng(1), horizon_s)
    assert index_of_dispersion(times, horizon_s, 6 * HOUR_S) == pytest.approx(dispersion, rel=0.08)


def test_poisson_has_dispersion_one() -> None:
    times = PoissonArrivals(rate_per_h=30).draw(np.random.default_rng(2), 2000 * DAY_S)
    assert index_of_dispersion(times, 2000 * DAY_S, 6 * HOUR_S) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("kind", ["diurnal", "bursty"])
def test_the_day_has_its_peak_and_amplitude(kind: str) -> None:
    process = PARSE.validate_python(
        {"kind": kind, "rate_per_h": 30, "amplitude": 0.6, "peak_hour": 15, "start_hour": 9}
    )
    times = process.draw(np.random.default_rng(3), 3000 * DAY_S)
    hour = (9 + times / HOUR_S) % 24
    wave = 2 * np.exp(1j * 2 * np.pi * hour / 24).mean()  # first Fourier coefficient: amplitude x exp(i peak)
    assert abs(wave) == pytest.approx(0.6, abs=0.03)
    assert np.angle(wave) % (2 * np.pi) * 24 / (2 * np.pi) == pytest.approx(15, abs=0.3)


def test_bursts_have_no_lull_at_the_start() -> None:
    process = BurstyArrivals(rate_per_h=60, dispersion=19, burst_span_s=3600)
    first_hour = [np.sum(process.draw(np.random.default_rng(seed), 4 * HOUR_S) < HOUR_S) for seed in range(600)]
    assert np.mean(first_hour) == pytest.approx(60, rel=0.06)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["poisson", "diurnal", "bursty"]), st.floats(0, 100), st.floats(1, 200_000), st.integers(0, 2**31)
)
def test_times_are_sorted_and_inside_the_horizon(kind: str, rate: float, horizon_s: float, seed: int) -> None:
    times = PARSE.validate_python({"kind": kind, "rate_per_h": rate}).draw(np.random.default_rng(seed), horizon_s)
    assert np.all(np.diff(times) >= 0) and np.all((times >= 0) & (times < horizon_s))


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "poisson"},
        {"kind": "poisson", "rate_per_h": -1},
        {"kind": "poisson", "rate_per_h": 1, "dispersion": 2},
        {"kind": "bursty", "rate_per_h": 1, "dispersion": 0.5},
        {"kind": "diurnal", "rate_per_h": 1, "amplitude": 1.5},
        {"kind": "weekly", "rate_per_h": 1},
    ],
)
def test_bad_fields_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PARSE.validate_python(fields)

"""Signals: values, integrals, gaps, ends, instants."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetenv.errors import TraceError
from hetenv.events.forecasts import Forecaster, PerfectForecast
from hetenv.events.signals import EndPolicy, Signal
from hetenv.traces import SERIES_FORMATS
from hetenv.traces.series import Series

HOUR = 3600.0
ENDS: tuple[EndPolicy, ...] = ("hold", "wrap", "raise")


def hourly(values: list[float], end: EndPolicy = "raise", first_s: float = 0.0) -> Signal:
    at_s = first_s + HOUR * np.arange(len(values))
    return Signal(at_s, np.array(values, float), float(at_s[-1] + HOUR), end)


def series(values: list[float], at_h: list[float] | None = None, origin: str | None = "2024-07-01") -> Series:
    at_s = HOUR * np.arange(len(values)) if at_h is None else HOUR * np.array(at_h)
    return Series(
        "carbon", "g/kWh", at_s, np.array(values, float), HOUR, None if origin is None else np.datetime64(origin, "ms"), "UTC",
        is_naive=origin is None,
    )  # fmt: skip


def test_a_value_holds_from_its_stamp_on() -> None:
    signal = hourly([1, 2, 4])
    assert list(signal.value([0, 3599.999, 3600, 10_799.9])) == [1, 1, 2, 4]
    assert signal.integral(1800, 9000) == 1800 * 1 + 3600 * 2 + 1800 * 4
    assert signal.mean(0, 3 * HOUR) == pytest.approx(7 / 3)
    times, values = signal.steps(1800, 7200)
    assert list(times) == [1800, 3600] and list(values) == [1, 2]
    assert list(signal.integrals([0, 600, 4200])) == [600, 3000 + 1200]
    assert signal.integral(5, 5) == 0


def test_p27_gaps_are_never_zero_and_never_win() -> None:
    signal = Signal.of(series([300, np.nan, 100, 500, np.nan, 200]))
    values = signal.value(HOUR * np.arange(6))
    assert list(values) == [300, 200, 100, 500, 350, 200] and signal.n_filled == 2
    assert int(values.argmin()) == 2


def test_p27_missing_rows_are_filled_like_missing_values() -> None:
    signal = Signal.of(series([300, 100, 500], at_h=[0, 3, 4]))
    assert list(signal.value(HOUR * np.arange(5))) == pytest.approx([300, 300 - 200 / 3, 300 - 400 / 3, 100, 500])
    assert signal.n_filled == 2
    edges = Signal.of(series([np.nan, 5, 7, np.nan]))
    assert list(edges.value(HOUR * np.arange(4))) == [5, 5, 7, 7] and edges.span_s == 4 * HOUR


def test_p27_a_longer_gap_than_the_limit_is_an_error() -> None:
    hole = series([1, 2, 3, 4], at_h=[0, 1, 26, 27])  # 24 hours are missing
    with pytest.raises(TraceError, match=r"carbon: nothing known for 24 h from 2024-07-01T02:00:00Z on, more than max_gap 23 h"):
        Signal.of(hole, max_gap_s=23 * HOUR)
    assert Signal.of(hole, max_gap_s=24 * HOUR).n_filled == 24
    with pytest.raises(TraceError, match="nothing known for 1 h"):
        Signal.of(series([1, np.nan, 2]), max_gap_s=0)
    with pytest.raises(TraceError, match="nothing known for 2 h"):
        Signal.of(series([1, np.nan, np.nan]), max_gap_s=HOUR)
    with pytest.raises(TraceError, match="no value at all"):
        Signal.of(series([np.nan, np.nan]))


@settings(max_examples=200)
@given(st.lists(st.one_of(st.none(), st.floats(-1e3, 1e3)), min_size=2, max_size=20).filter(lambda v: any(x is not None for x in v)))
def test_p27_a_filled_value_lies_between_its_neighbours(cells: list[float | None]) -> None:
    signal = Signal.of(series([np.nan if cell is None else cell for cell in cells]), max_gap_s=1e9)
    for hour, cell in enumerate(cells):
        value = float(signal.value(hour * HOUR))
        before = [x for x in cells[:hour] if x is not None][-1:]
        after = [x for x in cells[hour + 1 :] if x is not None][:1]
        bounds = [cell] if cell is not None else before + after
        assert min(bounds) - 1e-9 <= value <= max(bounds) + 1e-9


def test_p27_one_policy_after_the_end_for_value_integral_and_forecast() -> None:
    """A simulation three times as long as the record."""
    perfect = Forecaster(PerfectForecast(), 0, 0, "carbon")
    hold, wrap, strict = (hourly([1, 2, 4], end) for end in ENDS)
    at_s = HOUR * np.arange(9)
    assert list(hold.value(at_s)) == [1, 2, 4, 4, 4, 4, 4, 4, 4]
    assert list(wrap.value(at_s)) == [1, 2, 4, 1, 2, 4, 1, 2, 4]
    assert hold.integral(0, 9 * HOUR) == HOUR * (7 + 6 * 4) and wrap.integral(0, 9 * HOUR) == HOUR * 21
    for signal in (hold, wrap):
        assert list(perfect.forecast(signal, 0, 9 * HOUR, HOUR)) == list(signal.value(at_s))
        assert perfect.forecast(signal, 8.5 * HOUR, 24 * HOUR, HOUR).shape == (24,)
    for ask in (
        lambda: strict.value(3 * HOUR),
        lambda: strict.integral(2 * HOUR, 3.1 * HOUR),
        lambda: strict.steps(-1.0, HOUR),
        lambda: perfect.forecast(strict, 2 * HOUR, 2 * HOUR, HOUR),
    ):
        with pytest.raises(TraceError, match=r"lies outside the record, 0 to 10800 s; choose another window or the end policy"):
            ask()
    assert strict.integral(0, 3 * HOUR) == 7 * HOUR


def test_before_the_record_the_same_policy_counts() -> None:
    hold, wrap = (hourly([1, 2, 4], end, first_s=7200.0) for end in ("hold", "wrap"))
    assert list(hold.value([0, 7200, 1e6])) == [1, 1, 4] and hold.integral(0, 7200) == 7200
    assert list(wrap.value([0, 3600, 7200])) == [2, 4, 1] and wrap.integral(-3600, 7200) == 3600 * 7


@settings(max_examples=200)
@given(
    st.lists(st.floats(-500, 500), min_size=1, max_size=12),
    st.sampled_from(("hold", "wrap")),
    st.lists(st.floats(-50_000, 100_000), min_size=2, max_size=6, unique=True),
)
def test_integrals_agree_with_values_at_fine_steps(values: list[float], end: EndPolicy, edges: list[float]) -> None:
    signal, edges = hourly(values, end), sorted(round(edge) + 0.0 for edge in edges)
    edges = sorted(set(edges))
    if len(edges) < 2:
        return
    seconds = np.arange(edges[0], edges[-1])
    assert signal.integral(edges[0], edges[-1]) == pytest.approx(signal.value(seconds).sum(), rel=1e-9, abs=1e-5)
    parts = [signal.value(np.arange(a, b)).sum() for a, b in zip(edges, edges[1:])]
    assert signal.integrals(edges) == pytest.approx(parts, rel=1e-9, abs=1e-5)


def test_p26_instants_state_their_zone() -> None:
    signal = Signal.of(series([float(h) for h in range(24)]))
    noon = datetime(2024, 7, 1, 12, tzinfo=timezone(timedelta(hours=-7)))  # Los Angeles in July
    assert signal.value(signal.seconds(noon)) == 19.0
    assert signal.seconds(noon) == signal.seconds(datetime(2024, 7, 1, 19, tzinfo=UTC))
    with pytest.raises(TraceError, match="2024-07-01T12:00:00 states no zone"):
        signal.seconds(datetime(2024, 7, 1, 12))
    with pytest.raises(TraceError, match="its stamps are naive and no zone is stated; state the file's `zone`"):
        Signal.of(series([1, 2], origin=None))
    with pytest.raises(TraceError, match="has no dates"):
        hourly([1.0]).seconds(noon)


def test_p26_a_file_s_stamp_is_its_instant(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Datetime (UTC),Datetime (Local),Price (USD/MWh)\n2024-07-01 19:00:00+00:00,2024-07-01 12:00:00-07:00,5\n"
                    "2024-07-01 20:00:00+00:00,2024-07-01 13:00:00-07:00,6\n")  # fmt: skip
    signal = Signal.of(SERIES_FORMATS["prices"].load(path).pick())
    assert signal.value(signal.seconds(datetime(2024, 7, 1, 12, 59, tzinfo=timezone(timedelta(hours=-7))))) == 5
    with pytest.raises(TraceError):
        signal.value(signal.seconds(datetime(2024, 7, 2, 2, tzinfo=UTC)))


def test_a_typical_year_repeats_whatever_the_policy() -> None:
    at_s = HOUR * np.arange(8760) + 8 * HOUR
    year = Series("ghi", "W/m2", at_s, np.arange(8760.0), HOUR, None, "", is_typical_year=True)
    signal = Signal.of(year, "raise")
    assert signal.end == "wrap" and signal.value(0.0) == 8752 and signal.value(365 * 86400 + 8 * HOUR) == 0
    half = Series("ghi", "W/m2", at_s[:100], np.arange(100.0), HOUR, None, "", is_typical_year=True)
    assert Signal.of(half, "raise").end == "raise"


def test_p07_a_shift_of_the_clock_changes_nothing() -> None:
    plain, late = hourly([1.5, 2.25, 4.125], "wrap"), hourly([1.5, 2.25, 4.125], "wrap").shifted(1.7e9)
    edges = np.array([0, 777, 5000, 90_000.0])
    assert plain.integrals(edges) == pytest.approx(late.integrals(edges + 1.7e9), rel=1e-9)
    assert list(plain.value(edges)) == list(late.value(edges + 1.7e9))


@pytest.mark.parametrize(
    "at, values, end_s, message",
    [
        ([0, 0], [1, 2], 5, "times must increase"),
        ([0, 3], [1, 2], 3, "end_s lie after"),
        ([0, 1], [1, np.nan], 5, "must be finite; fill gaps"),
        ([0], [1, 2], 5, "two equal rows"),
    ],
)
def test_what_is_no_signal_is_refused(at: list[float], values: list[float], end_s: float, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        Signal(np.array(at, float), np.array(values, float), float(end_s))
    with pytest.raises(ValueError, match="end after it begins"):
        hourly([1, 2]).steps(5, 4)

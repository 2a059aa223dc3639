"""Recorded signals of sites: units, windows, plants, curtailment; and the published replay, through the simulator's accounts."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from hetenv.cluster import Cluster
from hetenv.errors import ScenarioError, TraceError
from hetenv.events import RecordedSeries
from hetenv.events.series import SOLAR_AIR, UNITS, SiteSeries
from hetenv.events.signals import Signal
from hetenv.events.stream import Effect, EventContext, merge, source_rng
from hetenv.traces import SERIES_FORMATS
from hetenv.traces.paths import shared_folder
from tests.traces.energy.test_quirks import EPW_HEAD, epw_line

HOUR = 3600.0
KWH, MWH = 3.6e6, 3.6e9
AT = {"kind": "at", "utc": "2023-06-01T00:00:00Z"}
EIA = {"path": "mix.csv", "format": "eia_mix"}
PRICE = {"path": "prices.csv", "format": "prices"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four days of hours from 1 June 2023: a mix (SUN 0..5000 MW), and prices from -30 to 85 by hour of the day."""
    hours = [f"2023-06-0{d} {h:02}:00:00+00:00" for d in (1, 2, 3, 4) for h in range(24)]
    mix = [f"{at},100,{max(0, 5000 - 1000 * abs(k % 24 - 12))},300,{100 + k % 24}" for k, at in enumerate(hours)]
    (tmp_path / "mix.csv").write_text("\n".join(["timestamp,WND,SUN,NG,avg_CI", *mix]))
    prices = [f"{at},{5 * (k % 24) - 30}" for k, at in enumerate(hours)]
    (tmp_path / "prices.csv").write_text("\n".join(["Datetime (UTC),Price (USD/MWh)", *prices]))
    (tmp_path / "euro.csv").write_text("\n".join(["Datetime,Price (EUR/MWh)", "2023-06-01 02:00:00,10", "2023-06-01 03:00:00,20"]))
    weather = [
        epw_line(6, d, h, ghi=1000 if h == 13 else 0, temp=25, wind=6 if h == 13 else 0)
        for d in range(1, 5) for h in range(1, 25)
    ]  # fmt: skip
    (tmp_path / "w.epw").write_text("\n".join([*EPW_HEAD, *weather]))
    return tmp_path


def source(site: dict[str, Any], **more: Any) -> RecordedSeries:
    return RecordedSeries.model_validate({"start": AT, "sites": {"south": site}, **more})


def draw(cluster: Cluster, folder: Path, config: RecordedSeries, hours: float = 24, seed: int = 0) -> NDArray[np.void]:
    return config.draw(source_rng(seed, 0, "series"), EventContext(cluster, np.zeros(0), hours * HOUR, folder, (), seed))


def of(found: NDArray[np.void], effect: Effect) -> tuple[list[float], list[float]]:
    rows = found[found["effect"] == effect]
    assert set(rows["target"]) <= {1}
    return rows["at"].tolist(), rows["value"].tolist()


def test_carbon_and_price_are_in_si_and_start_at_zero(cluster: Cluster, folder: Path) -> None:
    found = draw(cluster, folder, source({"carbon": EIA, "price": PRICE}))
    at_s, carbon = of(found, Effect.SITE_CARBON)
    assert at_s == [HOUR * h for h in range(24)] and carbon == pytest.approx([(100 + h) / 1000 / KWH for h in range(24)])
    _, price = of(found, Effect.SITE_PRICE)
    assert price == pytest.approx([(5 * h - 30) / MWH for h in range(24)])
    assert set(found["effect"]) == {Effect.SITE_CARBON, Effect.SITE_PRICE}


def test_the_start_need_not_be_a_stamp_and_equal_values_make_no_row(cluster: Cluster, folder: Path) -> None:
    at = {"kind": "at", "utc": "2023-06-01T02:30:00+02:00"}
    found = draw(cluster, folder, source({"power": {**EIA, "column": "SUN", "peak_w": 5e4}}, start=at), hours=12)
    at_s, watts = of(found, Effect.SITE_RENEWABLE)
    assert at_s == [0, *(HOUR * h + 1800 for h in range(7, 12))]
    assert watts == pytest.approx([0, 1e4, 2e4, 3e4, 4e4, 5e4])


def test_p28_another_currency_needs_its_rate(cluster: Cluster, folder: Path) -> None:
    euro = {"path": "euro.csv", "format": "prices", "zone": "Europe/Berlin"}
    with pytest.raises(ScenarioError, match=r"events\.series\.sites\.south\.price\.usd: the file is in EUR/MWh; state the USD per EUR"):
        draw(cluster, folder, source({"price": euro}), hours=2)
    _, price = of(draw(cluster, folder, source({"price": {**euro, "usd": 1.1}}), hours=2), Effect.SITE_PRICE)
    assert price == pytest.approx([11 / MWH, 22 / MWH])


@pytest.mark.parametrize(
    "site, message",
    [
        ({"carbon": PRICE}, r"south\.carbon\.column: series 'price' is in USD/MWh; needed is g/kWh"),
        ({"price": EIA}, r"south\.price\.column: series 'avg_CI' is in g/kWh; needed is \*/MWh"),
        ({"power": {**EIA, "peak_w": 1}}, r"south\.power\.column: series 'avg_CI' is in g/kWh; needed is 1 or MW"),
        ({"carbon": {**EIA, "column": "CO2"}}, r"south\.carbon: unknown column 'CO2'"),
        ({"carbon": {**EIA, "path": "none.csv"}}, r"south\.carbon: path 'none.csv': no file"),
        ({"price": {"path": "euro.csv", "format": "prices", "usd": 1}}, r"south\.price\.zone: the stamps of euro.csv are naive"),
        ({"curtailed": [{"kind": "low_carbon", "power_w": 1}]}, r"south\.curtailed\[0\]: low_carbon needs the site's marginal_carbon or"),
    ],
)
def test_what_a_file_does_not_hold_is_named(cluster: Cluster, folder: Path, site: dict[str, Any], message: str) -> None:
    with pytest.raises((ScenarioError, TraceError), match=message):
        draw(cluster, folder, source(site))


def test_an_unknown_site_or_format_and_a_naive_start_are_refused(cluster: Cluster, folder: Path) -> None:
    wrong = RecordedSeries.model_validate({"start": AT, "sites": {"soth": {"carbon": EIA}}})
    with pytest.raises(ScenarioError, match=r"events\.series\.sites: unknown site 'soth'; did you mean 'south'"):
        draw(cluster, folder, wrong)
    with pytest.raises(ValidationError, match="unknown signal format 'eia'"):
        source({"carbon": {**EIA, "format": "eia"}})
    with pytest.raises(ValidationError, match="timezone"):
        source({"carbon": EIA}, start={"kind": "at", "utc": "2023-06-01T00:00:00"})


def test_p27_the_end_policy_of_an_episode_beyond_the_record(cluster: Cluster, folder: Path) -> None:
    at_s = [96 * HOUR + 5, 4 * 96 * HOUR - 1]
    with pytest.raises(TraceError, match=r"south\.carbon: avg_CI: .* lies outside the record.*end policy hold or wrap"):
        draw(cluster, folder, source({"carbon": EIA}), hours=3 * 96)
    for end, expected in (("hold", [123, 123]), ("wrap", [100, 123])):
        found = draw(cluster, folder, source({"carbon": EIA}, end=end), hours=4 * 96)
        signal = Signal.of_rows(merge({"a": found}), Effect.SITE_CARBON, 1, 0.0, 4 * 96 * HOUR)
        assert signal.value(at_s) * 1000 * KWH == pytest.approx(expected)


# --- windows ---

DAYS = {"test": [["2023-06-01", "2023-06-02"]], "validation": [["2023-06-03", "2023-06-03"]], "train": [["2023-06-04", "2023-06-04"]]}


def starts(cluster: Cluster, folder: Path, config: RecordedSeries, seeds: range, hours: float = 12) -> set[datetime]:
    return {
        config.signals(source_rng(seed, 0, "series"), EventContext(cluster, np.zeros(0), hours * HOUR, folder, (), seed))[0]
        for seed in seeds
    }


def test_seeded_windows_are_disjoint_by_split(cluster: Cluster, folder: Path) -> None:
    config = source({"carbon": EIA}, start={"kind": "seeded", **DAYS})
    june = datetime(2023, 6, 1, tzinfo=UTC)
    drawn = {first: starts(cluster, folder, config, range(first, first + 500)) for first in (0, 100_000, 1_000_000)}
    hours = {0: range(37), 100_000: range(48, 61), 1_000_000: range(72, 85)}
    whole = {first: {june + timedelta(hours=h) for h in chosen} for first, chosen in hours.items()}
    assert drawn == whole
    with pytest.raises(ScenarioError, match=r"events\.series\.start\.train: no stretch of 30 h in these days that the files cover"):
        starts(cluster, folder, config, range(1_000_000, 1_000_001), hours=30)


def test_windows_avoid_long_gaps_and_fill_short_ones(cluster: Cluster, folder: Path) -> None:
    lines = (folder / "mix.csv").read_text().splitlines()
    (folder / "mix.csv").write_text("\n".join([*lines[:11], *lines[19:31], *lines[32:]]))  # hours 10-17 and 30 are missing
    config = source({"carbon": EIA}, start={"kind": "seeded", **DAYS})
    june = datetime(2023, 6, 1, tzinfo=UTC)
    assert starts(cluster, folder, config, range(500), hours=6) == {june + timedelta(hours=h) for h in (*range(5), *range(18, 43))}
    for seed in range(20):
        _, carbon = of(draw(cluster, folder, config, hours=6, seed=seed), Effect.SITE_CARBON)
        assert min(carbon) * 1000 * KWH >= 99.999 and max(carbon) * 1000 * KWH <= 123.001
    with pytest.raises(TraceError, match="nothing known for 8 h from 2023-06-01T10:00:00Z on, more than max_gap 6 h"):
        draw(cluster, folder, source({"carbon": EIA}))
    assert len(of(draw(cluster, folder, source({"carbon": {**EIA, "max_gap_h": 8}})), Effect.SITE_CARBON)[0]) == 24


@pytest.mark.parametrize(
    "days, message",
    [
        ({"train": [["2023-06-02", "2023-06-04"]]}, "day 2023-06-02 stands in two places"),
        ({"train": [["2023-06-09", "2023-06-08"]]}, "2023-06-09 to 2023-06-08 end before they begin"),
    ],
)
def test_overlapping_splits_are_refused(days: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        source({"carbon": EIA}, start={"kind": "seeded", **DAYS, **days})


def test_p07_a_shift_of_file_and_start_together_changes_no_row(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    later = tmp_path / "later"
    later.mkdir()
    shift = timedelta(seconds=1.7e9)
    lines = (folder / "mix.csv").read_text().splitlines()
    moved = [f"{datetime.fromisoformat(line[:25]) + shift}{line[25:]}" for line in lines[1:]]
    (later / "mix.csv").write_text("\n".join([lines[0], *moved]))
    start = datetime(2023, 6, 1, 3, 20, tzinfo=UTC)
    configs = [source({"carbon": EIA}, start={"kind": "at", "utc": utc}) for utc in (start, start + shift)]
    found = [draw(cluster, place, config) for place, config in zip((folder, later), configs)]
    assert found[0].tolist() == found[1].tolist()


# --- plants and curtailment ---


def test_a_solar_plant_follows_irradiance_and_temperature(cluster: Cluster, folder: Path) -> None:
    """1,000 W/m2 at 12-13 h standard time (20 h UTC): cell at 25 + 1000/800 x 25 = 56.25 deg C, so 1 - 0.0047 x 31.25."""
    found = draw(cluster, folder, source({"solar": {"path": "w.epw", "peak_w": 1e5}}, start={"kind": "at", "utc": "2031-06-02T00:00Z"}))
    at_s, watts = of(found, Effect.SITE_RENEWABLE)
    assert at_s == [0, 20 * HOUR, 21 * HOUR] and watts == pytest.approx([0, 1e5 * (1 - 0.0047 * 31.25), 0])
    cold = source({"solar": {"path": "w.epw", "peak_w": 1e5, "power_per_c": 0}}, start={"kind": "at", "utc": "2031-06-02T20:00Z"})
    assert of(draw(cluster, folder, cold, hours=1), Effect.SITE_RENEWABLE)[1] == [1e5]


def test_wind_turbines_follow_the_speed_at_their_height(cluster: Cluster, folder: Path) -> None:
    found = draw(cluster, folder, source({"wind": {"path": "w.epw", "rated_w": 1e6}}, start={"kind": "at", "utc": "2031-06-02T20:00Z"}), 1)
    speed = 6 * 10 ** (1 / 7)
    assert of(found, Effect.SITE_RENEWABLE)[1] == pytest.approx([1e6 * (speed**3 - 27) / (12**3 - 27)])


def test_plants_add_up_and_local_demand_is_served_first(cluster: Cluster, folder: Path) -> None:
    site = {
        "power": {**EIA, "column": "SUN", "peak_w": 5e4},
        "local_demand": {**EIA, "column": "WND", "peak_w": 2e4},
        "local_demand_w": 5e3,
    }
    _, watts = of(draw(cluster, folder, source(site)), Effect.SITE_RENEWABLE)
    assert watts == pytest.approx([0, 5e3, 15e3, 25e3, 15e3, 5e3, 0])  # 0..50 kW of sun less 25 kW


def test_curtailed_power_is_there_while_price_or_marginal_carbon_is_low(cluster: Cluster, folder: Path) -> None:
    site = {
        "price": PRICE,
        "carbon": EIA,
        "curtailed": [{"kind": "low_price", "power_w": 1e4}, {"kind": "low_carbon", "below_g_per_kwh": 103, "power_w": 500}],
    }
    at_s, watts = of(draw(cluster, folder, source(site)), Effect.SITE_RENEWABLE)
    assert at_s == [0, 3 * HOUR, 6 * HOUR] and watts == [10_500, 10_000, 0]  # below 103 g to hour 3, below 0 USD to hour 6
    marginal = {**site, "marginal_carbon": {**EIA, "scale": 0.5}, "curtailed": site["curtailed"][1:]}
    assert of(draw(cluster, folder, source(marginal)), Effect.SITE_RENEWABLE) == ([0], [500])  # 50 to 61.5 g


def test_marginal_carbon_and_temperature_are_effects_of_their_own(cluster: Cluster, folder: Path) -> None:
    site = {"carbon": EIA, "marginal_carbon": {**EIA, "scale": 2.0}, "temperature": {"path": "w.epw"}}
    found = draw(cluster, folder, source(site, start={"kind": "at", "utc": "2023-06-02T00:00:00Z"}), hours=2)
    assert of(found, Effect.SITE_MARGINAL_CARBON)[1] == pytest.approx([200 / 1000 / KWH, 202 / 1000 / KWH])
    assert of(found, Effect.SITE_CARBON)[1] == pytest.approx([100 / 1000 / KWH, 101 / 1000 / KWH])
    assert of(found, Effect.SITE_TEMPERATURE) == ([0.0], [25.0])


def test_files_without_dates_need_the_instant_of_their_begin(cluster: Cluster, folder: Path) -> None:
    (folder / "solar.csv").write_text("time,Berlin\n0,0\n300,0.5\n600,0.25\n")
    power = {"path": "solar.csv", "format": "vessim", "peak_w": 1e3}
    with pytest.raises(ScenarioError, match=r"south\.power\.first_utc: solar.csv has no dates"):
        draw(cluster, folder, source({"power": power}), hours=0.1)
    stated = source({"power": {**power, "first_utc": "2023-06-01T02:00:00+02:00"}}, end="hold")
    assert of(draw(cluster, folder, stated), Effect.SITE_RENEWABLE) == ([0, 300, 600], [0, 500, 250])


def test_a_publisher_s_wrong_zone_can_be_shifted(cluster: Cluster, folder: Path) -> None:
    shifted = source({"carbon": {**EIA, "shift_h": -8}})
    assert of(draw(cluster, folder, shifted, hours=2), Effect.SITE_CARBON)[1] == pytest.approx([108 / 1000 / KWH, 109 / 1000 / KWH])


def test_every_key_has_a_unit() -> None:
    files = {name for name, field in SiteSeries.model_fields.items() if "File" in str(field.annotation)}
    assert files | {SOLAR_AIR} == set(UNITS)


# --- the published figures ---


@pytest.fixture(scope="module")
def energy() -> Path:
    folder = shared_folder() / "data/energy"
    if not folder.is_dir():
        pytest.skip(f"the shared data folder is absent ({folder}); set HETENV_SHARED")
    return folder


@pytest.mark.parametrize("region, kg", [("CAISO_NORTH", 11.41), ("SPP_TX", 14.55)])
def test_training_through_a_marginal_carbon_series(energy: Path, region: str, kg: float) -> None:
    """arXiv 2602.22760: 2.024 kW for 64,025 s from the first row."""
    signal = Signal.of(SERIES_FORMATS["watttime_mci"].load(energy / "watttime_mci/mci.csv").pick(region))
    kwh_per_s = 2.024 / 3600
    assert kwh_per_s * 64_025 == pytest.approx(36.00, abs=0.005)
    assert signal.integral(0.0 + signal.first_s, signal.first_s + 64_025) * kwh_per_s / 1000 == pytest.approx(kg, abs=0.005)


def test_real_files_of_every_kind_make_a_site(cluster: Cluster, energy: Path) -> None:
    """A year of California: carbon, price, weather and mix together, on one clock."""
    weather = "shared:data/energy/epw/USA_CA_San.Jose-Mineta.epw.gz"
    site = {
        "carbon": {"path": "shared:data/energy/electricitymaps/US-CAL-CISO_2023_hourly.csv", "format": "electricitymaps"},
        "price": {"path": "shared:data/energy/prices/standardized_US-CAL-CISO_2023.csv", "format": "prices"},
        "solar": {"path": weather, "peak_w": 1e5},
        "wind": {"path": weather, "rated_w": 1e5},
    }
    days = {"train": [["2023-01-01", "2023-04-30"]], "validation": [["2023-05-01", "2023-05-31"]], "test": [["2023-06-01", "2023-06-30"]]}
    config = source(site, start={"kind": "seeded", **days})
    noon, night = [], []
    for seed in range(20):
        _, signals = config.signals(source_rng(seed, 0, "series"), EventContext(cluster, np.zeros(0), 72 * HOUR, None, (), seed))
        start = config.signals(source_rng(seed, 0, "series"), EventContext(cluster, np.zeros(0), 72 * HOUR, None, (), seed))[0]
        assert start.month == 6
        at_s = (20 - start.hour) % 24 * HOUR + 0.5 * HOUR  # 20:30 UTC is 12:30 in San Jose
        noon.append(signals["south"]["solar"].value(at_s))
        night.append(signals["south"]["solar"].value(at_s + 12 * HOUR))
    assert min(noon) > 100 and np.mean(noon) > 700 and max(night) == 0


def test_a_site_is_capped_while_its_price_is_high(cluster: Cluster, folder: Path) -> None:
    capped = {"price": PRICE, "capped": {"above_usd_per_mwh": 60, "cap_w": 5000}}
    at, cap = of(draw(cluster, folder, source(capped), hours=48), Effect.SITE_POWER_CAP)
    # 5 h - 30 USD/MWh is above 60 from 19 h to midnight
    assert at == [0, 19 * HOUR, 24 * HOUR, 43 * HOUR] and cap == [np.inf, 5000, np.inf, 5000]
    plain = draw(cluster, folder, source({"price": PRICE}), hours=48)
    assert of(draw(cluster, folder, source(capped), hours=48), Effect.SITE_PRICE) == of(plain, Effect.SITE_PRICE)
    with pytest.raises(ValidationError, match="capped: needs `price`"):
        source({"capped": {"above_usd_per_mwh": 60, "cap_w": 5000}})

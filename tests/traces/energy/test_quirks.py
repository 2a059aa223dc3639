"""Oddities of the signal formats, each on a few lines written by hand."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from hetenv.errors import TraceError
from hetenv.traces import SERIES_FORMATS
from hetenv.traces.series import Series, SeriesFile
from tests.traces.energy.conftest import Write

EM = (
    "Datetime (UTC),Country,Zone Name,Zone Id,Carbon Intensity gCO₂eq/kWh (direct),Carbon Intensity gCO₂eq/kWh (LCA),"
    "Low Carbon Percentage,Renewable Percentage,Data Source,Data Estimated,Data Estimation Method"
)
AEMO = "REGION,SETTLEMENTDATE,TOTALDEMAND,RRP,PERIODTYPE"
EPW_HEAD = (
    "LOCATION,Nowhere,XX,USA,TMY,1,37.0,-122.0,-8.0,15.5",
    *("DESIGN CONDITIONS,0", "TYPICAL/EXTREME PERIODS,0", "GROUND TEMPERATURES,0", "HOLIDAYS/DAYLIGHT SAVINGS,No,0,0,0"),
    *("COMMENTS 1,", "COMMENTS 2,", "DATA PERIODS,1,1,Data,Sunday,1/ 1,12/31"),
)


def epw_line(month: int, day: int, hour: int, ghi: float = 0, temp: float = 10, wind: float = 3, year: int = 2012) -> str:
    fields = [year, month, day, hour, 0, "?", temp, 5, 80, 101000, 0, 0, 260, ghi, 0, 0, 0, 0, 0, 0, 90, wind, 0, 0]
    return ",".join(map(str, fields))


def load(format: str, path: Path, zone: str | None = None) -> SeriesFile:
    return SERIES_FORMATS[format].load(path, zone)


def instants(series: Series) -> list[str]:
    assert series.origin is not None
    at = series.origin + (series.at_s * 1e3).astype("timedelta64[ms]")
    return [str(stamp)[:16] for stamp in at]


def test_aemo_stamps_end_their_period_in_utc_plus_10(write: Write) -> None:
    lines = [f"SA1,2017/01/01 {h}:00,1000,{price},TRADE" for h, price in (("00:30", 50), ("01:00", -1000), ("01:30", 14000))]
    found = load("aemo", write(AEMO, *lines))
    price = found.pick()
    assert price.name == "RRP" and price.unit == "AUD/MWh"
    assert instants(price) == ["2016-12-31T14:00", "2016-12-31T14:30", "2016-12-31T15:00"]
    assert list(price.values) == [50, -1000, 14000]
    assert found.statistics["n_negative_price"] == 1 and not found.statistics["crlf"]


def test_aemo_five_minute_files_shift_by_five_minutes(write: Write) -> None:
    lines = [f'"NSW1","2024/07/01 00:{m:02}:00",7000,10,TRADE' for m in (5, 10, 15)]
    found = load("aemo", write(AEMO, *lines, end="\r\n"))
    assert instants(found.pick())[0] == "2024-06-30T14:00" and found.report.step_s == 300
    assert found.statistics["step_minutes"] == 5 and found.statistics["crlf"]


def test_aemo_months_of_a_folder_are_one_series(write: Write, tmp_path: Path) -> None:
    write(AEMO, "SA1,2017/02/01 00:30:00,1,3,T", "SA1,2017/02/01 01:00:00,1,4,T", name="b.csv")
    write(AEMO, "SA1,2017/01/31 23:30:00,1,1,T", "SA1,2017/02/01 00:00:00,1,2,T", name="a.csv")
    found = load("aemo", tmp_path)
    assert list(found.pick("RRP").values) == [1, 2, 3, 4] and found.report.files == ("a.csv", "b.csv")


def test_regions_of_one_file_are_series_of_their_own(write: Write) -> None:
    lines = [f"{region},2017/01/01 {h}:00,1,{price},T" for h in ("00:30", "01:00") for region, price in (("SA1", 5), ("VIC1", 7))]
    found = load("aemo", write(AEMO, *lines))
    assert list(found.pick("RRP@VIC1").values) == [7, 7] and not found.report.repaired
    with pytest.raises(TraceError, match=r"unknown column 'RRP'.*known: RRP@SA1, RRP@VIC1"):
        found.pick()


def test_a_zone_cannot_be_stated_where_the_format_has_one(write: Write) -> None:
    path = write(AEMO, "SA1,2017/01/01 00:30:00,1,5,T")
    with pytest.raises(TraceError, match=r"small\.csv: zone 'UTC' cannot be stated here \(AEMO stamps are UTC\+10\)"):
        load("aemo", path, "UTC")


def test_a_stamp_of_another_shape_is_dropped_and_counted(write: Write) -> None:
    path = write(AEMO, "SA1,2017/01/01 00:30:00,1,5,T", "SA1,01-02-2017,1,5,T", "SA1,,1,5,T", "SA1,2017/01/01 01:00:00,1,x,T")
    found = load("aemo", path)
    assert found.report.dropped == {"stamp missing or unreadable": 2}
    assert found.report.rows_read == 4 and found.report.rows_kept == 2 and found.report.missing == {"RRP": 1}


def test_empty_cells_are_missing_and_not_zero(write: Write) -> None:
    header = "timestamp,WND,SUN,NG,avg_CI"
    path = write(header, "2022-05-17 17:00:00+00:00,1,2,3,100", "2022-05-17 18:00:00+00:00,,,,", "2022-05-17 19:00:00+00:00,1,-2,3,")
    found = load("eia_mix", path)
    assert np.isnan(found.pick().values).tolist() == [False, True, True]
    assert found.report.missing == {"avg_CI": 2, "WND": 1, "SUN": 1, "NG": 1}
    assert found.statistics["n_missing"] == 5 and found.statistics["n_negative_cells"] == 1


def test_p26_an_offset_is_taken_off_once(write: Write) -> None:
    """19:00Z is noon in Los Angeles in July; both spellings name one instant."""
    header = "Datetime (UTC),Datetime (Local),Price (USD/MWh)"
    lines = ["2024-07-01 19:00:00+00:00,2024-07-01 12:00:00-07:00,5", "2024-01-01 19:00:00+00:00,2024-01-01 11:00:00-08:00,6"]
    found = load("prices", write(header, *lines))
    assert instants(found.pick()) == ["2024-01-01T19:00", "2024-07-01T19:00"]
    assert "stamps whose UTC and local time differ: UTC taken" not in found.report.noted
    assert found.report.repaired == {"rows out of time order: sorted": 1}
    local = load("eia_mix", write("timestamp,WND,avg_CI", "2024-07-01T12:00:00-07:00,1,5", "2024-07-01T19:00:00Z,1,5"))
    assert instants(local.pick()) == ["2024-07-01T19:00"]
    wrong = load("prices", write(header, "2024-07-01 19:00:00+00:00,2024-07-01 12:00:00-08:00,5"))
    assert wrong.report.noted == {"stamps whose UTC and local time differ: UTC taken": 1}


def test_p26_naive_stamps_need_a_zone(write: Write) -> None:
    path = write("Datetime,Price (EUR/MWh)", "2023-07-01 12:00:00,5")
    assert load("prices", path).pick().origin is None
    assert instants(load("prices", path, "UTC").pick()) == ["2023-07-01T12:00"]
    assert instants(load("prices", path, "Europe/Berlin").pick()) == ["2023-07-01T10:00"]
    assert instants(load("prices", path, "+10:00").pick()) == ["2023-07-01T02:00"]
    with pytest.raises(TraceError, match="unknown zone 'Europe/Berln'; give UTC, an IANA name"):
        load("prices", path, "Europe/Berln")
    with pytest.raises(TraceError, match="an offset of a day or more"):
        load("prices", path, "+99:00")


def test_p26_a_stated_zone_never_moves_stamps_with_offsets(write: Write) -> None:
    path = write("point_time,A", "2026-01-11 17:00:00+00:00,1", "2026-01-11 17:05:00,2")
    found = load("watttime_mci", path, "America/Los_Angeles")
    assert instants(found.pick()) == ["2026-01-11T17:00"]
    assert found.report.dropped == {"stamp without an offset among stamps with one": 1}
    assert found.report.noted == {"zone left unused: the stamps state their own offsets": 1}


def test_clocks_that_go_back_and_forth(write: Write) -> None:
    """2023 in Berlin: 26 March has no 2:00, 29 October has two."""
    autumn = [f"2023-10-29 0{h}:00:00,{k}" for k, h in enumerate((1, 2, 2, 3))]
    found = load("prices", write("Datetime,Price (EUR/MWh)", *autumn), "Europe/Berlin")
    assert instants(found.pick()) == ["2023-10-28T23:00", "2023-10-29T00:00", "2023-10-29T01:00", "2023-10-29T02:00"]
    assert list(found.pick().values) == [0, 1, 2, 3] and found.report.n_gaps == 0
    spring = [f"2023-03-26 0{h}:00:00,{h}" for h in (1, 3)]
    found = load("prices", write("Datetime,Price (EUR/MWh)", *spring), "Europe/Berlin")
    assert instants(found.pick()) == ["2023-03-26T00:00", "2023-03-26T01:00"] and found.report.n_gaps == 0
    once = [f"2023-10-29 0{h}:00:00,{h}" for h in (0, 1, 2, 3)]
    report = load("prices", write("Datetime,Price (EUR/MWh)", *once), "Europe/Berlin").report
    assert report.n_gaps == 1 and report.longest_gap_s == 3600


def test_doubled_hours_are_merged_within_their_values(write: Write) -> None:
    lines = ["2022-02-01 00:00:00,80", "2022-02-01 00:00:00,100", "2022-02-01 01:00:00,7", "2022-02-01 01:00:00,7"]
    found = load("prices", write("Datetime,Price (USD/MWh)", *lines), "+10:00")
    assert list(found.pick().values) == [90, 7]
    assert found.report.repaired == {
        "rows of one stamp with equal values: one kept": 1,
        "rows of one stamp with unlike values: their mean taken": 1,
    }
    assert found.statistics["n_duplicate_timestamps"] == 2 and found.statistics["step_hist"] == {"0": 2, "3600": 1}


def test_a_missing_day_is_reported(write: Write) -> None:
    lines = [f"2024-01-30 {h}:00:00,{h}" for h in (22, 23)] + [f"2024-02-01 0{h}:00:00,{h}" for h in (0, 1)]
    report = load("prices", write("Datetime,Price (EUR/MWh)", *lines), "UTC").report
    assert report.n_gaps == 1 and report.longest_gap_s == 86400


def test_electricitymaps_headers_of_all_years(write: Write) -> None:
    row = "2024-01-01 00:00:00,Germany,Germany,DE,400,500,50,40,x,true,TIME_SLICER"
    newer = (
        EM.replace("Carbon Intensity", "Carbon intensity").replace("(LCA)", "(Life cycle)").replace("gCO₂eq", "gCO2eq")
        .replace("Low Carbon Percentage", "Carbon-free energy percentage (CFE%)")
        .replace("Renewable Percentage", "Renewable energy percentage (RE%)")
    )  # fmt: skip
    for header in (EM, newer, "\ufeff" + EM):
        found = load("electricitymaps", write(header, row))
        assert found.pick().values[0] == 400 and found.pick("lca").values[0] == 500 and found.pick("lca").unit == "g/kWh"
        assert found.statistics["estimated"] == {"True": 1} and found.statistics["mean_direct_by_utc_hour"][1] is None
        assert found.report.noted == {"values that the publisher estimated": 1}


def test_a_missing_column_is_named_with_those_found(write: Write) -> None:
    with pytest.raises(TraceError, match=r"small\.csv: column 'Carbon Intensity gCO₂eq/kWh \(LCA\)' is missing \(found: Datetime"):
        load("electricitymaps", write(EM.replace("(LCA)", "(x)"), "2024-01-01 00:00:00,G,G,DE,1,2,3,4,x,false,"))


@pytest.mark.parametrize("format", [name for name in SERIES_FORMATS if name != "epw"])
def test_files_that_are_none_are_refused(write: Write, tmp_path: Path, format: str) -> None:
    with pytest.raises(TraceError, match="no such file"):
        load(format, tmp_path / "none.csv")
    for lines in (("",), ("a,b",), ("a,b", "1,2"), ("a,a", "1,2")):
        with pytest.raises(TraceError, match=r"missing|empty|twice"):
            load(format, write(*lines))


def test_unlike_files_of_a_folder_are_refused(write: Write, tmp_path: Path) -> None:
    write("point_time,A", "2026-01-11 17:00:00+00:00,1", name="a.csv")
    write("point_time,B", "2026-01-11 17:00:00+00:00,1", name="b.csv")
    with pytest.raises(TraceError, match=r"b\.csv has other columns than a\.csv; name one file"):
        load("watttime_mci", tmp_path)


def test_wide_rows_whose_two_stamps_differ_are_counted(write: Write) -> None:
    header = "datetime,timestamp,zone_name,carbon_intensity_avg,power_production_solar_avg,power_production_wind_avg,x_avg"
    path = write(header, "2020-01-01T00:00:00+00:00,1577836800,CA,300,1,2,", "2020-01-01T01:00:00+00:00,1577836800,CA,,1,2,")
    found = load("electricitymaps_wide", path)
    assert found.report.noted == {"stamps whose datetime and Unix time differ: datetime taken": 1}
    assert found.statistics["n_missing_ci"] == 1 and found.pick("power_production_wind_avg").unit == "MW"


def test_a_wide_file_without_any_number_is_refused(write: Write) -> None:
    header = "datetime,carbon_intensity_avg,power_production_solar_avg,power_production_wind_avg"
    with pytest.raises(TraceError, match="no column holds a number"):
        load("electricitymaps_wide", write(header, "2020-01-01T00:00:00+00:00,,x,"))


def test_vessim_seconds_stay_relative_and_dates_need_a_zone(write: Write) -> None:
    solar = load("vessim", write("time,Berlin,Lagos", "0,0.0,0.5", "300,0.1,0.6"))
    assert solar.pick("Lagos").origin is None and list(solar.pick("Lagos").at_s) == [0, 300]
    with pytest.raises(TraceError, match="several series; name one of: Berlin, Lagos"):
        solar.pick()
    moer = write("oootime,Caiso_North", "2023-06-08 00:00:00,425", "2023-06-08 00:05:00,432")
    assert load("vessim", moer).pick().origin is None
    assert instants(load("vessim", moer, "UTC").pick())[1] == "2023-06-08T00:05"
    with pytest.raises(TraceError, match="counts seconds from the start of the record"):
        load("vessim", write("time,Berlin", "0,1"), "UTC")


def test_epw_hours_end_at_their_stamp_in_standard_time(write: Write) -> None:
    path = write(*EPW_HEAD, epw_line(1, 1, 1, 0), epw_line(1, 1, 2, 9999), epw_line(2, 29, 24, 800, 99.9, 999, 2021))
    found = load("epw", path)
    ghi = found.pick()
    day = 86400.0
    assert list(ghi.at_s) == [8 * 3600.0, 9 * 3600.0, 59 * day + 31 * 3600.0] and ghi.is_typical_year and ghi.origin is None
    assert np.isnan(ghi.values).tolist() == [False, True, False]
    assert found.report.missing == {"ghi": 1, "wind": 1, "temp": 1} and found.statistics["n_ghi_missing_9999"] == 1
    assert found.report.noted == {"years that the typical months come from": 2}


def test_epw_is_read_through_gzip(write: Write, tmp_path: Path) -> None:
    plain = write(*EPW_HEAD, epw_line(1, 1, 1, 5), end="\r\n", name="a.epw")
    (tmp_path / "a.epw.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert load("epw", tmp_path / "a.epw.gz").statistics == load("epw", plain).statistics


@pytest.mark.parametrize(
    "head, lines, message",
    [
        (EPW_HEAD[1:], [epw_line(1, 1, 1)], "no EPW file"),
        ((EPW_HEAD[0].replace("-8.0", "west"), *EPW_HEAD[1:]), [epw_line(1, 1, 1)], "states no zone"),
        ((*EPW_HEAD[:7], "DATA PERIODS,1,4,Data,Sunday,1/ 1,12/31"), [epw_line(1, 1, 1)], "4 records an hour"),
        (EPW_HEAD, ["2012,1,1"], "no EPW line"),
        (EPW_HEAD, [epw_line(13, 1, 1)], "no usable row"),
    ],
)
def test_epw_that_cannot_be_read_says_why(write: Write, head: tuple[str, ...], lines: list[str], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        load("epw", write(*head, *lines))

"""Every number of the published statistics of every shared signal file, through the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hetenv.cli.app import app
from hetenv.traces import SERIES_FORMATS, series_format
from hetenv.traces.paths import shared_folder


def published() -> list[tuple[str, str]]:
    folder = shared_folder() / "data/energy"
    return [(f, name) for f in SERIES_FORMATS for name in json.loads((folder / f / "stats.json").read_text())] if folder.is_dir() else []


def numbers(value: Any, path: str = "") -> dict[str, Any]:
    """Leaves by path."""
    if isinstance(value, dict):
        return {key: leaf for name, part in value.items() for key, leaf in numbers(part, f"{path}/{name}").items()}
    if isinstance(value, list):
        return {key: leaf for k, part in enumerate(value) for key, leaf in numbers(part, f"{path}/{k}").items()}
    return {path: value}


@pytest.mark.parametrize("format, name", published())
def test_statistics_equal_the_published_ones(energy: Path, format: str, name: str) -> None:
    done = CliRunner().invoke(app, ["trace", "show", str(energy / format / name), "--format", format, "--json"])
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    expected = numbers(json.loads((energy / format / "stats.json").read_text(encoding="utf-8"))[name])
    found = numbers(shown["statistics"])
    assert set(found) == set(expected)
    for path, value in expected.items():
        assert found[path] == (pytest.approx(value, abs=1.01e-6, rel=1e-12) if isinstance(value, float) else value), path
    report = shown["report"]
    assert report["rows_read"] == expected["/rows"] == report["rows_kept"] + sum(report["dropped"].values())


def test_a_zone_may_be_stated_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("Datetime,Price (EUR/MWh)\n2023-07-01 12:00:00,5\n")

    def shown(format: str, *more: str) -> Any:
        return CliRunner().invoke(app, ["trace", "show", str(path), "--format", format, "--json", *more])

    assert json.loads(shown("prices", "--zone", "Europe/Berlin").stdout)["report"]["first"] == "2023-07-01 10:00:00"
    refused = shown("philly_csv", "--zone", "UTC")
    assert refused.exit_code != 0 and "only signal formats take one" in f"{refused.output}{refused.exception}"


def test_every_format_of_the_shared_folder_is_known(energy: Path) -> None:
    assert {folder.name for folder in energy.iterdir()} == set(SERIES_FORMATS)


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown signal format 'emo'; did you mean 'aemo'\? \(known: aemo, eia_mix"):
        series_format("emo")


def test_reports_of_the_real_files(energy: Path) -> None:
    """Zones, period ends, holes and missing hours, by file."""

    def report(format: str, name: str, zone: str | None = None) -> Any:
        return SERIES_FORMATS[format].load(energy / format / name, zone).report

    aemo = report("aemo", "PRICE_AND_DEMAND_201701_SA1.csv")
    assert (aemo.first, aemo.last, aemo.step_s) == ("2016-12-31 14:00:00", "2017-01-31 13:30:00", 1800)
    assert report("eia_mix", "CISO_NG_&_avgCI.csv").missing["WND"] == 2
    wide = report("electricitymaps_wide", "data-sample.csv")
    assert wide.n_gaps == 1 and wide.longest_gap_s / 86400 == pytest.approx(53.58, abs=0.01)
    assert report("prices", "processed_DE-LU_2023.csv").time_base == "naive stamps of no stated zone"
    berlin = report("prices", "processed_DE-LU_2023.csv", "Europe/Berlin")
    assert berlin.first == "2022-12-31 23:00:00"
    assert berlin.dropped == {"local hour that clocks skip in the stated zone": 1}
    assert berlin.noted["local hour that comes twice, stated once: taken as summer time"] == 1 and berlin.n_gaps == 1

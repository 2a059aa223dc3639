"""Comparison rows and tables from made-up episodes."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hetenv import scenario as scenarios
from hetenv.bench.compare import COMPARED, compare, write_csv
from hetenv.bench.report import markdown, settings
from hetenv.errors import ScenarioError

KEYS = ["scenario", "policy", "metric", "mean", "lo", "hi", "diff", "diff_lo", "diff_hi", "n"]


def episode(policy: str, seed: int, objective: float, **metrics: Any) -> dict[str, Any]:
    filled = dict.fromkeys(COMPARED, 1.0) | {"objective": objective} | metrics
    return {"scenario": "smoke", "golden": "g", "policy": policy, "seed": seed, **filled}


def episodes() -> list[dict[str, Any]]:
    """`good` saves about 2 of 10 on every world, `same` nothing; worlds differ by far more than policies."""
    rng = np.random.default_rng(0)
    found = []
    for seed in range(30):
        base = 10.0 + 40.0 * rng.random()
        found.append(episode("base", seed, base))
        found.append(episode("good", seed, base - 2.0 + 0.5 * rng.standard_normal(), finished_share=2.0 + rng.random()))
        found.append(episode("same", seed, base + 0.5 * rng.standard_normal()))
    return found


def test_pairing_finds_a_difference_that_lies_within_the_spread_of_worlds() -> None:
    rows = {(row.policy, row.metric): row for row in compare(episodes(), "base")}
    good, same, base = rows["good", "objective"], rows["same", "objective"], rows["base", "objective"]
    assert good.lo is not None and base.mean is not None and good.lo < base.mean < good.hi  # type: ignore[operator]
    assert good.diff == pytest.approx(-2.0, abs=0.3)
    assert (good.verdict, same.verdict, base.verdict) == ("better", "", "")
    assert (base.diff, base.diff_lo, base.diff_hi, base.n) == (0.0, 0.0, 0.0, 30)
    assert rows["good", "finished_share"].verdict == "better"


def test_a_metric_where_less_or_more_is_neither_has_no_verdict() -> None:
    changed = [{**e, "n_jobs": 5.0 if e["policy"] == "good" else 3.0} for e in episodes()]
    row = next(r for r in compare(changed, "base") if (r.policy, r.metric) == ("good", "n_jobs"))
    assert (row.diff, row.verdict) == (2.0, "")


def test_undefined_values_are_left_out_and_counted() -> None:
    changed = [{**e, "makespan_s": None if e["policy"] == "good" and e["seed"] < 10 else float(e["seed"])} for e in episodes()]
    rows = {(row.policy, row.metric): row for row in compare(changed, "base")}
    assert (rows["good", "makespan_s"].n, rows["base", "makespan_s"].n) == (20, 30)
    nothing = [{**e, "makespan_s": None} for e in episodes()]
    row = next(r for r in compare(nothing, "base") if (r.policy, r.metric) == ("good", "makespan_s"))
    assert (row.mean, row.lo, row.diff, row.diff_hi, row.n) == (None, None, None, None, 0)


def test_only_common_seeds_count() -> None:
    rows = compare([e for e in episodes() if e["policy"] != "same" or e["seed"] < 12], "base")
    assert {row.n for row in rows} == {12}


def test_one_seed_gives_means_without_intervals() -> None:
    row = next(r for r in compare([e for e in episodes() if e["seed"] == 3], "base") if r.policy == "good")
    assert (row.lo, row.hi, row.diff_lo, row.verdict, row.n) == (None, None, None, "", 1)
    assert row.diff is not None


def test_an_unknown_baseline_and_mixed_dynamics_are_errors() -> None:
    with pytest.raises(ScenarioError, match="baseline"):
        compare(episodes(), "bese")
    with pytest.raises(ScenarioError, match="unlike dynamics"):
        compare([*episodes(), {**episode("same", 99, 1.0), "golden": "h"}], "base")


def test_csv_has_the_promised_columns(tmp_path: Path) -> None:
    write_csv(compare(episodes(), "base"), tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == KEYS
    assert len(rows) == 3 * len(COMPARED)


def test_markdown_ranks_by_the_primary_metric_and_states_the_settings() -> None:
    smoke = scenarios.load("smoke")
    table = markdown(compare(episodes(), "base"), [smoke], "base", {"smoke": "abc"})
    lines = [line for line in table.splitlines() if line.startswith("|")][2:]
    assert lines[0].split(" | ")[0].strip("| ") == "good"
    assert "better" in lines[0]
    assert sum("baseline" in line for line in lines) == 1
    assert settings(smoke) in table and "knowledge of work: estimate" in table and "golden abc" in table


@pytest.mark.parametrize("name", scenarios.names())
def test_settings_of_every_shipped_scenario_are_stated(name: str) -> None:
    text = settings(scenarios.load(name))
    assert "None" not in text and "restart" in text and "knowledge" in text

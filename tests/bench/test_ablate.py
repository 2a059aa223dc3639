"""Capabilities taken away: what is then illegal, and the comparison on common worlds."""

from pathlib import Path

import pytest

from hetenv import scenario as scenarios
from hetenv.bench.ablate import CAPABILITIES, ablate, losses, rewrite, without
from hetenv.bench.run import run
from hetenv.errors import ScenarioError


def test_a_scenario_without_a_capability_never_uses_it() -> None:
    whole = scenarios.load("smoke")
    found = run(whole, "srtf", 3)
    assert found["n_preempted"] > 0
    assert run(without(whole, "preempt"), "srtf", 3)["n_preempted"] == 0
    nothing = without(without(without(whole, "resize"), "migrate"), "replan")
    assert run(nothing, "random", 3)["n_reconfigured"] == 0 < run(whole, "random", 3)["n_reconfigured"]


def test_without_waiting_nothing_that_fits_stays_queued() -> None:
    whole = scenarios.load("smoke")
    held, pressed = (run(found, "random", 3) for found in (whole, without(whole, "wait")))
    assert pressed["wait_mean_s"] < held["wait_mean_s"]


def test_unknown_capability_is_named() -> None:
    with pytest.raises(ScenarioError, match="replan"):
        without(scenarios.load("smoke"), "teleport")


def test_ablation_compares_on_common_worlds() -> None:
    rows = ablate("smoke", "srtf", range(3), ("preempt", "wait"), processes=1)
    objective = {row.policy: row for row in rows if row.metric == "objective"}
    assert list(objective) == ["srtf", "srtf no preempt", "srtf no wait"]
    assert objective["srtf"].n == 3 and objective["srtf no preempt"].diff != 0.0
    assert set(CAPABILITIES) == {"replan", "resize", "migrate", "preempt", "wait", "degrade", "mixed"}


def test_a_page_has_one_section_per_scenario(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n## smoke\nold\n\n## zebra\nkept\n", encoding="utf-8")
    rows = ablate("smoke", "sjf", range(2), ("wait",), processes=1)
    rewrite(page, scenarios.load("smoke"), "hetenv ablate smoke", rows)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Title\n\n## smoke\n`hetenv ablate smoke`") and "old" not in text
    assert "| sjf no wait |" in text and text.endswith("## zebra\nkept\n")
    assert losses(rows, "objective")[0][0] == "sjf"

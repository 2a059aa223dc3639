"""The commands validate, calibrate and fit-stacks on made-up runs in the form of published tables."""

import csv
import json
from pathlib import Path

import pytest

from hetenv import catalog
from hetenv.cli import status_of
from hetenv.perf.runs import COLUMNS
from hetenv.perf.validation_page import BEGIN, END

CELLS = dict.fromkeys(COLUMNS, "") | {
    "row_id": "x-0",
    "source_id": "x",
    "model_family": "LLaMA",
    "model": "llama3.1-8b",
    "layers": "32",
    "hidden": "4096",
    "heads": "32",
    "kv_heads": "8",
    "ffn_hidden": "14336",
    "vocab": "128256",
    "seq_len": "8192",
    "gpu_type": "H100-SXM-80",
    "n_gpus": "8",
    "gpus_per_node": "8",
    "tp": "1",
    "dp": "8",
    "zero_stage": "3",
    "micro_batch": "1",
    "global_batch": "64",
    "precision": "bf16",
    "recompute": "full",
    "measured_iter_s": "6.0",
    "quality": "A",
}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """24 runs of one unknown source, two of them the same configuration, on two kinds of GPU."""
    rows = [
        CELLS
        | {"row_id": f"x-{i}", "global_batch": str(64 * (1 + i // 2)), "measured_iter_s": str(6.0 * (1 + i // 2))}
        | {"gpu_type": ("H100-SXM-80", "A100-SXM-80")[i % 2]}
        for i in range(24)
    ]
    return written(tmp_path / "runs.csv", [*rows, rows[0] | {"row_id": "x-again", "measured_iter_s": "6.6"}])


def written(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(CELLS))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_validate_json_has_the_promised_layout(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    arguments = ["validate", str(runs), "--draws", "2", "--stack", "x=fsdp", "--out", str(out), "--by", "gpu_type"]
    assert status_of([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"as_shipped", "calibrated", "ratio", "by"}
    for score in ("as_shipped", "calibrated"):
        assert {"dense", "moe", "cnn", "mixed", "by_source"} <= set(found[score])
        for kind in ("dense", "moe", "cnn", "mixed"):
            assert set(found[score][kind]) == {"mape", "median_ape", "bias", "n", "n_refused"}
        assert {"mape", "median_ape", "bias", "n", "n_refused", "spearman"} <= set(found[score]["by_source"]["x"])
    assert found["as_shipped"]["dense"]["n"] == 24 and found["as_shipped"]["moe"]["mape"] is None
    assert {"accelerator_mape", "plan_regret_median", "plan_regret_p90"} <= set(found["ratio"])
    assert set(found["by"]) == {"H100-SXM-80", "A100-SXM-80"}
    with (out / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 25 and all(float(row["predicted_iter_s"]) > 0 for row in rows)
    assert {"row_id", "predicted_iter_s", "stack", "flags", "refused"} <= set(rows[0])
    assert rows[0]["stack"] == "fsdp" and rows[0]["predicted_iter_s"] == rows[-1]["predicted_iter_s"]


def test_validate_draws_a_scatter_plot_where_matplotlib_is(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert status_of(["validate", str(runs), "--draws", "1", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "scatter.png").read_bytes().startswith(b"\x89PNG")


def test_validate_fails_where_over_five_percent_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [CELLS | {"row_id": f"x-{i}", "global_batch": str(64 * (1 + i))} for i in range(19)]
    bad = CELLS | {"row_id": "bad", "precision": "int3"}
    assert status_of(["validate", str(written(tmp_path / "one.csv", [*rows, bad])), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["as_shipped"]["dense"]["n_refused"] == 1
    assert status_of(["validate", str(written(tmp_path / "two.csv", [*rows, bad, bad]))]) == 1
    assert "2 x unknown precision 'int3'" in capsys.readouterr().err


def test_validate_rewrites_the_tables_of_a_page_and_nothing_else(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n{BEGIN}\nold\n{END}\nafter\n")
    assert status_of(["validate", str(runs), "--draws", "1", "--page", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("# Before\n") and text.endswith("\nafter\n") and "old" not in text
    assert "| as shipped | dense |" in text and "25 measured rows, 0 refused" in text
    page.write_text("no marks")
    assert status_of(["validate", str(runs), "--draws", "1", "--page", str(page)]) == 2


def test_calibrate_prints_a_stack_that_the_catalog_can_hold(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "row.csv"
    assert status_of(["calibrate", str(runs), "--source", "x", "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["source"] == "x" and 1 <= len(found["constants"]) <= 8
    with out.open(newline="") as file:
        row = next(csv.DictReader(file))
    assert row["name"].startswith("x-")
    header = (Path(catalog.__file__).parent / "stacks.csv").read_text().splitlines()[0]
    assert ",".join(row) == header


def test_fit_stacks_writes_the_generated_tables(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "catalog"
    assert status_of(["fit-stacks", str(runs), "--out", str(out), "--no-leave-out"]) == 0
    assert {"stacks.csv", "efficiencies.csv"} <= {path.name for path in out.iterdir()}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["validate", "/nowhere.csv"], "/nowhere.csv"),
        (["validate", "RUNS", "--stack", "x"], "source_id=NAME"),
        (["validate", "RUNS", "--stack", "x=fsdq"], "did you mean 'fsdp'"),
        (["validate", "RUNS", "--by", "gpu_typ"], "did you mean 'gpu_type'"),
        (["calibrate", "RUNS", "--source", "y"], "unknown source 'y'"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    runs: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of([str(runs) if part == "RUNS" else part for part in arguments]) == 2
    assert said in capsys.readouterr().err

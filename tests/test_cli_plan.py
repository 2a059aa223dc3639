"""`hetenv plan` on one and two kinds of GPU: what programs read, the timeline, bad input."""

import json
from pathlib import Path

import pytest

from hetenv.cli import status_of

KEYS = (
    "tp",
    "pp",
    "dp",
    "zero",
    "micro_batch",
    "schedule",
    "split",
    "iter_s",
    "tokens_per_s",
    "mfu",
    "memory_bytes",
    "power_w",
)
TWO = [
    "plan",
    "--model",
    "llama2-7b",
    "--seq",
    "2048",
    "--batch",
    "64",
    "--on",
    "H100-SXM-80:16",
    "--on",
    "A100-SXM-40:16",
]
Captured = pytest.CaptureFixture[str]


def printed(capsys: Captured, *arguments: str) -> str:
    assert status_of(list(arguments)) == 0
    return capsys.readouterr().out


def test_one_kind_by_either_spelling(capsys: Captured) -> None:
    new = printed(capsys, "plan", "-m", "llama3-8b", "--batch", "64", "--on", "H100-SXM-80:16", "--json")
    old = printed(capsys, "plan", "llama3-8b", "-a", "H100-SXM-80", "-g", "16", "-b", "64", "--json")
    assert new == old
    found = json.loads(new)
    assert len(found["plans"]) == 5 and sum(found["illegal"].values()) < found["n_plans"]
    for row in found["plans"]:
        assert set(KEYS) <= set(row)
        assert row["dp"] * row["tp"] * row["pp"] * row["cp"] == 16
        assert len(row["memory_bytes"]) == row["pp"] and max(row["memory_bytes"]) <= 85899345920
        assert row["tokens_per_s"] == pytest.approx(64 * 8192 / row["iter_s"])
        assert [part["on"] for part in row["split"]] == ["H100-SXM-80"] and sum(row["split"][0]["layers"]) == 32
        assert 16 * 70 < row["power_w"] < 16 * 700 and 0 < row["mfu"] < 1
        assert row["usd_per_gtoken"] > 0 and row["kwh_per_gtoken"] > 0


def test_two_kinds_split_layers_or_samples(capsys: Captured) -> None:
    found = json.loads(printed(capsys, *TWO, "--top", "8", "--json"))
    assert len(found["plans"]) == 8
    for row in found["plans"]:
        assert set(KEYS) <= set(row) and len(row["parts"]) == len(row["split"]) == 2
        n_stages = sum(len(part["layers"]) for part in row["split"])
        assert len(row["memory_bytes"]) == n_stages
        if "samples" in row["plan"]:
            assert sum(part["batch"] for part in row["split"]) == 64
            assert all(sum(part["layers"]) == 32 for part in row["split"])
        else:
            assert n_stages == row["pp"] and sum(sum(part["layers"]) for part in row["split"]) == 32
        assert max(row["memory_bytes"]) <= row["memory_gbytes"] * 1e9 * 1.001
    table = printed(capsys, *TWO)
    assert "kWh/Gtoken" in table and "plans illegal: does not fit in the GPU's memory" in table


@pytest.mark.parametrize("on", [["H100-SXM-80:8"], ["H100-SXM-80:8", "A100-SXM-80:8"]])
def test_timeline_is_a_chrome_trace_of_the_best_plan(tmp_path: Path, capsys: Captured, on: list[str]) -> None:
    path = tmp_path / "step.json"
    arguments = ["plan", "gpt3-2.7b", "-b", "32", "--top", "1", "--timeline", str(path), "--json"]
    found = json.loads(printed(capsys, *arguments, *(part for name in on for part in ("--on", name))))
    trace = json.loads(path.read_text())
    assert trace["otherData"]["plan"] == found["plans"][0]["plan"]
    blocks = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert {"forward", "backward"} <= {event["cat"] for event in blocks}
    last = max(event["ts"] + event["dur"] for event in blocks)
    assert last / 1e6 == pytest.approx(found["plans"][0]["iter_s"], rel=0.25)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan", "llama3-8b"], "--on given 0 times"),
        (["plan", "--on", "H100:8"], "name one model"),
        (["plan", "llama3-8b", "--on", "H100"], "must be NAME:COUNT"),
        (["plan", "llama3-8b", "--on", "H100:0"], "must be NAME:COUNT"),
        (["plan", "llama3-8b", "--on", "H100:8", "--on", "A100:8", "--on", "V100:8"], "one or two kinds"),
        (["plan", "llama3-8b", "-a", "H100"], "go together"),
        (["plan", "llama3-405b", "--on", "T4:4", "--precision", "fp16", "--timeline", "x.json"], "no plan can run"),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys: Captured, arguments: list[str], said: str) -> None:
    assert status_of(arguments) == 2
    assert said in capsys.readouterr().err

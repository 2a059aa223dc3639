"""train_agents.py from end to end in small, and what it says to bad arguments."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sb3_contrib")

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "train_agents.py"), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.slow
def test_it_trains_evaluates_and_resumes(tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["--scenario", "smoke", "--out", str(out), "--test-episodes", "3", "--processes", "1"]
    arguments += ["--against", "first_fit,index", "--set", "n_envs=8", "--set", "n_steps=16"]
    done = run(*arguments, "--steps", "256")
    assert done.returncode == 0, done.stderr
    assert "run folder" in done.stdout and "untrained" in done.stdout
    for name in (
        "policy.npz",
        "curve.csv",
        "curve.png",
        "config.json",
        "summary.json",
        "test/table.md",
        "test/comparison.csv",
    ):
        assert (out / name).is_file(), name
    assert list((out / "tensorboard").iterdir())
    again = run(*arguments, "--steps", "512", "--resume")
    assert again.returncode == 0, again.stderr
    with (out / "curve.csv").open(encoding="utf-8") as file:
        steps = [int(row["steps"]) for row in csv.DictReader(file)]
    assert steps[0] == 0 and steps[-1] == 512 == json.loads((out / "summary.json").read_text())["decisions"]
    with (out / "test/episodes.csv").open(encoding="utf-8") as file:
        policies = {row["policy"] for row in csv.DictReader(file)}
    assert {"untrained", "first_fit", "index"} < policies


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--steps", "0"], "--steps"),
        (["--seed", "x"], "--seed"),
        (["--algo", "dqn"], "--algo"),
        (["--scenario", "no_such"], "no_such"),
        (["--rule", "no_such"], "no_such"),
        (["--rule", "fifo"], "candidate rows"),
        (["--against", "no_such"], "no_such"),
        (["--set", "warp=9"], "warp"),
        (["--set", "n_envs=many"], "whole number"),
        (["--resume"], "no checkpoint"),
    ],
)
def test_bad_arguments_are_one_line_and_status_2(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sys.path.insert(0, str(ROOT))
    try:
        from train_agents import main
    finally:
        sys.path.pop(0)
    try:
        status = main(["--scenario", "smoke", "--out", str(tmp_path / "run"), *arguments])
    except SystemExit as stop:
        status = stop.code
    assert status == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and said in lines[0]
    assert not (tmp_path / "run").exists()

"""The command line: what programs read, what people see, and bad input (status 2, one line on stderr, no traceback)."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hetenv.bench.run import RESULT_KEYS, TIMES, run
from hetenv.cli import status_of
from hetenv.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
PHILLY = ROOT.parent / "shared/data/workloads/philly_sia"
Captured = pytest.CaptureFixture[str]


def call(capsys: Captured, *arguments: str) -> str:
    """Stdout of a command that must succeed."""
    assert status_of(list(arguments)) == 0
    return capsys.readouterr().out


def refused(capsys: Captured, *arguments: str) -> str:
    """The one line on stderr of a command that must be refused."""
    assert status_of(list(arguments)) == 2
    captured = capsys.readouterr()
    lines = captured.err.strip().splitlines()
    assert captured.out == ""
    assert len(lines) == 1 and lines[0].startswith("hetenv: "), captured.err
    return lines[0]


def test_run_json_is_the_dict_of_the_python_function(capsys: Captured) -> None:
    printed = json.loads(call(capsys, "run", "smoke", "--policy", "first_fit", "--seed", "2", "--json"))
    expected = run("smoke", "first_fit", 2)
    assert tuple(printed) == RESULT_KEYS
    assert {k: v for k, v in printed.items() if k not in TIMES} == {k: v for k, v in expected.items() if k not in TIMES}


def test_run_takes_a_file(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text((ROOT / "scenarios/smoke.yaml").read_text().replace("name: smoke", "name: mine"))
    assert json.loads(call(capsys, "run", str(path), "-p", "fifo", "--json"))["scenario"] == "mine"


def test_scenarios(capsys: Captured) -> None:
    rows = json.loads(call(capsys, "scenarios", "--json"))
    assert {"smoke", "mixed_gpus", "solar_sites", "philly_day"} <= {row["scenario"] for row in rows}
    assert next(row for row in rows if row["scenario"] == "mixed_gpus")["n_gpus"] == 256
    assert "smoke" in call(capsys, "scenarios")


def test_bench_json_has_the_promised_rows_and_leaves_files(capsys: Captured, tmp_path: Path) -> None:
    arguments = ["bench", "smoke", "-p", "first_fit", "-p", "srtf", "--seeds", "3", "--processes", "1", "--out", str(tmp_path)]
    rows = json.loads(call(capsys, *arguments, "--json"))
    assert list(rows[0]) == ["scenario", "policy", "metric", "mean", "lo", "hi", "diff", "diff_lo", "diff_hi", "n"]
    assert {row["policy"] for row in rows} == {"first_fit", "srtf"}
    assert {path.name for path in tmp_path.iterdir()} == {"episodes.csv", "comparison.csv", "table.md"}
    assert call(capsys, *arguments) == (tmp_path / "table.md").read_text()


def test_plan(capsys: Captured) -> None:
    arguments = ["plan", "llama3-8b", "-a", "H100-SXM-80", "-g", "8", "-b", "64", "--top", "3"]
    found = json.loads(call(capsys, *arguments, "--json"))
    assert len(found["plans"]) == 3 and found["n_plans"] > 100
    times = [plan["iter_s"] for plan in found["plans"]]
    assert times == sorted(times) and times[0] > 0
    assert "MFU" in call(capsys, *arguments)


def test_schema_describes_every_key_of_a_shipped_scenario(capsys: Captured) -> None:
    yaml = pytest.importorskip("yaml")
    schema = json.loads(call(capsys, "schema"))
    assert set(yaml.safe_load((ROOT / "scenarios/smoke.yaml").read_text())) <= set(schema["properties"])


def test_trace_show(capsys: Captured) -> None:
    if not PHILLY.is_dir():
        pytest.skip("the shared data folder is absent")
    found = json.loads(call(capsys, "trace", "show", str(PHILLY / "philly.csv"), "--format", "philly_csv", "--json"))
    assert set(found) == {"report", "statistics"}
    assert found["statistics"]["rows"] == found["report"]["rows_read"]


def test_every_command_has_help_with_an_example(capsys: Captured) -> None:
    assert "Commands" in call(capsys, "--help")
    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    expected = {"scenarios", "run", "bench", "plan", "speed", "schema", "warmup", "tune"}
    assert set(names) == expected | {"validate", "calibrate", "fit-stacks"} | {"reference", "backtest", "presets", "ablate"}
    for command in [[name] for name in names] + [["trace", "show"]]:
        assert "Example: hetenv" in call(capsys, *command, "--help"), command


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "smok"], "did you mean 'smoke'"),
        (["run", "smoke", "--policy", "fifoo"], "did you mean 'fifo'"),
        (["run", "smoke", "--policy", "rl:/nowhere"], "nowhere"),
        (["run", "smoke", "--seed", "-1"], "seed"),
        (["run", "smoke", "--seed", "one"], "seed"),
        (["run", "smoke", "--speed", "1"], "--speed"),
        (["run"], "SCENARIO"),
        (["run", "/nowhere/at/all.yaml"], "/nowhere/at/all.yaml"),
        (["bench", "smoke", "-p", "fifo", "--baseline", "srtf"], "srtf"),
        (["bench", "smoke", "-p", "fifo", "-p", "fifo"], "twice"),
        (["bench", "smoke", "smoke", "-p", "fifo"], "twice"),
        (["plan", "llama3-9b", "-a", "H100-SXM-80", "-g", "8", "-b", "64"], "did you mean 'llama3-8b'"),
        (["plan", "llama3-8b", "-a", "H1000", "-g", "8", "-b", "64"], "H1000"),
        (["trace", "show", "/nowhere", "--format", "philly_csv"], "/nowhere"),
        (["trace", "show", "/nowhere", "--format", "csv"], "philly_csv"),
        (["tune", "smok"], "did you mean 'smoke'"),
        (["fly"], "fly"),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys: Captured, arguments: list[str], said: str) -> None:
    assert said in refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("horizon_s: 28800", "horizon_s: -1", "horizon_s"),
        ("horizon_s: 28800", "horizon: 28800", "horizon"),
        ("mtbf_h: 40", "mtbf_h: 0", "events[0].mtbf_h"),
        ("accelerator: A100-SXM-80", "accelerator: A100-SXM-81", "cluster.pools[0]"),
        ("model: bert-base", "model: bert-bass", "classes.bert"),
        ("kind: poisson", "kind: fish", "workload"),
        ("gpu_counts: [1, 2]", "gpu_counts: [64]", "classes.script: fits nowhere"),
        ("name: smoke", "name: [", "YAML"),
    ],
)
def test_a_bad_scenario_file_names_the_field(capsys: Captured, tmp_path: Path, old: str, new: str, said: str) -> None:
    text = (ROOT / "scenarios/smoke.yaml").read_text()
    assert old in text
    path = tmp_path / "bad.yaml"
    path.write_text(text.replace(old, new, 1))
    assert said in refused(capsys, "run", str(path), "--policy", "fifo")


def test_an_unwritable_folder_is_refused(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file" in refused(capsys, "bench", "smoke", "-p", "fifo", "--seeds", "1", "--out", str(tmp_path / "file" / "out"))


@pytest.mark.compiled
def test_an_interrupted_bench_stops_soon_and_goes_on_later(tmp_path: Path) -> None:
    # a shell's background jobs ignore SIGINT; the command must not
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from hetenv.cli import main; main()"
    command = [sys.executable, "-c", code, "bench", "smoke", "-p", "first_fit", "-p", "srtf", "--processes", "2"]
    command += ["--out", str(tmp_path), "--json", "--seeds"]
    running = subprocess.Popen(
        [*command, "100"], cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    episodes = tmp_path / "episodes.csv"
    while not episodes.exists() or len(episodes.read_text().splitlines()) < 5:
        assert running.poll() is None, "over before it could be interrupted"
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)  # as Ctrl-C does, to the workers too
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130 and out == "" and "Traceback" not in err and "interrupted" in err
    kept = episodes.read_text()
    done = subprocess.run([*command, "3"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {row["n"] for row in json.loads(done.stdout) if row["metric"] == "objective"} == {3}
    assert episodes.read_text().startswith(kept)


def test_the_installed_command_refuses_without_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-m", "hetenv.cli", "run", "smok"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_help_loads_no_simulator() -> None:
    code = "import sys; from hetenv.cli import status_of; status_of(['--help']); print([m for m in sys.modules if m.startswith('hetenv.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert "hetenv.bench" not in done.stdout

"""Workloads fitted to traces: known processes are found again, real traces are met, what is written is a scenario."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from hetenv.cli.app import app
from hetenv.errors import TraceError
from hetenv.scenario import parse
from hetenv.traces import TRACE_FORMATS
from hetenv.traces.paths import shared_folder
from hetenv.workload.arrivals import BurstyArrivals
from hetenv.workload.fit import fit, ks_distance

SLURM = "job_id,gpu_num,state,submit_time,start_time,end_time,duration"
START = np.datetime64("2024-05-01", "s")


def write(folder: Path, times_s: Any, gpus: Any, runs_s: Any, states: Any) -> Path:
    lines = [SLURM]
    for k, (at, n, run, state) in enumerate(zip(times_s, gpus, runs_s, states)):
        start = START + np.timedelta64(int(at), "s")
        lines.append(f"{k},{n},{state},{start},{start},{start + np.timedelta64(int(run), 's')},{int(run)}")
    path = folder / "cluster_log.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def scenario(sections: dict[str, Any]) -> dict[str, Any]:
    pool = {"name": "a", "accelerator": "A100-SXM-80", "nodes": 16, "inter_link": "IB-HDR-4x"}
    return {"name": "x", "summary": "x", "horizon_s": 86_400, "cluster": {"pools": [pool]}, **sections}


def known(folder: Path) -> Path:
    """Two weeks: 30 jobs/h, peak at 15 h, bursts; two kinds of run times; a fifth fails, a tenth is cancelled."""
    rng = np.random.default_rng(3)
    arrivals = BurstyArrivals(rate_per_h=30.0, dispersion=8.0, burst_span_s=60.0, amplitude=0.6, peak_hour=15.0)
    times_s = arrivals.draw(rng, 14 * 86_400.0)
    n = times_s.size
    is_big = rng.random(n) < 0.3
    runs_s = np.where(is_big, 20_000 * np.exp(0.5 * rng.standard_normal(n)), 200 * np.exp(1.0 * rng.standard_normal(n))) + 1
    states = rng.choice(["COMPLETED", "FAILED", "CANCELLED"], n, p=[0.7, 0.2, 0.1])
    return write(folder, times_s, np.where(is_big, 8, rng.choice([1, 2], n)), runs_s, states)


def test_a_known_process_is_found_again(tmp_path: Path) -> None:
    found = fit(TRACE_FORMATS["helios"].load(known(tmp_path)))
    arrivals, event = found["scenario"]["workload"]["arrivals"], found["scenario"]["events"][0]
    assert arrivals["rate_per_h"] == pytest.approx(30, rel=0.15) and arrivals["amplitude"] == pytest.approx(0.6, abs=0.2)
    assert abs(arrivals["peak_hour"] - 15) < 2 and 2 < arrivals["dispersion"] < 16 and arrivals["burst_span_s"] in (10, 60, 300)
    assert event["failed_share"] == pytest.approx(0.2, abs=0.02) and event["cancelled_share"] == pytest.approx(0.1, abs=0.02)
    assert found["fit"]["ks_duration"] < 0.03 and found["fit"]["ks_interarrival"] < 0.12 and found["fit"]["gpu_mix_error"] < 0.03
    big = [mix for mix in found["scenario"]["workload"]["jobs"] if 8 in mix["gpus"]["counts"]]
    assert sum(mix["share"] for mix in big) == pytest.approx(0.3, abs=0.03)
    assert max(big, key=lambda mix: mix["share"])["duration"]["median_s"] == pytest.approx(20_000, rel=0.1)


def test_equal_seeds_give_equal_fits_and_the_sections_are_a_scenario(tmp_path: Path) -> None:
    trace = TRACE_FORMATS["helios"].load(known(tmp_path))
    found = fit(trace, 1)
    assert found == fit(trace, 1)
    compiled = parse(scenario(yaml.safe_load(yaml.safe_dump(found["scenario"])))).compile()
    requests = compiled.sample(0, 0).requests
    assert 300 < requests.size < 1500 and not requests["rejected"].any()


def test_the_command_writes_sections_that_load_and_prints_the_distances(tmp_path: Path) -> None:
    out = tmp_path / "fitted.yaml"
    result = CliRunner().invoke(app, ["trace", "fit", str(known(tmp_path)), "--format", "helios", "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert set(shown) == {"scenario", "fit"} and shown["fit"]["ks_duration"] < 0.03
    assert parse(scenario(yaml.safe_load(out.read_text(encoding="utf-8")))).compile()
    plain = CliRunner().invoke(app, ["trace", "fit", str(tmp_path / "cluster_log.csv"), "--format", "helios"])
    assert plain.exit_code == 0 and "ks_interarrival" in plain.output and "rate_per_h" in plain.output


def test_zero_run_times_and_few_jobs_are_kept_as_they_are(tmp_path: Path) -> None:
    path = write(tmp_path, [0, 10, 3600, 7200], [1, 1, 1, 4], [0, 0, 50, 50], ["COMPLETED"] * 4)
    found = fit(TRACE_FORMATS["helios"].load(path))["scenario"]
    kinds = [(mix["share"], mix["duration"]["kind"]) for mix in found["workload"]["jobs"]]
    assert kinds[0] == (0.5, "fixed") and [kind for _, kind in kinds[1:]] == ["lognormal", "lognormal"] and found["events"] == []
    assert parse(scenario(found)).compile()


def test_what_cannot_be_fitted_is_a_trace_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="all jobs were submitted at once"):
        fit(TRACE_FORMATS["helios"].load(write(tmp_path, [5, 5], [1, 1], [3, 3], ["FAILED"] * 2)))
    (tmp_path / "a.trace").write_text("A3C\tcmd\t-n\t1\t700\t0.0\t1\n", encoding="utf-8")
    with pytest.raises(TraceError, match="0 jobs with a run time; two are needed"):
        fit(TRACE_FORMATS["gavel"].load(tmp_path / "a.trace"))
    (tmp_path / "nodes.csv").write_text("gpu_model,gpu_capacity_num\nA10,1\n", encoding="utf-8")
    with pytest.raises(TraceError, match="nothing to fit"):
        fit(TRACE_FORMATS["spot2026"].load(tmp_path / "nodes.csv"))


def test_ks_distance_by_hand() -> None:
    assert ks_distance(np.array([1.0, 2.0]), np.array([1.0, 2.0])) == 0.0
    assert ks_distance(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 1.0
    assert ks_distance(np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.5, 9.0])) == 0.5


@pytest.mark.parametrize(
    ("file", "format", "limits"),
    [
        ("philly_sia/philly.csv", "philly_csv", {"ks_duration": 0.06, "ks_interarrival": 0.3, "gpu_mix_error": 0.02}),
        ("swf/hpc2n.swf", "swf", {"ks_duration": 0.08, "ks_interarrival": 0.3, "gpu_mix_error": 0.05}),
        ("helios/Venus/cluster_throughput.csv", "helios", {"ks_jobs_per_step": 0.3}),
    ],
)
def test_real_traces_are_met(file: str, format: str, limits: dict[str, float]) -> None:
    path = shared_folder() / "data/workloads" / file
    if not path.exists():
        pytest.skip(f"the shared data folder is absent ({path}); set HETENV_SHARED")
    found = fit(TRACE_FORMATS[format].load(path))
    for name, limit in limits.items():
        assert found["fit"][name] < limit, (name, found["fit"])
    assert parse(scenario(found["scenario"])).compile()

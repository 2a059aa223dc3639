"""Reference cases of the form pollux: rounds and pauses by hand, and the published run where it is at hand."""

import json
from pathlib import Path

import pytest

from hetenv.bench import reference
from hetenv.errors import ScenarioError
from hetenv.traces.paths import shared_folder

PUBLISHED = shared_folder() / "reference/pollux_w6_160"


def case(folder: Path, jobs: list[tuple[int, int, int]], jct_s: list[float]) -> Path:
    """Two nodes of two GPUs; jobs are (arrival, GPUs, seconds alone)."""
    cluster = {"nodes": 2, "gpus_per_node": 2, "total_gpus": 4, "round_s": 60, "restart_delay_s": 30, "interference": 0.0}
    (folder / "cluster.json").write_text(json.dumps(cluster))
    lines = [f"job{index},{arrival},ncf,{gpus},64,{seconds}" for index, (arrival, gpus, seconds) in enumerate(jobs)]
    (folder / "trace.csv").write_text("\n".join(["job_id,arrival_s,application,gpus,batch_size,isolated_duration_s", *lines]) + "\n")
    rows = [f"tiresias,job{index},{jct},by hand" for index, jct in enumerate(jct_s)] + ["optimus,job0,1,elsewhere"]
    (folder / "expected_jct.csv").write_text("\n".join(["policy,job_id,jct_s,source", *rows[: len(jobs)]]) + "\n")
    return folder


def test_rounds_and_pauses_by_hand(tmp_path: Path) -> None:
    """Job 0 comes at 0 and starts at 60, steps from 90, ends at 190; job 1 needs all GPUs: 240, 270, 280; job 2 passes it."""
    folder = case(tmp_path, [(0, 3, 100), (60, 4, 10), (61, 1, 20)], [190.0, 220.0, 109.0])
    (row,) = reference.run(folder)
    assert row == {
        "policy": "tiresias",
        "n_jobs": 3,
        "max_abs_diff_s": 0.0,
        "mean_jct_s": 173.0,
        "expected_mean_jct_s": 173.0,
        "makespan_s": 280.0,
    }


def test_a_job_sinks_after_16_gpu_hours_and_pays_a_pause_when_it_returns(tmp_path: Path) -> None:
    """Job 0 reaches 57,600 GPU s at 14,460 s, with 14,370 s done; job 1 runs to 14,590; job 0 resumes at 14,640 + 30."""
    (row,) = reference.run(case(tmp_path, [(10, 4, 20_000), (100, 4, 100)], [20_300.0 - 10, 14_590.0 - 100]))
    assert row["max_abs_diff_s"] == 0.0 and row["makespan_s"] == 20_300.0


def test_policies_that_choose_sizes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"unknown policy of a pollux case 'optimus' \(known: tiresias\)"):
        reference.run(case(tmp_path, [(0, 1, 5)], [85.0]), "optimus")


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="no reference data")
def test_published_mean_within_a_thousandth() -> None:
    (row,) = reference.run(PUBLISHED)
    assert row["n_jobs"] == 160 and row["mean_jct_s"] == pytest.approx(row["expected_mean_jct_s"], rel=1e-3)

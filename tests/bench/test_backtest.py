"""Backtests of small logs by hand, and of the log at hand."""

from pathlib import Path

import pytest

from hetenv.bench.backtest import backtest
from hetenv.errors import ScenarioError, TraceError
from hetenv.traces.paths import shared_folder

HPC2N = shared_folder() / "data/workloads/swf/hpc2n.swf"
Job = tuple[float, float, float, int, float]
"""Submit, wait, run, processors, asked seconds; -1: not stated."""


def log(folder: Path, *jobs: Job, header: str = "; MaxProcs: 4\n") -> Path:
    path = folder / "log.swf"
    lines = [f"{n} {s} {w} {run} {procs} -1 -1 -1 {asked} -1 1 1 -1 1 1 -1 -1 -1" for n, (s, w, run, procs, asked) in enumerate(jobs, 1)]
    path.write_text(header + "\n".join(lines) + "\n")
    return path


def test_waits_and_utilisation_by_hand(tmp_path: Path) -> None:
    """The four jobs of strict FIFO, recorded as EASY would have run them: C starts at 2 in place of 150."""
    jobs = [(1000, 0, 100, 2, 100), (1001, 99, 50, 4, 50), (1002, 0, 90, 2, 90), (1003, 147, 120, 2, 120)]
    path = log(tmp_path, *jobs)
    found = backtest(path, "swf", "fifo")
    assert (found["n_jobs"], found["left_out"], found["n_gpus"]) == (4, {}, 4)
    waits = found["wait_s"]
    assert waits["recorded"]["mean_s"] == (99 + 0 + 147) / 4 and waits["simulated"]["mean_s"] == (99 + 148 + 147) / 4
    assert waits["error"]["bias_s"] == waits["error"]["mean_absolute_s"] == 37.0
    assert waits["error"]["median_absolute_s"] == 0.0 and waits["error"]["root_mean_square_s"] == 74.0
    gpu_s = 100 * 2 + 50 * 4 + 90 * 2 + 120 * 2
    assert found["utilisation"]["recorded"] == gpu_s / (4 * 270) and found["makespan_s"] == {"recorded": 270.0, "simulated": 270.0}
    assert found["utilisation"]["simulated"] == pytest.approx(gpu_s / (4 * 270))
    exact = backtest(path, "swf", "easy_backfill")
    assert exact["wait_s"]["error"]["root_mean_square_s"] == 0.0 and exact["wait_s"]["error"]["rank_correlation"] == 1.0


def test_declared_run_times_are_believed(tmp_path: Path) -> None:
    """C declares 120 s, so that it would not end before the reservation of B."""
    jobs = [(0, 0, 100, 2, 100), (1, 99, 50, 4, 50), (2, 148, 90, 2, 120)]
    assert backtest(log(tmp_path, *jobs), "swf", "easy_backfill")["wait_s"]["error"]["root_mean_square_s"] == 0.0


def test_only_the_recorded_span_counts_for_utilisation(tmp_path: Path) -> None:
    """One processor: the record ran both jobs at once on two."""
    found = backtest(log(tmp_path, (0, 0, 100, 1, -1), (0, 0, 100, 1, -1)), "swf", "fifo", gpus=1)
    assert found["utilisation"] == {"recorded": 2.0, "simulated": 1.0, "error": -1.0}
    assert found["makespan_s"]["simulated"] == 200.0 and found["n_gpus_from"] == "stated"
    assert found["n_with_declared_run_time"] == 0


def test_the_size_is_the_peak_where_no_header_states_it(tmp_path: Path) -> None:
    found = backtest(log(tmp_path, (0, 0, 10, 3, -1), (5, 5, 10, 2, -1), (5, 5, 10, 2, -1), header=""), "swf", "fifo")
    assert found["n_gpus"] == 4 and "most held at once" in found["n_gpus_from"]


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    found = backtest(log(tmp_path, (0, 0, 10, 1, -1), (1, 0, -1, 1, -1), (2, -1, 10, 1, -1), (3, 0, 10, 8, -1)), "swf", "fifo")
    assert found["n_jobs"] == 1 and sorted(found["left_out"].values()) == [1, 1, 1]
    assert "more GPUs than the pool has (4)" in found["left_out"] and "no recorded wait" in found["left_out"]


@pytest.mark.parametrize(
    ("jobs", "policy", "error", "message"),
    [
        ([(0, -1, 10, 1, -1)], "fifo", TraceError, "records no waits"),
        ([(0, 0, 10, 8, -1)], "fifo", TraceError, "no job is left to run"),
        ([(0, 0, 10, 1, -1)], "fifoo", ScenarioError, "did you mean 'fifo'"),
    ],
)
def test_what_cannot_be_compared(jobs: list[Job], policy: str, error: type[Exception], message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        backtest(log(tmp_path, *jobs), "swf", policy)
    with pytest.raises(TraceError, match="did you mean 'swf'"):
        backtest(tmp_path / "log.swf", "swff", "fifo")


@pytest.mark.skipif(not HPC2N.is_file(), reason="no shared data")
def test_a_real_log() -> None:
    found = backtest(HPC2N, "swf", "first_fit")
    assert (found["n_jobs"], sum(found["left_out"].values()), found["n_gpus"]) == (3145, 25, 240)
    assert found["wait_s"]["recorded"]["mean_s"] == pytest.approx(17285.42, abs=0.01)
    assert found["utilisation"]["simulated"] == pytest.approx(found["utilisation"]["recorded"], abs=0.01)

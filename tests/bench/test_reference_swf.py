"""Reference cases of the form swf: a plain simulator written from the rules alone, and the published cells where they are at hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hetenv.bench import reference, reference_swf, swf_log
from hetenv.bench.reference_case import finished, starts_and_ends, submit_order
from hetenv.errors import ScenarioError, TraceError
from hetenv.traces.paths import shared_folder

LUBLIN = shared_folder() / "reference/swf_lublin256"
PROCS = 16
PUBLISHED_MEANS = {  # RLScheduler, SC 2020: means over ten sequences, without and with backfilling
    ("fcfs", 0): 7273.77, ("wfp3", 0): 19753.53, ("unicep", 0): 22274.74, ("sjf", 0): 277.35, ("f1", 0): 258.37,
    ("fcfs", 1): 235.82, ("wfp3", 1): 133.87, ("unicep", 1): 307.23, ("sjf", 1): 73.31, ("f1", 1): 75.07,
}  # fmt: skip


class Plain:
    """The queue simulator of the rules: jobs are (submit, run, procs, asked), decisions one at a time."""

    def __init__(self, jobs: list[tuple[int, int, int, int]], policy: str, backfill: bool) -> None:
        self.jobs, self.policy, self.backfill = jobs, policy, backfill
        self.start: dict[int, int] = {}
        self.to_come, self.queue, self.running, self.free = list(range(1, len(jobs))), [0], [], PROCS
        self.now = jobs[0][0]
        while self.queue or self.to_come:
            while not self.queue:
                self._event()
            self.queue.sort(key=self._score)
            head = self.queue[0]
            reserved = self._reserved(head)
            while jobs[head][2] > self.free:
                if backfill:
                    self.queue.sort(key=lambda job: jobs[job][0])
                    for job in list(self.queue):
                        if jobs[job][2] <= self.free and self.now + jobs[job][3] < reserved:
                            self._begin(job)
                self._event()
            self._begin(head)

    def _score(self, job: int) -> Any:
        s, _, n, r = self.jobs[job]
        w = -1 - s
        return {
            "fcfs": s,
            "sjf": (r, s),
            "f1": np.log10(r) * n + 870 * np.log10(s),
            "wfp3": -((w / r) ** 3) * n,
            "unicep": -(w + 1e-15) / (np.log2(n + 1e-15) * r),
        }[self.policy]

    def _reserved(self, head: int) -> float:
        free = self.free
        for job in sorted(self.running, key=lambda job: self.start[job] + self.jobs[job][3]):
            free += self.jobs[job][2]
            if free >= self.jobs[head][2]:
                return self.start[job] + self.jobs[job][3]
        return self.now

    def _begin(self, job: int) -> None:
        self.queue.remove(job)
        self.start[job] = self.now
        self.running.append(job)
        self.free -= self.jobs[job][2]

    def _event(self) -> None:
        """The next submit or the next completion; at a tie the submit."""
        ends = [self.start[job] + self.jobs[job][1] for job in self.running]
        if self.to_come and (not ends or self.jobs[self.to_come[0]][0] <= min(ends)):
            self.queue.append(self.to_come.pop(0))
            self.now = max(self.now, self.jobs[self.queue[-1]][0])
        else:
            done = self.running.pop(int(np.argmin(ends)))
            self.now = max(self.now, min(ends))
            self.free += self.jobs[done][2]


def some_jobs(seed: int, n: int = 60) -> list[tuple[int, int, int, int]]:
    """Crowded, with equal submit times and ends; estimates are up to twice the run time, some too short."""
    rng = np.random.default_rng(seed)
    submit = 100 + np.cumsum(rng.integers(0, 3, n) * 10)
    run = rng.integers(1, 15, n) * 10
    asked = np.where(rng.random(n) < 0.3, run, np.maximum(1, run * rng.choice([0.5, 1.5, 2.0], n)).astype(int))
    return list(zip(submit.tolist(), run.tolist(), rng.integers(1, PROCS + 1, n).tolist(), asked.tolist()))


def log_of(path: Path, jobs: list[tuple[int, int, int, int]]) -> Path:
    lines = [f"{j} {s} -1 {run} {n} -1 -1 -1 {asked} -1 1 -1 -1 -1 0 -1 -1 -1" for j, (s, run, n, asked) in enumerate(jobs, 1)]
    path.write_text("\n".join(["; Version: 2", f"; MaxProcs: {PROCS}", *lines]) + "\n")
    return path


@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize("policy", reference_swf.POLICIES)
def test_the_rules_in_plain_python_start_every_job_at_the_same_time(policy: str, backfill: bool, tmp_path: Path) -> None:
    for seed in range(6):
        jobs = some_jobs(seed)
        expected = Plain(jobs, policy, backfill).start
        log = swf_log.read(log_of(tmp_path / "some.swf", jobs))
        rule = reference_swf.rule_of(policy, backfill)
        simulator = finished(reference_swf.sequence_scenario(log, 0, len(jobs)), rule)
        start_s, end_s = starts_and_ends(simulator, submit_order(log["submit_s"]))
        assert start_s.tolist() == [expected[job] for job in range(len(jobs))], f"seed {seed}"
        assert (end_s - start_s).tolist() == log["run_s"].tolist()


def case(folder: Path, jobs: list[tuple[int, int, int, int]], cells: str) -> Path:
    log_of(folder / "log.swf", jobs)
    (folder / "expected_bounded_slowdown.csv").write_text(
        "sequence,first_row_index,n_jobs,backfill,policy,mean_bounded_slowdown\n" + cells
    )
    return folder


def test_a_case_gives_one_row_per_cell(tmp_path: Path) -> None:
    """Four processors are taken for 100 s; then two jobs of 10 s, one after the other."""
    jobs = [(0, 100, PROCS, 100), (10, 10, PROCS, 10), (20, 10, PROCS, 10)]
    found = reference.run(case(tmp_path, jobs, "0,0,3,0,fcfs,8.0\n7,1,2,1,sjf,1.0\n"))
    assert [tuple(row) for row in found] == [("sequence", "backfill", "policy", "value", "expected", "rel_diff")] * 2
    assert found[0]["value"] == (1 + 10 + 10) / 3 and found[0]["rel_diff"] == 0.125
    assert (found[1]["sequence"], found[1]["backfill"], found[1]["policy"], found[1]["value"]) == (7, 1, "sjf", 1.0)


@pytest.mark.parametrize(
    ("cells", "policy", "replay", "message"),
    [
        ("0,0,2,0,fcfs,1\n", "wfp3", False, "unknown policy of a swf case 'wfp3'.*fcfs"),
        ("0,0,2,0,edf,1\n", None, False, "unknown policy 'edf'"),
        ("0,1,2,0,fcfs,1\n", None, False, "no jobs 1 to 2; the log has 2"),
        ("0,0,two,0,fcfs,1\n", None, False, "line 2: n_jobs must be a number"),
        ("0,0,2,0,fcfs,1\n", None, True, "nothing to replay"),
    ],
)
def test_what_a_case_cannot_be(cells: str, policy: str | None, replay: bool, message: str, tmp_path: Path) -> None:
    with pytest.raises((ScenarioError, TraceError), match=message):
        reference.run(case(tmp_path, [(0, 5, 1, 5), (1, 5, 1, 5)], cells), policy, replay)


def test_a_job_that_is_too_large_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="on_17: fits nowhere in this cluster"):
        reference.run(case(tmp_path, [(0, 5, 1, 5), (1, 5, PROCS + 1, 5)], "0,0,2,0,fcfs,1\n"))


def test_other_folders_are_refused_with_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(ScenarioError, match=r"not a reference case of a known form \(swf.*it holds notes.txt"):
        reference.run(tmp_path)
    with pytest.raises(ScenarioError, match="no such folder"):
        reference.run(tmp_path / "absent")


def test_logs_are_read_as_the_standard_says(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; MaxNodes: 128\r\n;Note: a, b: c\r\n\r\n  1   5 -1 7.5 2 -1 -1 4 -1 -1 1 -1 -1 -1 0 -1 -1 -1 extra 3\r\n")
    log = swf_log.read(path)
    assert (log.machine_procs, log.header["Note"], log.lines.tolist()) == (128, "a, b: c", [4])
    assert (log["submit_s"][0], log["run_s"][0], log.procs[0], log["think_s"][0]) == (5.0, 7.5, 4.0, -1.0)
    for text, message in (("1 2 3\n", "line 1: 3 fields"), ("", "no data line"), ("x" + " 1" * 17, "could not convert")):
        path.write_text(text)
        with pytest.raises(TraceError, match=message):
            swf_log.read(path)
    path.write_text("1" + " 1" * 17)
    with pytest.raises(TraceError, match="neither MaxProcs nor MaxNodes"):
        _ = swf_log.read(path).machine_procs


@pytest.mark.skipif(not LUBLIN.is_dir(), reason="no reference data")
@pytest.mark.compiled
def test_published_cells() -> None:
    """Two of the hundred cells' rules here; all of them in the slow test."""
    for policy in ("fcfs", "unicep"):
        rows = [row for row in reference.run(LUBLIN, policy) if row["sequence"] < 3]
        assert max(row["rel_diff"] for row in rows) < 1e-9


@pytest.mark.skipif(not LUBLIN.is_dir(), reason="no reference data")
@pytest.mark.slow
def test_all_published_cells_and_their_means() -> None:
    rows = reference.run(LUBLIN)
    assert len(rows) == 100 and max(row["rel_diff"] for row in rows) < 1e-9
    for (policy, backfill), mean in PUBLISHED_MEANS.items():
        cells = [row["value"] for row in rows if row["policy"] == policy and row["backfill"] == backfill]
        assert len(cells) == 10 and np.mean(cells) == pytest.approx(mean, abs=0.005)

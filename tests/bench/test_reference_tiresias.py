"""Reference cases of the form tiresias: plain simulators written from the rules, and the published runs where they are at hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from hetenv.bench import reference
from hetenv.errors import ScenarioError, TraceError
from hetenv.traces.paths import shared_folder

CASES = [shared_folder() / "reference" / name for name in ("tiresias_60", "tiresias_synth100")]
GPUS, LIMITS = 16, (300, 700)
Jobs = list[tuple[int, int, int]]
"""Arrival, GPUs, seconds."""


class Plain:
    """The preemptive schedules: at each event a list of all jobs is served in order, each if enough GPUs are left."""

    def __init__(self, jobs: Jobs, schedule: str) -> None:
        self.jobs, self.schedule = jobs, schedule
        self.left = [seconds for _, _, seconds in jobs]
        self.order: list[int] = []
        self.queues: list[list[int]] = [[], [], []]
        self.running: set[int] = set()
        self.end: dict[int, int] = {}
        self.now, look = 0, 1 << 60
        to_come = list(range(len(jobs)))
        while to_come or self.order:
            events = [self.now + self.left[job] for job in self.running] + [jobs[job][0] for job in to_come[:1]]
            at = min([look, *events])
            for job in self.running:
                self.left[job] -= at - self.now
            self.now = at
            for job in [job for job in self.order if job in self.running and self.left[job] == 0]:
                self.order.remove(job)
                self.running.discard(job)
                self.end[job] = at
                self.queues = [[other for other in queue if other != job] for queue in self.queues]
            while to_come and jobs[to_come[0]][0] <= at:
                self.order.append(to_come[0])
                self.queues[0].append(to_come.pop(0))
            look = self._dlas() if schedule.startswith("dlas") else self._sorted()

    def _sorted(self) -> int:
        gpus = [n for _, n, _ in self.jobs]
        keys = {"sjf": gpus, "shortest": self.left, "shortest-gpu": [left * n for left, n in zip(self.left, gpus)]}
        self.order.sort(key=lambda job: keys[self.schedule][job])
        self._serve(self.order)
        return 1 << 60

    def _dlas(self) -> int:
        by_gpus = self.schedule == "dlas-gpu"
        for job in self.order:
            level = next(number for number, queue in enumerate(self.queues) if job in queue)
            served = (self.jobs[job][2] - self.left[job]) * (self.jobs[job][1] if by_gpus else 1)
            if job in self.running and level < 2 and served >= LIMITS[level]:
                self.queues[level].remove(job)
                self.queues[level + 1].append(job)
        self._serve([job for queue in self.queues for job in queue])
        self.queues = [sorted(queue, key=lambda job: job not in self.running) for queue in self.queues]
        looks = [1 << 60]
        for level, queue in enumerate(self.queues[:2]):
            for job in self.running.intersection(queue):
                seconds = LIMITS[level] - (self.jobs[job][2] - self.left[job])
                looks.append(self.now + (seconds // self.jobs[job][1] if by_gpus else seconds))
        return min(looks)

    def _serve(self, order: list[int]) -> None:
        free, self.running = GPUS, set()
        for job in order:
            if self.jobs[job][1] <= free:
                free -= self.jobs[job][1]
                self.running.add(job)


def some_jobs(seed: int, n: int = 50) -> Jobs:
    rng = np.random.default_rng(seed)
    arrival = np.cumsum(rng.choice([0, 0, 10, 30, 100], n))
    return list(zip(arrival.tolist(), rng.choice([1, 2, 4, 8, 16], n).tolist(), (rng.integers(1, 100, n) * 10).tolist()))


def case(folder: Path, jobs: Jobs, expected: dict[str, list[float]]) -> Path:
    (folder / "cluster.json").write_text(json.dumps({"total_gpus": GPUS, "dlas_queue_limits_gpu_s": LIMITS, "num_queue": 3}))
    lines = [f"job{index},{arrival},{gpus},{seconds},vgg16" for index, (arrival, gpus, seconds) in enumerate(jobs)]
    (folder / "trace.csv").write_text("\n".join(["job_id,arrival_s,gpus,duration_s,model", *lines]) + "\n")
    rows = [f"{policy},job{index},{jct}" for policy, times in expected.items() for index, jct in enumerate(times)]
    (folder / "expected_jct.csv").write_text("\n".join(["policy,job_id,jct_s", *rows]) + "\n")
    return folder


@pytest.mark.parametrize("schedule", ["sjf", "shortest", "shortest-gpu", "dlas", "dlas-gpu"])
def test_the_rules_in_plain_python_give_the_same_completion_times(schedule: str, tmp_path: Path) -> None:
    for seed in range(4):
        jobs = some_jobs(seed)
        plain = Plain(jobs, schedule)
        times = [float(plain.end[job] - jobs[job][0]) for job in range(len(jobs))]
        (row,) = reference.run(case(tmp_path, jobs, {schedule: times}))
        assert (row["policy"], row["n_jobs"], row["max_abs_diff_s"]) == (schedule, len(jobs), 0.0), f"seed {seed}"
        assert row["mean_jct_s"] == row["expected_mean_jct_s"] == np.mean(times)
        assert row["makespan_s"] == max(plain.end.values()) - jobs[0][0]


def test_fifo_and_first_fit_by_hand(tmp_path: Path) -> None:
    """16 GPUs: a job of 12 for 100 s, one of 8 for 50, one of 4 for 20."""
    folder = case(tmp_path, [(0, 12, 100), (10, 8, 50), (20, 4, 20)], {"fifo": [100.0, 140.0, 100.0], "fjf": [100.0, 140.0, 25.0]})
    fifo, fjf = reference.run(folder)
    assert (fifo["policy"], fifo["max_abs_diff_s"], fifo["makespan_s"]) == ("fifo", 0.0, 150.0)
    assert (fjf["policy"], fjf["max_abs_diff_s"], fjf["mean_jct_s"]) == ("fjf", 5.0, 260.0 / 3)
    assert [row["policy"] for row in reference.run(folder, "fjf")] == ["fjf"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("cluster.json", "{", "cluster.json: cannot be read as JSON"),
        ("cluster.json", '{"total_gpus": 0, "dlas_queue_limits_gpu_s": [1, 2]}', "total_gpus must be a whole number > 0"),
        ("trace.csv", "job_id,arrival_s,gpus,duration_s\njob0,0,two,5\n", "line 2: gpus must be a number"),
        ("trace.csv", "job_id,arrival_s,gpus\njob0,0,2\n", "column 'duration_s' is missing"),
        ("trace.csv", "job_id,arrival_s,gpus,duration_s\njob0,0,2,5\njob0,0,2,5\n", "stands in two rows"),
        ("expected_jct.csv", "policy,job_id,jct_s\nfifo,job7,5\n", "job 'job7' is not in trace.csv"),
        ("expected_jct.csv", "policy,job_id,jct_s\nfifo,job0,5\n", "fifo lacks job 'job1'"),
    ],
)
def test_faults_of_a_case_are_named(name: str, text: str, message: str, tmp_path: Path) -> None:
    folder = case(tmp_path, [(0, 1, 5), (0, 1, 5)], {"fifo": [5.0, 5.0]})
    (folder / name).write_text(text)
    with pytest.raises(TraceError, match=message):
        reference.run(folder)


def test_replay_and_unknown_policies_are_refused(tmp_path: Path) -> None:
    folder = case(tmp_path, [(0, 1, 5)], {"fifo": [5.0]})
    with pytest.raises(ScenarioError, match="nothing to replay"):
        reference.run(folder, replay=True)
    with pytest.raises(ScenarioError, match=r"unknown policy of a tiresias case 'dlas' \(known: fifo\)"):
        reference.run(folder, "dlas")


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_published_runs_job_by_job(folder: Path) -> None:
    if not folder.is_dir():
        pytest.skip("no reference data")
    rows = reference.run(folder)
    assert [row["policy"] for row in rows] == ["fifo", "fjf", "sjf", "shortest", "shortest-gpu", "dlas", "dlas-gpu"]
    assert max(row["max_abs_diff_s"] for row in rows) < 1e-6

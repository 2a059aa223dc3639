"""Listed workloads: what stands in the scenario is what is submitted."""

from typing import Any

import numpy as np
import pytest

from hetenv.errors import ScenarioError
from tests.bench.worlds import compiled

JOBS = [
    {"submit_s": 30.0, "job_class": "script", "gpus": 2, "duration_s": 60.0, "estimate_s": 90.0},
    {"submit_s": 10.0, "job_class": "script", "gpus": 1, "duration_s": 50.0, "weight": 2.0},
    {"submit_s": 10.0, "job_class": "script", "gpus": 4, "duration_s": 0.0},
]


def listed(jobs: list[dict[str, Any]], **fields: Any) -> Any:
    return compiled(gpus=4, workload={"kind": "listed", "jobs": jobs}, **fields)


def test_jobs_are_numbered_by_submit_and_every_episode_has_the_same() -> None:
    made = listed(JOBS, knowledge={"work": "estimate", "estimate_sigma": 0.0})
    rows = made.sample(0).requests
    assert rows["submit_s"].tolist() == [10.0, 10.0, 30.0] and rows["min_gpus"].tolist() == rows["max_gpus"].tolist() == [1, 4, 2]
    assert rows["work"].tolist() == [50.0, 0.0, 60.0] and rows["weight"].tolist() == [2.0, 1.0, 1.0]
    assert rows["believed_s"].tolist() == [50.0, 0.0, 90.0]
    assert np.array_equal(rows, made.sample(3, 7).requests)


def test_work_counts_at_the_fastest_configuration() -> None:
    speeds = {"script": {"kind": "table", "gpu_counts": [1, 2], "steps_per_s": {"a": {1: 1.0, 2: 1.6}}}}
    assert listed(JOBS[:1], classes=speeds).sample(0).requests["work"].tolist() == [96.0]


def test_jobs_after_the_horizon_or_too_large() -> None:
    jobs = [*JOBS, {"submit_s": 20.0, "job_class": "script", "gpus": 16, "duration_s": 5.0}]
    rows = listed(jobs, horizon_s=30.0).sample(0).requests
    assert rows["rejected"].tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"job_class": "scrip"}, r"workload.jobs\[1\].job_class: unknown job class 'scrip'; did you mean 'script'"),
        ({"gpus": 0}, r"workload.jobs\[1\].gpus: .*greater than 0"),
        ({"duration_s": -1.0}, r"workload.jobs\[1\].duration_s"),
        ({"submit_s": np.inf}, r"workload.jobs\[1\].submit_s"),
    ],
)
def test_errors_name_the_job(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        listed([JOBS[0], {**JOBS[1], **change}]).sample(0)

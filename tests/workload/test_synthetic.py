"""Synthetic workloads: work, sizes, shares, determinism, bad input, speed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from hetenv.errors import ScenarioError
from hetenv.workload import SyntheticWorkload, WorkloadContext
from hetenv.workload.requests import REQUEST, Elasticity

MakeContext = Callable[..., WorkloadContext]
FIXED_HOUR = {"kind": "fixed", "value_s": 3600}


def workload(*jobs: dict[str, Any], rate_per_h: float = 10.0, **more: Any) -> SyntheticWorkload:
    mixes = [{"job_class": "fixed", "duration": FIXED_HOUR, **job} for job in jobs]
    return SyntheticWorkload.model_validate(
        {"arrivals": {"kind": "poisson", "rate_per_h": rate_per_h}, "jobs": mixes, **more}
    )


def draw(config: SyntheticWorkload, context: WorkloadContext, seed: int = 0) -> NDArray[np.void]:
    return config.draw(np.random.default_rng(seed), context)


def test_work_is_duration_times_the_speed_at_the_reference_size(make_context: MakeContext) -> None:
    gpus = {"kind": "malleable", "min": 1, "max": 8, "reference_gpus": {2: 0.5, 4: 0.5}}
    rows = draw(workload({"job_class": "table", "gpus": gpus}), make_context())
    assert set(rows["work"]) == {3600 * 2.0 * 2, 3600 * 2.0 * 4}
    assert set(rows["min_gpus"]) == {1} and set(rows["max_gpus"]) == {8}
    assert set(rows["elasticity"]) == {Elasticity.MALLEABLE}
    assert set(rows["checkpoint_interval"]) == {50.0} and set(rows["pools"]) == {1}


def test_the_default_reference_is_the_smallest_size(make_context: MakeContext) -> None:
    rows = draw(workload({"job_class": "table", "gpus": {"kind": "moldable", "min": 2, "max": 4}}), make_context())
    assert set(rows["work"]) == {3600 * 2.0 * 2} and set(rows["elasticity"]) == {Elasticity.MOLDABLE}


def test_rigid_jobs_have_one_size(make_context: MakeContext) -> None:
    gpus = {"kind": "rigid", "counts": {1: 0.75, 8: 0.25}}
    rows = draw(workload({"job_class": "table", "gpus": gpus}, rate_per_h=500), make_context())
    assert np.array_equal(rows["min_gpus"], rows["max_gpus"]) and np.all(rows["elasticity"] == Elasticity.RIGID)
    assert np.array_equal(rows["work"], 3600 * 2.0 * rows["min_gpus"])
    assert np.mean(rows["min_gpus"] == 8) == pytest.approx(0.25, abs=0.02)


def test_shares_weights_and_other_fields(make_context: MakeContext) -> None:
    first = {
        "share": 3,
        "weights": {1: 0.5, 4: 0.5},
        "deadline_slack": 2.0,
        "cpus_per_gpu": 6,
        "host_memory_gbytes_per_gpu": 1.5,
        "preemptible": False,
        "pools": ["new"],
    }
    rows = draw(workload(first, {"share": 1, "job_class": "table"}, rate_per_h=500), make_context())
    mine, other = rows[rows["job_class"] == 0], rows[rows["job_class"] == 1]
    assert mine.size / rows.size == pytest.approx(0.75, abs=0.02)
    assert set(mine["weight"]) == {1.0, 4.0} and set(other["weight"]) == {1.0}
    assert np.array_equal(mine["deadline_s"], mine["submit_s"] + 7200) and np.all(np.isinf(other["deadline_s"]))
    assert set(mine["cpus_per_gpu"]) == {6} and set(mine["host_mbytes_per_gpu"]) == {1500}
    assert set(mine["preemptible"]) == {0} and set(other["preemptible"]) == {1}
    assert set(mine["pools"]) == {1}


def test_initial_jobs_come_at_time_zero_and_max_jobs_keeps_the_earliest(make_context: MakeContext) -> None:
    rows = draw(workload({}, initial_jobs=5), make_context())
    assert np.all(rows["submit_s"][:5] == 0) and rows["submit_s"][5] > 0
    fewer = draw(workload({}, initial_jobs=5, max_jobs=20), make_context())
    assert np.array_equal(fewer["submit_s"], rows["submit_s"][:20])
    assert draw(workload({}, rate_per_h=0), make_context()).size == 0


def test_p16_zero_durations_make_zero_work(make_context: MakeContext) -> None:
    rows = draw(workload({"duration": {"kind": "fixed", "value_s": 0}}), make_context())
    assert rows.size and np.all(rows["work"] == 0)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), rate=st.floats(0, 200), initial=st.integers(0, 30))
def test_rows_are_sound_and_repeatable(make_context: MakeContext, seed: int, rate: float, initial: int) -> None:
    jobs = (
        {"duration": {"kind": "lognormal", "median_s": 600, "sigma": 2}, "gpus": {"kind": "rigid", "counts": {2: 1}}},
        {"job_class": "table", "duration": {"kind": "exponential", "mean_s": 60}},
    )
    config = workload(*jobs, rate_per_h=rate, initial_jobs=initial)
    rows = draw(config, make_context(), seed)
    assert rows.dtype == REQUEST and np.all(np.diff(rows["submit_s"]) >= 0)
    assert np.all((rows["submit_s"] >= 0) & (rows["submit_s"] < 86_400))
    assert np.all(rows["work"] >= 0) and np.all(np.isfinite(rows["work"])) and np.all(rows["believed_work"] == 0)
    assert np.array_equal(draw(config, make_context(), seed), rows)


def test_a_mean_of_many_jobs_is_the_offered_load(make_context: MakeContext) -> None:
    job = {"duration": {"kind": "exponential", "mean_s": 1800}, "gpus": {"kind": "rigid", "counts": {1: 0.5, 4: 0.5}}}
    rows = draw(workload(job, rate_per_h=400), make_context(horizon_s=100 * 86_400))
    gpu_s = (rows["work"] * rows["min_gpus"]).sum() / (100 * 86_400)
    assert gpu_s == pytest.approx(400 / 3600 * 1800 * 2.5, rel=0.01)


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"job_class": "fixd"}, r"workload\.jobs\[0\]\.job_class: unknown job class 'fixd'; did you mean 'fixed'"),
        ({"pools": ["nwe"]}, r"workload\.jobs\[0\]\.pools: unknown pool 'nwe'; did you mean 'new'"),
        (
            {"gpus": {"kind": "rigid", "counts": {3: 1}}},
            r"workload\.jobs\[0\]\.gpus: class 'fixed' has no config.* 3 GPUs",
        ),
        ({"pools": ["old"]}, r"workload\.jobs\[0\]\.gpus: class 'fixed' has no config.* 1 GPUs"),
    ],
)
def test_names_that_do_not_fit_are_scenario_errors(
    make_context: MakeContext, job: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        draw(workload(job), make_context())


@pytest.mark.parametrize(
    "job",
    [
        {"share": -1},
        {"colour": 1},
        {"gpus": {"kind": "rigid", "counts": {1: 0}}},
        {"gpus": {"kind": "rigid", "counts": {0: 1}}},
        {"gpus": {"kind": "moldable", "min": 4, "max": 2}},
        {"gpus": {"kind": "moldable", "min": 1, "max": 2, "reference_gpus": 4}},
        {"weights": {0: 1}},
        {"deadline_slack": 0},
    ],
)
def test_values_out_of_range_are_refused(job: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        workload(job)

"""What policies believe of a job's work: the error model, and that a job's error is its own."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hetenv import beliefs
from hetenv.beliefs import Knowledge
from hetenv.events.stream import source_rng
from hetenv.workload.requests import by_submit, requests
from tests.bench.worlds import compiled

MIXED = compiled(nodes=2, gpus=8)


def some_jobs(n: int = 200) -> NDArray[np.void]:
    """Jobs of 1 to 8 GPUs; some are submitted at one time, some need the same work."""
    rng = np.random.default_rng(0)
    rows = requests(n)
    rows["submit_s"] = np.round(rng.uniform(0.0, 3000.0, n), -1)
    rows["work"] = np.round(rng.exponential(300.0, n), -2)
    rows["min_gpus"] = rows["max_gpus"] = rng.choice([1, 2, 4, 8], n)
    return by_submit(rows)


def filled(rows: NDArray[np.void], seed: int = 0, **knowledge: Any) -> NDArray[np.void]:
    """A copy of the rows with beliefs."""
    copied = rows.copy()
    beliefs.fill(copied, Knowledge(**knowledge), MIXED.configurations, source_rng(seed, 0, "beliefs"))
    return copied


@pytest.mark.parametrize("place", [0, 77, 199])
@pytest.mark.parametrize("columns", [{"min_gpus": 512, "max_gpus": 512}, {"work": 12_345.0}, {"tenant": 3}], ids=str)
def test_p15_one_more_job_moves_no_belief_of_the_others(place: int, columns: dict[str, float]) -> None:
    rows = some_jobs()
    added = rows[[place]].copy()
    for name, value in columns.items():
        added[name] = value
    longer = np.insert(rows, place, added)
    assert np.array_equal(np.delete(filled(longer), place), filled(rows))


def test_p15_a_twin_moves_no_belief_either() -> None:
    rows = some_jobs()
    longer = np.insert(rows, 78, rows[77])
    assert np.array_equal(np.delete(filled(longer), 78), filled(rows))


def test_twins_err_apart() -> None:
    rows = np.repeat(some_jobs(1), 1000)
    rows["work"] = 100.0
    assert np.unique(filled(rows)["believed_work"]).size == 1000


def test_errors_are_normal_independent_and_follow_the_seed() -> None:
    rows = requests(20_000)
    rows["work"], rows["submit_s"] = 1.0, np.arange(20_000)
    errors = np.log(filled(rows, estimate_sigma=1.0)["believed_work"])
    at_sigmas = np.sort(errors)[[455, 3173, 10_000, 16_827, 19_545]]
    assert at_sigmas == pytest.approx([-2.0, -1.0, 0.0, 1.0, 2.0], abs=0.06)
    assert abs(np.corrcoef(errors[1:], errors[:-1])[0, 1]) < 0.03
    other = np.log(filled(rows, seed=1, estimate_sigma=1.0)["believed_work"])
    assert abs(np.corrcoef(errors, other)[0, 1]) < 0.03


def test_bias_and_spread_scale_the_truth() -> None:
    rows = some_jobs()
    wide, narrow = (filled(rows, estimate_bias=2.0, estimate_sigma=sigma) for sigma in (1.0, 0.5))
    some = rows["work"] > 0
    ratio = [np.log(found["believed_work"][some] / rows["work"][some] / 2.0) for found in (wide, narrow)]
    assert ratio[0] == pytest.approx(2.0 * ratio[1], rel=1e-9, abs=1e-12)
    assert np.array_equal(filled(rows, work="oracle")["believed_work"], rows["work"])
    assert set(filled(rows, work="none")["believed_s"]) == {3600.0}


def test_what_a_trace_declares_is_kept() -> None:
    rows = some_jobs()
    rows["believed_work"][3] = 5.0
    found = filled(rows)["believed_work"]
    assert found[3] == 5.0 and np.array_equal(np.delete(found, 3), np.delete(filled(some_jobs())["believed_work"], 3))

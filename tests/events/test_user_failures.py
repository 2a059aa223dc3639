"""Users' own ends: shares, thresholds, patience, limits; and what the simulator makes of them."""

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from hetenv.cluster import Cluster
from hetenv.errors import ScenarioError
from hetenv.events.stream import Effect, EventClock, EventContext, source_rng
from hetenv.events.user_failures import UserFailures
from hetenv.sim.tables import JobState
from hetenv.workload.requests import requests as new_requests
from tests.bench.worlds import compiled, first_fit

N = 20_000


def jobs(**columns: object) -> NDArray[np.void]:
    table = new_requests(N)
    table["work"], table["believed_work"] = 1000.0, 1000.0
    table["job_class"] = np.arange(N) % 2
    for name, value in columns.items():
        table[name] = value
    return table


def draw(cluster: Cluster, table: NDArray[np.void], horizon_s: float = 1e9, **fields: object) -> NDArray[np.void]:
    config = UserFailures.model_validate(fields)
    context = EventContext(cluster, table, horizon_s, None, ("a", "b"))
    return config.draw(source_rng(0, 0, config.source_name), context)


def test_shares_and_mean_thresholds(cluster: Cluster) -> None:
    found = draw(cluster, jobs(), failed_share=0.2, cancelled_share=0.3, failed_at=0.25, cancelled_at=0.6)
    assert set(found["clock"]) == {EventClock.JOB_WORK}
    failed, cancelled = (found[found["effect"] == effect] for effect in (Effect.JOB_CRASH, Effect.JOB_CANCEL))
    assert failed.size / N == pytest.approx(0.2, abs=0.01) and cancelled.size / N == pytest.approx(0.3, abs=0.012)
    assert failed["at"].mean() / 1000 == pytest.approx(0.25, abs=0.012)
    assert cancelled["at"].mean() / 1000 == pytest.approx(0.6, abs=0.012)
    assert not set(failed["target"]) & set(cancelled["target"])
    assert found["at"].min() > 0 and found["at"].max() < 1000


def test_shares_of_one_take_every_job(cluster: Cluster) -> None:
    assert draw(cluster, jobs(), failed_share=1).size == draw(cluster, jobs(), cancelled_share=1).size == N


def test_patience_counts_from_the_submit(cluster: Cluster) -> None:
    table = jobs(submit_s=np.where(np.arange(N) < 10, -500.0, 7200.0))
    found = draw(cluster, table, impatient_share=0.5, patience_h=2)
    assert found.size / N == pytest.approx(0.5, abs=0.015) and set(found["clock"]) == {EventClock.WALL}
    later = found[found["target"] >= 10]
    assert (later["at"] - 7200).mean() == pytest.approx(7200, rel=0.03) and found["at"].min() >= 0
    assert draw(cluster, table, horizon_s=3600.0, impatient_share=0.5, patience_h=2)["at"].max() < 3600


def test_a_time_limit_is_met_at_a_multiple_of_the_belief(cluster: Cluster) -> None:
    table = jobs(believed_work=np.where(np.arange(N) < 7, 300.0, 900.0))
    found = draw(cluster, table, limit_factor=2)
    assert list(found["target"]) == list(range(7)) and set(found["at"]) == {600.0}
    assert set(found["effect"]) == {Effect.JOB_CRASH}


def test_a_share_more_moves_no_other_job(cluster: Cluster) -> None:
    alone = draw(cluster, jobs(), failed_share=0.2)
    more = draw(cluster, jobs(), failed_share=0.2, cancelled_share=0.3, impatient_share=0.4, limit_factor=0.5)
    assert more[: alone.size].tobytes() == alone.tobytes()


def test_only_named_classes_and_jobs_with_work_fail(cluster: Cluster) -> None:
    table = jobs(work=np.where(np.arange(N) < 100, 0.0, 1000.0))
    found = draw(cluster, table, failed_share=1, classes=("b",))
    assert list(found["target"]) == list(range(101, N, 2))
    with pytest.raises(ScenarioError, match=r"events\.user_failures\.classes: unknown job class 'c'"):
        draw(cluster, table, failed_share=1, classes=("c",))


@pytest.mark.parametrize("fields", [{}, {"failed_share": 0.6, "cancelled_share": 0.6}, {"failed_share": 1.1}])
def test_shares_that_make_no_sense_are_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        UserFailures.model_validate(fields)


def test_jobs_end_as_drawn_under_a_scheduler() -> None:
    events = [{"kind": "user_failures", "failed_share": 0.3, "cancelled_share": 0.2}]
    scenario = compiled(nodes=4, horizon_s=36_000.0, end={"kind": "drain", "limit_s": 1e6}, events=events)
    world = scenario.sample(1)
    ends = first_fit(scenario, world).state.jobs["state"][0, : world.requests.size]
    expected = Counter({JobState.FINISHED: world.requests.size})
    for row in world.events:
        expected[JobState.CRASHED if row["effect"] == Effect.JOB_CRASH else JobState.CANCELLED] += 1
        expected[JobState.FINISHED] -= 1
    assert Counter(ends.tolist()) == expected and expected[JobState.CRASHED] > 50 and expected[JobState.CANCELLED] > 30


def test_an_impatient_user_withdraws_a_waiting_job() -> None:
    events = [{"kind": "user_failures", "impatient_share": 1.0, "patience_h": 0.05}]
    scenario = compiled(nodes=1, horizon_s=7200.0, end={"kind": "drain", "limit_s": 1e6}, events=events)
    world = scenario.sample(2)
    simulator = first_fit(scenario, world)
    state = simulator.state.jobs[0, : world.requests.size]
    withdrawn = state["state"] == JobState.CANCELLED
    leave_s = {int(row["target"]): row["at"] for row in world.events}
    assert withdrawn.sum() > 20
    for job in np.flatnonzero(withdrawn):
        assert state["end_s"][job] == pytest.approx(leave_s[int(job)])
    for job in np.flatnonzero(state["state"] == JobState.FINISHED):
        assert state["end_s"][job] <= leave_s[int(job)] + 1e-6

"""P15, P16, P19 to P24 on the shipped policies: exact schedules of tiny worlds."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hetenv import beliefs
from hetenv.bench.metrics import metrics
from hetenv.events.stream import Effect, merge, source_rng
from hetenv.events.stream import rows as event_rows
from hetenv.policy import policy_names
from hetenv.scenario import Compiled, World, load, make_world
from hetenv.sim.tables import Status
from hetenv.workload.requests import by_submit
from tests.agents.episodes import Episode, play
from tests.bench.worlds import compiled, world
from tests.test_beliefs import some_jobs

FIFO_JOBS = [(0.0, 2, 100.0), (1.0, 4, 50.0), (2.0, 2, 90.0), (3.0, 2, 120.0)]
QUEUE_RULES = ("fifo", "first_fit", "easy_backfill", "sjf", "srtf", "las")
"""Policies that start what their rule allows at once."""


def script(**costs: float) -> dict[str, Any]:
    return {"script": {"kind": "fixed", "gpu_counts": [1, 2, 4, 8, 16], **costs}}


@pytest.mark.parametrize(
    ("policy", "starts_s", "jct_mean_s"),
    [
        ("fifo", [0.0, 100.0, 150.0, 150.0], 188.5),  # strict: nobody passes the head
        ("first_fit", [0.0, 212.0, 2.0, 92.0], 165.0),  # greedy skip: C, then D pass B
        ("easy_backfill", [0.0, 100.0, 2.0, 150.0], 151.5),  # C ends before B's reservation at 100, D would not
        ("sjf", [0.0, 212.0, 2.0, 92.0], 165.0),  # B is shorter than D, but finds no room at 92
        ("first_row", [0.0, 212.0, 2.0, 92.0], 165.0),
    ],
)
def test_p24_fifo_means_fifo(policy: str, starts_s: list[float], jct_mean_s: float) -> None:
    scenario = compiled(gpus=4)
    found = play(scenario, world(scenario, FIFO_JOBS), policy)
    assert found.starts_s().tolist() == starts_s
    assert metrics(found.simulator)["jct_mean_s"] == jct_mean_s


def test_p24_easy_lets_later_jobs_take_what_the_head_leaves() -> None:
    """At 100 the head needs 3 of 4 GPUs: a long job of 1 GPU may pass, one of 2 may not, and only the head is protected."""
    scenario = compiled(gpus=4, classes={"script": {"kind": "fixed", "gpu_counts": [1, 2, 3]}})
    jobs = [(0.0, 2, 100.0), (1.0, 3, 50.0), (2.0, 2, 120.0), (3.0, 1, 500.0)]
    found = play(scenario, world(scenario, jobs), "easy_backfill")
    assert found.starts_s().tolist() == [0.0, 100.0, 150.0, 3.0]


def test_p24_easy_believes_estimates() -> None:
    """A job that claims to end at the reservation but does not delays the head; one that claims too much waits."""
    scenario = compiled(gpus=4)
    believed = np.array([100.0, 50.0, 90.0, 120.0])
    honest = world(scenario, FIFO_JOBS, believed_work=believed, believed_s=believed)
    assert play(scenario, honest, "easy_backfill").starts_s().tolist() == [0.0, 100.0, 2.0, 150.0]
    boaster = np.array([100.0, 50.0, 99.0, 120.0])
    late = world(scenario, FIFO_JOBS, believed_work=boaster, believed_s=boaster)
    assert play(scenario, late, "easy_backfill").starts_s().tolist() == [0.0, 100.0, 150.0, 150.0]
    jobs = [*FIFO_JOBS[:2], (2.0, 2, 130.0), FIFO_JOBS[3]]
    liar = world(scenario, jobs, believed_work=believed, believed_s=believed)
    assert play(scenario, liar, "easy_backfill").starts_s().tolist() == [0.0, 132.0, 2.0, 182.0]


@pytest.mark.parametrize("clock", [{"kind": "event"}, *({"kind": "round", "round_s": s} for s in (1.0, 10.0, 60.0, 600.0))], ids=str)
@pytest.mark.parametrize("policy", QUEUE_RULES)
def test_p19_start_overhead_is_charged_once(policy: str, clock: dict[str, Any]) -> None:
    scenario = compiled(horizon_s=2000.0, clock=clock, classes=script(first_start_s=60.0))
    assert play(scenario, world(scenario, [(0.0, 1, 1000.0)]), policy).ends_s().tolist() == [1060.0]


@pytest.mark.parametrize("policy", [name for name in policy_names() if name != "random"])
def test_p20_a_freed_gpu_is_seen_by_the_arrival_of_that_time(policy: str) -> None:
    scenario = compiled()
    jobs = [(0.0, 1, 100.0), (100.0, 1, 10.0)]
    found = play(scenario, world(scenario, jobs), policy)
    assert found.starts_s().tolist() == [0.0, 100.0] and found.ends_s().tolist() == [100.0, 110.0]


@pytest.mark.parametrize("policy", [name for name in policy_names() if name != "random"])
def test_p20_an_event_that_does_nothing_changes_nothing(policy: str) -> None:
    scenario = compiled(nodes=2, gpus=4, horizon_s=20_000.0)
    plain = play(scenario, world_of(scenario, some_jobs(40)), policy)
    idle = event_rows(Effect.NODE_UP, [100.0, 700.0, 1000.0], 0, 0.0)
    ticked = play(scenario, world_of(scenario, some_jobs(40), idle), policy)
    assert plain.orders == ticked.orders and np.array_equal(plain.ends_s(), ticked.ends_s())


@pytest.mark.parametrize("policy", QUEUE_RULES)
def test_p20_equal_submit_times_are_served_in_the_given_order(policy: str) -> None:
    """The tie rule is the job id: alike but for their tenant, whoever stands first starts first."""
    scenario = compiled()
    for tenants in ([0, 1, 2], [2, 0, 1]):
        found = play(scenario, world(scenario, [(0.0, 1, 10.0)] * 3, tenant=tenants), policy)
        assert found.starts_s().tolist() == [0.0, 10.0, 20.0]


def world_of(scenario: Compiled, requests: NDArray[np.void], *events: NDArray[np.void]) -> World:
    """A world of requests with the scenario's beliefs."""
    filled = requests.copy()
    beliefs.fill(filled, scenario.scenario.knowledge, scenario.configurations, source_rng(0, 0, "beliefs"))
    return make_world(scenario, filled, merge({str(place): rows for place, rows in enumerate(events)}))


def with_an_oversize_job(requests: NDArray[np.void]) -> tuple[NDArray[np.void], int]:
    """The requests with one more that fits nowhere, between the others, and its job id."""
    added = requests[[requests.size // 3]].copy()
    added["submit_s"] += 0.5
    added["min_gpus"] = added["max_gpus"] = 1 << 20
    added["rejected"] = 1
    joined = by_submit(np.concatenate([requests, added]))
    return joined, int(np.flatnonzero(joined["min_gpus"] == 1 << 20)[0])


@pytest.mark.parametrize("policy", [name for name in policy_names() if name != "random"])
def test_p15_a_job_that_fits_nowhere_changes_no_other_under_estimates(policy: str) -> None:
    scenario = compiled(nodes=2, gpus=8, horizon_s=20_000.0)
    assert scenario.scenario.knowledge.work == "estimate"
    requests = some_jobs(60)
    longer, place = with_an_oversize_job(requests)
    without, with_it = (play(scenario, world_of(scenario, rows), policy) for rows in (requests, longer))
    _same_but_for(without, with_it, place)


@pytest.mark.compiled
@pytest.mark.parametrize("policy", ["sjf", "easy_backfill", "index"])
def test_p15_nor_in_a_shipped_scenario(policy: str) -> None:
    smoke = load("smoke").compile()
    sampled = smoke.sample(0)
    longer, place = with_an_oversize_job(sampled.requests)
    for name in ("believed_work", "believed_s"):
        longer[name] = 0.0
    beliefs.fill(longer, smoke.scenario.knowledge, smoke.configurations, source_rng(0, 0, "beliefs"))
    without = play(smoke, sampled, policy)
    _same_but_for(without, play(smoke, make_world(smoke, longer, sampled.events.copy()), policy), place)


def _same_but_for(without: Episode, with_it: Episode, place: int) -> None:
    assert np.array_equal(without.starts_s(), np.delete(with_it.starts_s(), place), equal_nan=True)
    assert np.array_equal(without.ends_s(), np.delete(with_it.ends_s(), place), equal_nan=True)
    assert place not in {job for _, _, job, _ in with_it.orders}
    assert metrics(with_it.simulator)["n_rejected"] == 1
    assert with_it.simulator.status() != Status.OPEN


@pytest.mark.parametrize("policy", policy_names())
def test_p16_jobs_without_work_and_empty_worlds_end(policy: str) -> None:
    scenario = compiled()
    for jobs in ([], [(0.0, 1, 0.0)], [(0.0, 1, 5.0), (1.0, 1, 0.0)]):
        found = play(scenario, world(scenario, jobs), policy)
        assert found.simulator.status() != Status.OPEN
        values = [value for value in metrics(found.simulator).values() if value is not None]
        assert np.isfinite(values).all()


@pytest.mark.parametrize("policy", QUEUE_RULES)
def test_p16_a_job_without_work_ends_where_it_is_placed(policy: str) -> None:
    scenario = compiled()
    found = play(scenario, world(scenario, [(0.0, 1, 5.0), (1.0, 1, 0.0)], preemptible=0), policy)
    assert found.starts_s()[1] == found.ends_s()[1] == 5.0


@pytest.mark.parametrize("policy", QUEUE_RULES)
def test_p21_an_evicted_job_is_started_again_from_its_checkpoint(policy: str) -> None:
    scenario = compiled(nodes=2, horizon_s=5000.0, classes=script(restart_s=120.0))
    failure = [(Effect.NODE_DOWN, 0, 1450.0, 10_000.0)]
    found = play(scenario, world(scenario, [(0.0, 1, 3000.0)], failure, checkpoint_interval=600.0), policy)
    assert found.ends_s().tolist() == [3370.0]
    assert metrics(found.simulator)["lost_gpu_s"] == 250.0


@pytest.mark.parametrize("policy", QUEUE_RULES)
def test_p22_utilisation_of_available_and_of_nominal(policy: str) -> None:
    scenario = compiled(nodes=2, gpus=8, horizon_s=100.0)
    jobs = [(0.0, 8, 1000.0), (0.0, 8, 1000.0)]
    found = metrics(play(scenario, world(scenario, jobs, [(Effect.NODE_DOWN, 1, 50.0, 50.0)]), policy).simulator)
    assert (found["held_gpu_s"], found["utilisation_available"], found["utilisation_nominal"]) == (1200.0, 1.0, 0.75)


@pytest.mark.parametrize("policy", ["fifo", "first_fit", "easy_backfill", "sjf", "best_throughput", "index"])
def test_p23_completion_times_with_unfinished_jobs(policy: str) -> None:
    """Finished after 100, 200, 300; at 1000 one has run since 100 and one has waited since 600."""
    scenario = compiled(gpus=4)
    jobs = [(0.0, 1, 100.0), (0.0, 1, 200.0), (0.0, 1, 300.0), (100.0, 1, 5000.0), (600.0, 4, 10.0)]
    found = metrics(play(scenario, world(scenario, jobs, preemptible=0), policy).simulator)
    assert (found["n_finished"], found["finished_share"], found["jct_mean_s"]) == (3, 0.6, 200.0)
    assert found["jct_lower_bound_mean_s"] == 380.0


@pytest.mark.parametrize("policy", policy_names())
def test_p23_nothing_finished_gives_none(policy: str) -> None:
    scenario = compiled()
    found = metrics(play(scenario, world(scenario, [(0.0, 1, 5000.0)]), policy).simulator)
    assert found["jct_mean_s"] is None and found["jct_p99_s"] is None and found["n_finished"] == 0
    assert found["jct_lower_bound_mean_s"] == 1000.0

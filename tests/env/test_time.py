"""P07, P11, P14, P15, P16: clocks, step granularity, rewards, jobs without work or without a place."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hetenv.env.single import HetEnv
from hetenv.events.stream import Effect
from hetenv.objective import Account
from hetenv.scenario import EventClockConfig, Scenario, parse
from hetenv.sim.commands import Command
from hetenv.sim.tables import TOTAL, JobState
from tests.bench.worlds import compiled as compiled_of
from tests.bench.worlds import world as world_of

from .play import at_random, digest, first_legal, play, wait

SHIFT = timedelta(seconds=1_700_006_400)
"""1.7e9 s, rounded up to whole days: a trace's time 0 is a midnight."""


def traced(folder: Path, jobs: list[tuple[float, float, int]], shift: timedelta = timedelta(), **fields: Any) -> Scenario:
    """A scenario that plays a whole trace of (submit_s, seconds, GPUs) on 4 nodes of 4 GPUs."""
    lines = ["timestamp,duration,num_gpus,gpu_time,cluster"]
    for submit_s, seconds, gpus in jobs:
        when = datetime(2017, 10, 20) + shift + timedelta(seconds=submit_s)
        lines.append(f"{when:%Y-%m-%d %H:%M:%S},{seconds},{gpus},{seconds * gpus},vc")
    folder.mkdir(exist_ok=True)
    (folder / "trace.csv").write_text("\n".join(lines), encoding="utf-8")
    data: dict[str, Any] = {
        "name": "traced",
        "summary": "tests",
        "horizon_s": 7200.0,
        "cluster": {"pools": [{"name": "a", "accelerator": "A100-SXM-80", "nodes": 4, "gpus_per_node": 4}]},
        "classes": {"fixed": {"kind": "fixed", "gpu_counts": [1, 2, 4, 8, 16]}},
        "workload": {"kind": "trace", "format": "philly_csv", "path": "trace.csv", "job_class": "fixed", "window": "all"},
        "candidates": {"queued": 6, "running": 2, "configurations": 3},
    }
    return parse({**data, **fields}, folder / "scenario.yaml")


def some_jobs(n: int = 60) -> list[tuple[float, float, int]]:
    rng = np.random.default_rng(0)
    sizes = rng.choice([1, 2, 4, 8], n)
    return list(zip(np.sort(rng.integers(0, 6000, n)).tolist(), rng.integers(0, 2000, n).tolist(), sizes.tolist()))


def ends(env: HetEnv) -> NDArray[np.float64]:
    simulator = env.core.simulator
    return simulator.state.jobs["end_s"][0, : simulator.state.clock["n_requests"][0]].copy()


def first_start(env: HetEnv, mask: NDArray[Any]) -> int:
    """The first start that is legal, else `wait`."""
    rows = env.core.candidates[0]
    found = np.flatnonzero((mask != 0) & (rows["command"] == Command.START))
    return int(found[0]) if found.size else 0


def test_p07_shifting_the_clock_changes_nothing(tmp_path: Path) -> None:
    played = []
    for folder, shift in (("now", timedelta()), ("later", SHIFT)):
        env = HetEnv(traced(tmp_path / folder, some_jobs(), shift))
        played.append(digest([env.reset(seed=0), list(play(env, at_random())), ends(env)]))
    assert played[0] == played[1]


def test_p07_late_in_an_episode_seconds_still_count() -> None:
    """Times are float64: half a second is seen after 50 years."""
    compiled = compiled_of(horizon_s=1.8e9)
    env = HetEnv(compiled.scenario)
    env.reset(options={"world": world_of(compiled, [(1.7e9, 1, 0.5)])})
    _, _, terminated, _, info = env.step(1)
    assert terminated and info["elapsed_s"] == 0.5


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["wait", "first_legal", "random"])
def test_p11_any_policy_finishes(shipped: Scenario, kind: str) -> None:
    pick = {"wait": wait, "first_legal": first_legal, "random": at_random()}[kind]
    env = HetEnv(shipped)
    env.reset(seed=shipped.seeds.train[0])
    simulator = env.core.simulator
    clock, n_jobs, n_events = simulator.state.clock, simulator.state.jobs.shape[1], simulator.facts.events.shape[1]
    per_instant = shipped.candidates.max_commands_per_instant
    n, here, now_s, most_here = 0, 0, -1.0, 0
    while not env._is_over:
        if clock["now"][0] > now_s:
            now_s, here, most_here = clock["now"][0], 0, int(clock["n_queued"][0] + clock["n_running"][0]) + 1
        action = pick(env.action_masks().astype(np.int8))
        env.step(action)
        n, here = n + 1, here + 1
        assert here <= min(most_here, per_instant + 1), "too many decisions at one instant"
        assert action != 0 or env._is_over or clock["now"][0] > now_s, "`wait` did not move the clock"
    assert n <= (2 * n_jobs + 2 * n_events + 1) * (per_instant + 1)


def test_p11_a_rollout_of_the_default_length_ends_an_episode() -> None:
    env = HetEnv()
    env.reset(seed=0)
    assert len(list(play(env, at_random()))) < 2048


def replayed(env: HetEnv, schedule: list[tuple[float, int, int, int]]) -> tuple[float, int]:
    """Return and number of steps when commands (time, command, job, config) are given at their times, and `wait` between."""
    env.reset(seed=3)
    left, total, n = list(schedule), 0.0, 0
    while not env._is_over:
        action, rows = 0, env.core.candidates[0]
        if left and left[0][0] == env.core.simulator.now():
            _, *wanted = left.pop(0)
            matches = [(rows[name] == value) for name, value in zip(("command", "job", "config"), wanted)]
            action = int(np.flatnonzero(np.logical_and.reduce([*matches, rows["is_legal"] == 1]))[0])
        total, n = total + env.step(action)[1], n + 1
    assert not left
    return total, n


@pytest.mark.compiled
def test_p14_the_return_does_not_depend_on_step_granularity(smoke: Scenario) -> None:
    env = HetEnv(smoke)
    env.reset(seed=3)
    total, n, schedule = 0.0, 0, []
    pick = at_random()
    while not env._is_over:
        action = pick(env.action_masks().astype(np.int8))
        row = env.core.candidates[0, action]
        if action:
            schedule.append((env.core.simulator.now(), int(row["command"]), int(row["job"]), int(row["config"])))
        total, n = total + env.step(action)[1], n + 1
    finer = smoke.model_copy(update={"clock": EventClockConfig(max_interval_s=120.0)})
    fine = HetEnv(finer)
    again, n_again = replayed(fine, schedule)
    assert n_again > n + 20, "there are decisions in between"
    assert again == pytest.approx(total, rel=1e-9)
    np.testing.assert_allclose(ends(fine), ends(env), rtol=1e-12)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["first_legal", "random"])
def test_p14_the_return_is_minus_the_job_hours_in_the_system(smoke: Scenario, kind: str) -> None:
    env = HetEnv(smoke)
    for seed in range(3):
        env.reset(seed=seed)
        returned = list(play(env, at_random(seed) if kind == "random" else first_legal))
        total = sum(reward for _, (_, reward, *_) in returned)
        simulator = env.core.simulator
        requests = simulator.facts.requests[0, : ends(env).size]
        seconds = np.minimum(ends(env), smoke.horizon_s) - np.maximum(requests["submit_s"], 0.0)
        assert total == pytest.approx(-(seconds * requests["weight"]).sum() / 3600.0, rel=1e-9)
        elapsed_s = sum(info["elapsed_s"] for _, (*_, info) in returned)
        assert elapsed_s == pytest.approx(simulator.now(), rel=1e-12)
        terms = sum(info["terms"]["job_s"] for _, (*_, info) in returned)
        assert total == pytest.approx(-terms / 3600.0, rel=1e-12)


def test_p14_discount_follows_the_clock(smoke: Scenario) -> None:
    objective = smoke.objective.model_copy(update={"discount_per_s": 1e-4})
    env = HetEnv(smoke.model_copy(update={"objective": objective}))
    env.reset(seed=0)
    for _, (*_, info) in play(env, at_random(), 100):
        assert info["discount"] == pytest.approx(np.exp(-1e-4 * info["elapsed_s"]), rel=1e-15)
    plain = HetEnv(smoke)
    plain.reset(seed=0)
    assert all(info["discount"] == 1.0 for _, (*_, info) in play(plain, at_random(), 100))


def test_p14_rewards_by_terms_and_by_function(smoke: Scenario) -> None:
    scaled = HetEnv(smoke, reward={"job_s": 1.0, "n_finished": -10.0})
    free = HetEnv(smoke, reward=lambda ledger: 10.0 * ledger[Account.N_FINISHED] - ledger[Account.JOB_S])
    for env in (scaled, free):
        env.reset(seed=0)
    for (_, one), (_, other) in zip(play(scaled, at_random()), play(free, at_random())):
        assert one[1] == pytest.approx(other[1], rel=1e-12)
        assert set(one[4]["terms"]) == {"job_s", "n_finished"} and set(other[4]["terms"]) == {"job_s"}


def test_p15_a_job_that_fits_nowhere_changes_no_other_job(tmp_path: Path) -> None:
    jobs = some_jobs(30)
    oversize = (jobs[10][0] + 1.0, 500.0, 32)
    outcomes = []
    for folder, trace in (("without", jobs), ("with", sorted([*jobs, oversize]))):
        env = HetEnv(traced(tmp_path / folder, trace, knowledge={"work": "oracle"}))  # estimates are drawn row by row
        env.reset(seed=0)
        simulator = env.core.simulator
        rejected = simulator.facts.requests["rejected"][0, : len(trace)].astype(bool)
        shown: set[int] = set()
        while not env._is_over:
            rows = env.core.candidates[0]
            shown |= set(rows["job"][rows["is_legal"] == 1].tolist())
            env.step(first_start(env, env.action_masks()))
        assert not shown & set(np.flatnonzero(rejected).tolist()), "shown as a choice"
        assert simulator.state.ledger[0, TOTAL, Account.N_REJECTED] == rejected.sum() == len(trace) - len(jobs)
        assert (simulator.state.jobs["state"][0, : len(trace)][rejected] == JobState.REJECTED).all()
        outcomes.append(ends(env)[~rejected])
    np.testing.assert_array_equal(*outcomes)


def test_p15_the_only_fitting_node_fails_for_good() -> None:
    compiled = compiled_of(nodes=1, gpus=2)
    env = HetEnv(compiled.scenario)
    world = world_of(compiled, [(0.0, 1, 100.0), (0.0, 2, 100.0)], [(Effect.NODE_DOWN, 0, 50.0, np.inf)])
    env.reset(options={"world": world})
    *_, (_, (_, _, terminated, truncated, _)) = play(env, first_legal)
    assert truncated and not terminated and env.core.simulator.now() == compiled.scenario.limit_s


def test_p16_jobs_without_work_end_where_they_are_placed() -> None:
    compiled = compiled_of(nodes=1, gpus=1)
    env = HetEnv(compiled.scenario)
    env.reset(options={"world": world_of(compiled, [(0.0, 1, 0.0), (0.0, 1, 100.0), (10.0, 1, 0.0)])})
    returned = list(play(env, lambda mask: first_start(env, mask)))
    assert ends(env).tolist() == [0.0, 100.0, 100.0]
    assert all(np.isfinite(reward) for _, (_, reward, *_) in returned)
    assert returned[-1][1][2] and env.core.simulator.state.ledger[0, TOTAL, Account.N_FINISHED] == 3


@pytest.mark.parametrize("jobs", [[], [(0.0, 1, 0.0)], [(0.0, 1, 1.0)], [(999.999, 1, 1.0)]])
def test_p16_the_smallest_worlds_run(jobs: list[tuple[float, int, float]]) -> None:
    compiled = compiled_of(nodes=1, gpus=1)
    picks: list[Callable[[NDArray[np.int8]], int]] = [wait, first_legal, at_random()]
    for pick in picks:
        env = HetEnv(compiled.scenario)
        env.reset(options={"world": world_of(compiled, jobs)})
        for _, (observation, reward, *_) in play(env, pick):
            assert env.observation_space.contains(observation) and np.isfinite(reward)
        env.check_invariants()

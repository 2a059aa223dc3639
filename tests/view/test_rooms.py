"""What a view says of room (options, fits, first_fit, overheads) against what the simulator then does, in random worlds."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pytest

from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import JobState, Status
from hetenv.view import View
from tests.random_worlds import Dice, random_world

SEEDS = range(0, 60, 3)


def opened(seed: int) -> tuple[Simulator, View, Dice]:
    compiled, world = random_world(seed)
    simulator = Simulator(compiled)
    simulator.reset(world)
    return simulator, View(simulator), Dice(np.random.default_rng(seed), exact=True)


def live(view: View) -> list[int]:
    return [*view.queue().tolist(), *view.running().tolist()]


def move_on(simulator: Simulator, view: View, dice: Dice) -> None:
    """A random legal command; often a start."""
    starts = [(Command.START, job, int(config)) for job in view.queue().tolist() for config in view.options(job)]
    changes = [(Command.CHANGE, job, int(config)) for job in view.running().tolist() for config in view.options(job)]
    stops = [(Command.PREEMPT, job, -1) for job in view.running().tolist() if view.is_legal(Command.PREEMPT, job)]
    orders = dice.pick(starts, starts, changes, stops, [])
    assert simulator.give(*(dice.pick(*orders) if orders else (Command.WAIT,)))


def decisions(seed: int, n: int = 40) -> Iterator[tuple[Simulator, View, Dice]]:
    """Up to n decisions of a random episode, one after the other."""
    simulator, view, dice = opened(seed)
    for _ in range(n):
        if simulator.status() != Status.OPEN:
            return
        yield simulator, view, dice
        move_on(simulator, view, dice)


@pytest.mark.parametrize("seed", SEEDS)
def test_options_are_all_that_is_legal(seed: int) -> None:
    for simulator, view, _ in decisions(seed):
        rows = view.jobs(live(view))
        for row in rows:
            job, command = int(row["job"]), Command.CHANGE if row["is_running"] else Command.START
            legal = [config for config in range(view.configs.size) if simulator.is_legal(command, job, config)]
            assert view.options(job).tolist() == legal
            assert all(view.is_legal(command, job, config) for config in legal)
            of_job = view.configs[view.allowed(job)]
            assert (of_job["job_class"] == row["job_class"]).all() and set(legal) <= set(view.allowed(job).tolist())
            assert (of_job["n_gpus"] >= row["min_gpus"]).all() and (of_job["n_gpus"] <= row["max_gpus"]).all()


def test_fits_is_what_would_be_legal_after_preemptions() -> None:
    n_checked = 0
    for simulator, view, dice in chain.from_iterable(map(decisions, SEEDS)):
        queued = view.jobs(view.queue())
        gone = [job for job in view.running().tolist() if view.is_legal(Command.PREEMPT, job) and dice.chance(0.5)]
        saved, spare = simulator.snapshot(), view.commands_left > len(gone)
        promised = {
            (job, config): view.fits(job, config, gone)
            for job in queued["job"][queued["had_command"] == 0].tolist()
            for config in view.allowed(job).tolist()
        }
        if not spare:
            continue
        assert all(simulator.give(Command.PREEMPT, job) for job in gone)
        for (job, config), fits in promised.items():
            assert simulator.is_legal(Command.START, job, config) == fits
            n_checked += 1
        simulator.restore(saved)
    assert n_checked > 500


@pytest.mark.parametrize("seed", SEEDS)
def test_first_fit_is_the_first_job_on_its_cheapest_free_configuration(seed: int) -> None:
    for _, view, dice in decisions(seed):
        n_pools = view.free_gpus.size
        prices = dice.rng.uniform(0.0, 0.5, n_pools) * dice.pick(0, 1)
        accept, until_s = dice.pick(np.inf, 1.5), dice.pick(np.inf, view.now_s + 120.0)
        spare = dice.rng.integers(0, 6, n_pools).astype(float)
        ids = dice.rng.permutation(view.queue())
        found = view.first_fit(ids, prices, accept, until_s, spare)
        assert found == _first_fit(view, ids, prices, accept if view.n_running else np.inf, until_s, spare)


def _first_fit(
    view: View, ids: np.ndarray, prices: np.ndarray, accept: float, until_s: float, spare: np.ndarray
) -> tuple[int, int] | None:
    """The rule of `View.first_fit`, word for word."""

    def parts(config: int) -> list[tuple[int, int]]:
        row = view.configs[config]
        return [(row[f"pool_{part}"], row[f"gpus_{part}"]) for part in "ab" if row[f"pool_{part}"] >= 0]

    def cost(config: int) -> float:
        return (1.0 + sum(prices[pool] * gpus for pool, gpus in parts(config))) / view.configs["rate"][config]

    for job in ids.tolist() if view.commands_left > 0 else []:
        limit = accept * min((cost(config) for config in view.allowed(job)), default=np.inf)
        left = view.jobs([job])["believed_left_work"][0]
        good = []
        for config in view.options(job).tolist():
            end_s = view.now_s + view.start_overhead_s(job, config) + left / view.configs["rate"][config]
            is_small = all(gpus <= spare[pool] for pool, gpus in parts(config))
            if cost(config) <= limit and (is_small or end_s <= until_s):
                good.append(config)
        if good:
            return job, min(good, key=cost)
    return None


@pytest.mark.parametrize("seed", SEEDS)
def test_start_overheads_are_what_is_charged(seed: int) -> None:
    for simulator, view, _ in decisions(seed):
        starts = [(job, config) for job in view.queue().tolist() for config in view.options(job).tolist()]
        for job, config in starts[:3]:
            saved, now_s, promised_s = simulator.snapshot(), view.now_s, view.start_overhead_s(job, config)
            simulator.give(Command.START, job, config)
            if simulator.status() == Status.OPEN and simulator.now() == now_s and simulator.state.jobs["state"][0, job] == JobState.RUNNING:
                wake_s = simulator.state.runs["wake_s"][0, simulator.state.jobs["run"][0, job]]
                assert view.jobs([job])["ready_s"][0] == now_s + (promised_s + wake_s)
            simulator.restore(saved)


@pytest.mark.parametrize("seed", SEEDS)
def test_gpus_are_free_or_held(seed: int) -> None:
    for _, view, _ in decisions(seed):
        running = view.jobs(view.running())
        configs = view.configs[running["config"]]
        held = np.zeros(view.free_gpus.size, int)
        np.add.at(held, configs["pool_a"], configs["gpus_a"])
        second = configs["pool_b"] >= 0
        np.add.at(held, configs["pool_b"][second], configs["gpus_b"][second])
        assert (view.free_gpus + held == view.up_gpus).all()
        assert view.n_queued == view.queue().size and view.n_running == view.running().size

"""What holds of every registered policy on every shipped scenario."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hetenv
from hetenv.bench.run import IDENTITY, RESULT_KEYS, TIMES
from hetenv.env.core import KEEP, EnvCore
from hetenv.events.stream import Effect, merge, rows
from hetenv.policy import Decision, Planner, Policy, make_policy, policy_names
from hetenv.scenario import World, make_world
from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import Status
from hetenv.view import View, drive
from tests.bench.test_run import PROMISED

from .episodes import Given, play
from .short import NAMES, compiled, short_world

ROOT = Path(__file__).parents[2]
POLICIES = policy_names()
pytestmark = pytest.mark.compiled

QUICK = ("smoke", "mixed_gpus", "solar_sites", "philly_day")
"""Scenarios of the default suite; every policy meets the others in the slow one."""
over_scenarios = pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
over_policies = pytest.mark.parametrize("policy", POLICIES)


@over_scenarios
@over_policies
def test_decisions_are_legal_and_the_episode_ends(name: str, policy: str) -> None:
    found = play(compiled(name), short_world(name), policy, checked=True)
    assert found.simulator.status() != Status.OPEN and found.orders
    assert {command for _, command, _, _ in found.orders} <= {Command.START, Command.CHANGE, Command.PREEMPT}


@over_scenarios
@over_policies
def test_equal_seeds_give_equal_orders(name: str, policy: str) -> None:
    made = make_policy(policy, name)
    first, again = (play(compiled(name), short_world(name, 1), made, seed=4).orders for _ in range(2))
    assert first == again == play(compiled(name), short_world(name, 1), policy, seed=4).orders


@over_scenarios
@over_policies
def test_run_returns_what_is_promised(name: str, policy: str) -> None:
    brief = compiled(name).scenario
    brief = brief.model_copy(update={"horizon_s": 3600.0, "end": type(brief).model_fields["end"].default})
    short_world(name)  # skips where data are absent
    found = hetenv.run(brief, policy, 2)
    assert set(PROMISED) <= set(found) and tuple(found) == RESULT_KEYS
    assert (found["scenario"], found["policy"], found["seed"], found["n_illegal"]) == (name, policy, 2, 0)
    numbers = [value for key, value in found.items() if key not in IDENTITY and value is not None]
    assert np.isfinite(np.array(numbers, float)).all()
    again = hetenv.run(brief, policy, 2)
    assert {key: found[key] for key in found if key not in TIMES} == {key: again[key] for key in again if key not in TIMES}


def endless_works(world: World, rng: np.random.Generator) -> NDArray[np.void]:
    """The requests with far more work for every second job than the episode holds, in a random order; beliefs stay."""
    requests = world.requests.copy()
    endless = np.arange(0, requests.size, 2)
    requests["work"][endless] = rng.permutation(requests["believed_work"].max() * (1e4 + np.arange(endless.size)))
    return requests


@over_scenarios
@over_policies
def test_the_truth_behind_equal_beliefs_is_not_seen(name: str, policy: str) -> None:
    """Jobs that outlast the episode swap their work; what is to come from half time on changes."""
    world, made, orders = short_world(name), compiled(name), []
    half_s, last = 0.5 * made.scenario.limit_s, world.requests.size - 1
    events = world.events[(world.events["at"] < half_s) | (world.events["clock"] != 0)]
    later = rows(Effect.NODE_DOWN, half_s, np.arange(made.cluster.n_nodes), 1e4)
    later = np.concatenate([later, rows(Effect.JOB_CANCEL, half_s, [0, last], 0.0)])
    for seed, future in ((0, world.events), (1, merge({"past": events, "to come": later}))):
        requests = endless_works(world, np.random.default_rng(seed))
        orders.append([given for given in play(made, make_world(made, requests, future.copy()), policy).orders if given[0] < half_s])
    assert len(orders[0]) >= 5
    assert orders[0] == orders[1]


@over_scenarios
@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "random"])
def test_a_batch_decides_as_its_members_alone(name: str, policy: str) -> None:
    worlds = [short_world(name, seed) for seed in range(3)]
    alone = [play(compiled(name), world, policy).orders for world in worlds]
    made = make_policy(policy, name)
    batch = _plan_batch(name, policy, worlds) if isinstance(made, Planner) else _pick_batch(name, made, worlds)
    assert batch == alone


def _plan_batch(name: str, policy: str, worlds: list[World]) -> list[list[Given]]:
    """A planner for each simulation of one simulator, in turn."""
    simulator, orders = Simulator(compiled(name), len(worlds)), [[] for _ in worlds]
    for b, world in enumerate(worlds):
        simulator.reset(world, b)
    views = [View(simulator, b) for b in range(len(worlds))]
    planners: list[Any] = [Noted(make_policy(policy, name), orders[b]) for b in range(len(worlds))]
    while any(simulator.status(b) == Status.OPEN for b in range(len(worlds))):
        for b, planner in enumerate(planners):
            if simulator.status(b) == Status.OPEN:
                drive(planner, views[b])
    return orders


class Noted:
    """A planner whose orders are written down."""

    name = "noted"

    def __init__(self, planner: Any, orders: list[Given]) -> None:
        self._planner, self._orders = planner, orders
        planner.reset(0)

    def plan(self, view: View) -> Any:
        for order in self._planner.plan(view):
            config = -1 if order.command == Command.PREEMPT else order.config
            if order.command != Command.WAIT:
                self._orders.append((view.now_s, int(order.command), order.job, config))
            yield order


def _pick_batch(name: str, policy: Policy, worlds: list[World]) -> list[list[Given]]:
    """One policy for all simulations at once."""
    core, orders = EnvCore(compiled(name), len(worlds)), [[] for _ in worlds]
    flat, _ = core.reset_many(dict(enumerate(worlds)))
    clock = core.simulator.state.clock
    policy.reset(0)
    while (is_open := clock["status"] == Status.OPEN).any():
        picks = policy.act(Decision(core.candidates, lambda shown=flat: core.layout.views(shown), clock["now"].copy()))
        for b in np.flatnonzero(is_open):
            row = core.candidates[b, picks[b]]
            if row["command"] != Command.WAIT:
                config = -1 if row["command"] == Command.PREEMPT else int(row["config"])
                orders[b].append((float(clock["now"][b]), int(row["command"]), int(row["job"]), config))
        flat, _, _ = core.step(np.where(is_open, picks, KEEP))
    return orders


LIGHT = """
import sys
import hetenv
from hetenv.policy import policy_names
for name in policy_names():
    hetenv.run("smoke", name, 0)
print(*[name for name in ("torch", "stable_baselines3", "ray", "highspy", "pandas", "matplotlib") if name in sys.modules])
"""


def test_heuristics_load_no_heavy_library() -> None:
    """scipy does not count: numba loads it where it is installed."""
    done = subprocess.run([sys.executable, "-c", LIGHT], check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == []


def test_every_policy_says_what_it_does() -> None:
    for policy in POLICIES:
        made = make_policy(policy, "smoke")
        assert made.name == policy and type(made).__doc__

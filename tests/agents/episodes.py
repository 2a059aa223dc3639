"""Whole episodes of any policy on any world, with the orders that it gave."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hetenv.env.core import EnvCore
from hetenv.policy import AnyPolicy, Decision, Order, Planner, Policy, make_policy
from hetenv.scenario import Compiled, World
from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import Status
from hetenv.view import View, drive

Given = tuple[float, int, int, int]
"""Time in seconds, command, job, CONFIG row (-1 for a preemption)."""


@dataclass(frozen=True)
class Episode:
    """The simulator at the end, and the orders given."""

    simulator: Simulator
    orders: list[Given]

    def ends_s(self) -> NDArray[np.float64]:
        """[J] when each job ended."""
        return self._jobs("end_s")

    def starts_s(self) -> NDArray[np.float64]:
        """[J] when each job first started."""
        return self._jobs("first_start_s")

    def _jobs(self, column: str) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self.simulator.state.jobs[column][0, : self.simulator.state.clock["n_requests"][0]]
        return found.copy()


def play(compiled: Compiled, world: World, policy: str | AnyPolicy, seed: int = 0, checked: bool = False) -> Episode:
    """The episode to its end; `checked`: with the invariants at every decision."""
    made = make_policy(policy, compiled.scenario.name)
    made.reset(seed)
    if isinstance(made, Planner):
        return _play_planner(compiled, world, made, checked)
    return _play_rows(compiled, world, made, checked)


def _play_rows(compiled: Compiled, world: World, policy: Policy, checked: bool) -> Episode:
    core = EnvCore(compiled)
    flat, _ = core.reset_many({0: world})
    clock, orders = core.simulator.state.clock, []
    while core.simulator.status() == Status.OPEN:
        decision = Decision(core.candidates, lambda shown=flat: core.layout.views(shown), clock["now"].copy())
        row = int(policy.act(decision)[0])
        chosen = core.candidates[0, row]
        assert chosen["is_legal"] == 1, "a decision is a legal row"
        if chosen["command"] != Command.WAIT:
            config = -1 if chosen["command"] == Command.PREEMPT else int(chosen["config"])
            orders.append((core.simulator.now(), int(chosen["command"]), int(chosen["job"]), config))
        flat, _, _ = core.step(np.array([row]))
        if checked:
            core.simulator.check_invariants()
    return Episode(core.simulator, orders)


class _Recorded:
    """A planner whose orders are noted, and must be legal."""

    def __init__(self, planner: Planner, orders: list[Given]) -> None:
        self.name, self._planner, self._orders = planner.name, planner, orders

    def reset(self, seed: int) -> None:
        self._planner.reset(seed)

    def plan(self, view: View) -> Iterator[Order]:
        for order in self._planner.plan(view):
            assert order.command == Command.WAIT or view.is_legal(order.command, order.job, order.config), f"{order} is legal"
            if order.command != Command.WAIT:
                config = -1 if order.command == Command.PREEMPT else int(order.config)
                self._orders.append((view.now_s, int(order.command), int(order.job), config))
            yield order


def _play_planner(compiled: Compiled, world: World, planner: Planner, checked: bool) -> Episode:
    simulator, orders = Simulator(compiled), []
    simulator.reset(world)
    view, recorded = View(simulator), _Recorded(planner, orders)
    while simulator.status() == Status.OPEN:
        drive(recorded, view)
        if checked:
            simulator.check_invariants()
    return Episode(simulator, orders)

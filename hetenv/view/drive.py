"""Lets a planner decide one instant of a simulation."""

from math import inf

from hetenv.policy import Planner
from hetenv.sim.commands import Command
from hetenv.sim.tables import Status
from hetenv.view.view import View


def drive(planner: Planner, view: View) -> int:
    """Carry out a planner's orders for the present instant, then let time move to the next decision instant.

    Each order is applied before the next is asked for. The instant ends when the planner has no more, when the instant's
    commands are used up or when the episode is over. Illegal orders change nothing, are counted by the simulator and use up a
    command; an order to WAIT ends the plan.

    Returns:
        Number of illegal orders.
    """
    simulator, b = view._simulator, view._b
    instant, n_illegal = simulator.state.clock["instant"][b], 0
    for order in planner.plan(view):
        if order.wake_s < inf:
            simulator.wake(order.wake_s, b)
        if order.command == Command.WAIT:
            break
        n_illegal += not simulator.give(order.command, order.job, order.config, b)
        if simulator.status(b) != Status.OPEN or simulator.state.clock["instant"][b] != instant:
            return n_illegal
    simulator.wait(b)
    return n_illegal

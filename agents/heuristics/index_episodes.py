"""Whole episodes under the `index` rule in compiled code: what tuning spends its time on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetenv.env.candidates import Board, board_of, n_rows
from hetenv.env.core import choose, offer
from hetenv.jit import entry, kernel
from hetenv.jit_reference import by_reference
from hetenv.scenario import Compiled, World
from hetenv.sim.simulator import Simulator
from hetenv.sim.step import open_episode, warm_up
from hetenv.sim.tables import NONE, TOTAL, Facts, Rows, State, Status

from .index_rule import CONTEXT, config_factor, score_rows


@kernel
def open_all(tables: State, worlds: Facts, n: int) -> None:
    """Bring the first n simulations to their first decision instant."""
    state, facts = by_reference(tables), by_reference(worlds)
    for b in range(n):
        open_episode(state, facts, b)
        warm_up(state, facts, b)


@kernel
def play(
    tables: State,
    worlds: Facts,
    first: int,
    last: int,
    max_decisions: int,
    memory: Board,
    window: NDArray[np.int32],
    contexts: Rows,
    factors: NDArray[np.float64],
    parameters: NDArray[np.float64],
    scores: NDArray[np.float64],
    decisions: NDArray[np.int64],
) -> None:
    """Play the opened simulations [first, last) to their ends, or for max_decisions each; counts decisions per simulation."""
    state, facts, board = by_reference(tables), by_reference(worlds), by_reference(memory)
    context = contexts[0]
    for config_id in range(factors.shape[0]):
        config = facts.configs[config_id]
        factors[config_id] = config_factor(config["efficiency"], config["advantage"], config["n_gpus"], parameters)
    for b in range(first, last):
        clock = state.clock[b]
        offer(state, facts, b, board, window)
        while clock["status"] == Status.OPEN and decisions[b] < max_decisions:
            context["n_queued"], context["n_running"] = clock["n_queued"], clock["n_running"]
            action = score_rows(board.table, context, factors, parameters, scores)
            choose(state, facts, b, action, board.table, board, window)
            decisions[b] += 1


class Episodes:
    """A set of worlds on which parameters are tried: sampled once, so that all trials meet the same."""

    def __init__(self, compiled: Compiled, worlds: list[World], max_decisions: int = 1_000_000) -> None:
        self.n = len(worlds)
        self.max_decisions = max_decisions
        self._simulator = Simulator(compiled, self.n)
        for world in worlds:  # all before any is opened: a later one may enlarge the tables
            self._simulator.load(world, 0)
        for b, world in enumerate(worlds):
            self._simulator.load(world, b)
        config = compiled.scenario.candidates
        self._objective = compiled.scenario.objective.vector()
        self._scratch = (
            board_of(config, self._simulator.facts),
            np.full(config.queued + config.running, NONE, np.int32),
            np.zeros(1, CONTEXT),
            np.zeros(self._simulator.facts.configs.size),
        )
        self._scores = np.zeros(n_rows(config))
        self._play: Any = None
        open_all(self._simulator.state, self._simulator.facts, self.n)
        self._opened = self._simulator.snapshot()

    def play(self, parameters: NDArray[np.float64], first: int = 0, last: int | None = None) -> tuple[NDArray[np.float64], int]:
        """Objective of each of the worlds [first, last) under these parameters, and how many decisions they took.

        A world that is still open after max_decisions counts as infinitely bad.
        """
        last = self.n if last is None else last
        state, saved = self._simulator.state, self._opened
        for table, opened in zip(state, saved):
            table[first:last] = opened[first:last]
        decisions = np.zeros(self.n, np.int64)
        arguments = (
            state, self._simulator.facts, first, last, self.max_decisions, *self._scratch, parameters, self._scores, decisions
        )  # fmt: skip
        if self._play is None:
            self._play = entry(play, *arguments)
        self._play(*arguments)
        objectives = state.ledger[first:last, TOTAL] @ self._objective
        objectives[state.clock["status"][first:last] == Status.OPEN] = np.inf
        return objectives, int(decisions.sum())

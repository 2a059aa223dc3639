"""The environment's engine: a batch of simulations driven by candidate rows, one compiled call per step.

Both environments and the benchmark's policy runner stand on it; it knows no spaces and no autoreset.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from hetenv.env.candidates import CANDIDATE, CHOICE, Board, board_of, build, n_rows
from hetenv.env.observation import layout, observe
from hetenv.env.reward import weights_of
from hetenv.jit import entry, inlined, kernel
from hetenv.jit_reference import by_reference
from hetenv.objective import Account
from hetenv.scenario import Compiled, World
from hetenv.sim.advance import advance
from hetenv.sim.running import count
from hetenv.sim.simulator import Simulator
from hetenv.sim.step import clear_delta, give, open_episode, warm_up
from hetenv.sim.tables import DELTA, NONE, Facts, Rows, State, Status

KEEP: Final = -2
"""Action that leaves a simulation as it stands."""
OPEN: Final = -3
"""Action that begins the episode of the world that was loaded."""


@inlined
def offer(state: State, facts: Facts, b: int, board: Board, window: NDArray[np.int32]) -> None:
    """Let time move until something other than `wait` is legal, or the episode is over; leaves the candidate rows built."""
    while build(state, facts, b, board, window) == 0:
        if state.clock[b]["status"] != Status.OPEN:
            return
        advance(state, facts, b)


@inlined
def choose(
    state: State, facts: Facts, b: int, action: int, choices: Rows, board: Board, window: NDArray[np.int32]
) -> None:
    """Carry out the candidate row `action` of choices [A], then offer the next decision."""
    clear_delta(state, b)
    if action < 0 or action >= choices.shape[0] or choices[action]["is_legal"] == 0:
        count(state, b, Account.N_ILLEGAL, 1.0)
        state.clock[b]["commands_left"] -= 1
        if state.clock[b]["commands_left"] <= 0:
            advance(state, facts, b)
    else:
        row = choices[action]
        give(state, facts, b, row["command"], row["job"], row["config"])
    state.clock[b]["decisions"] += 1
    offer(state, facts, b, board, window)


@inlined
def report(
    state: State,
    facts: Facts,
    b: int,
    weights: NDArray[np.float64],
    table: Rows,
    choices: Rows,
    flat: NDArray[np.float32],
    mask: NDArray[np.int8],
) -> float:
    """Write choices [A], observation [D] and mask [A] of simulation b; returns the reward of the step."""
    observe(state, facts, b, table, flat)
    for index in range(table.shape[0]):
        row, choice = table[index], choices[index]
        mask[index] = choice["is_legal"] = row["is_legal"]
        if row["is_legal"] == 1:
            choice["command"], choice["job"], choice["config"] = row["command"], row["job"], row["config"]
    reward = 0.0
    for account in range(weights.shape[0]):
        if weights[account] != 0.0:
            reward -= weights[account] * state.ledger[b, DELTA, account]
    return reward


@kernel
def step_batch(
    tables: State,
    worlds: Facts,
    memory: Board,
    weights: NDArray[np.float64],
    choices: Rows,
    windows: NDArray[np.int32],
    actions: NDArray[np.int64],
    flat: NDArray[np.float32],
    mask: NDArray[np.int8],
    rewards: NDArray[np.float64],
) -> None:
    """One step of every open simulation; OPEN begins an episode, KEEP leaves one as it stands."""
    state, facts, board = by_reference(tables), by_reference(worlds), by_reference(memory)
    for b in range(actions.shape[0]):
        acts = actions[b] > OPEN and actions[b] != KEEP and state.clock[b]["status"] == Status.OPEN
        if acts:
            choose(state, facts, b, actions[b], choices[b], board, windows[b])
        elif actions[b] == OPEN:
            open_episode(state, facts, b)
            warm_up(state, facts, b)
            offer(state, facts, b, board, windows[b])
            clear_delta(state, b)
        else:
            build(state, facts, b, board, windows[b])
        reward = report(state, facts, b, weights, board.table, choices[b], flat[b], mask[b])
        rewards[b] = reward if acts else 0.0


@kernel
def build_all(tables: State, worlds: Facts, memory: Board, windows: NDArray[np.int32], candidates: Rows) -> None:
    """Write the candidate rows [B, A] of all simulations as they stand."""
    state, facts, board = by_reference(tables), by_reference(worlds), by_reference(memory)
    for b in range(candidates.shape[0]):
        build(state, facts, b, board, windows[b])
        for index in range(candidates.shape[1]):
            candidates[b, index] = board.table[index]


RewardLike = Mapping[str, float] | Callable[[NDArray[np.float64]], float] | None


class EnvCore:
    """B simulations of a compiled scenario with their candidate tables.

    Attributes:
        choices: [B, A] CHOICE rows of the present decisions.
        windows: [B, W] visible jobs.
    """

    def __init__(self, compiled: Compiled, n_envs: int = 1, reward: RewardLike = None) -> None:
        self.compiled = compiled
        self.simulator = Simulator(compiled, n_envs)
        config = compiled.scenario.candidates
        self.n_actions = n_rows(config)
        self.layout = layout(compiled)
        self._n_features = self.layout.size
        self.choices = np.zeros((n_envs, self.n_actions), CHOICE)
        self._candidates: NDArray[np.void] | None = None
        self.windows = np.full((n_envs, config.queued + config.running), NONE, np.int32)
        self.reward = reward
        self._weights = weights_of(compiled.scenario.objective, None if callable(reward) else reward)
        self._terms = [(Account(int(k)).name.lower(), int(k)) for k in np.flatnonzero(self._weights)]
        self._board = board_of(config, self.simulator.facts)
        self._step: Any = None
        self._build: Any = None

    def reset(self, world: World, b: int = 0) -> None:
        """Begin an episode in simulation b and offer its first decision."""
        self.reset_many({b: world})

    def reset_many(self, worlds: Mapping[int, World]) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        """Begin episodes in several simulations; returns flat observations [B, D] and masks [B, A] of all."""
        actions = np.full(self.simulator.n_envs, KEEP, np.int64)
        for b, world in worlds.items():
            self.simulator.load(world, b)
            actions[b] = OPEN
        flat, mask, _ = self.step(actions)
        return flat, mask

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.int8], NDArray[np.float64]]:
        """One step of all simulations (KEEP leaves one as it stands).

        Returns:
            flat observations [B, D], masks [B, A] and rewards [B], all fresh arrays.
        """
        n = actions.shape[0]
        flat = np.empty((n, self._n_features), np.float32)
        mask, rewards = np.empty((n, self.n_actions), np.int8), np.empty(n)
        simulator = self.simulator
        arguments = (
            simulator.state,
            simulator.facts,
            self._board,
            self._weights,
            self.choices,
            self.windows,
            actions,
            flat,
            mask,
            rewards,
        )
        self._candidates = None
        if self._step is None:
            self._step = entry(step_batch, *arguments)
        self._step(*arguments)
        if callable(self.reward):
            for b in range(n):
                if actions[b] > OPEN and actions[b] != KEEP:
                    rewards[b] = self.reward(simulator.state.ledger[b, DELTA].copy())
        return flat, mask, rewards

    @property
    def candidates(self) -> NDArray[np.void]:
        """[B, A] CANDIDATE rows of the present decisions; made where they are asked for."""
        if self._candidates is None:
            self._candidates = np.zeros((self.simulator.n_envs, self.n_actions), CANDIDATE)
            arguments = (self.simulator.state, self.simulator.facts, self._board, self.windows, self._candidates)
            if self._build is None:
                self._build = entry(build_all, *arguments)
            self._build(*arguments)
        return self._candidates

    def look(self) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        """Fresh flat observations [B, D] and masks [B, A] as everything stands."""
        flat, mask, _ = self.step(np.full(self.simulator.n_envs, KEEP, np.int64))
        return flat, mask

    def terms(self, b: int) -> dict[str, float]:
        """The last step's ledger columns that carry weight in the objective, by name."""
        row = self.simulator.state.ledger[b, DELTA]
        return {name: float(row[account]) for name, account in self._terms}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_step": None, "_build": None, "_candidates": None}

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__getstate__())
        copy.simulator = self.simulator.__deepcopy__(memo)
        copy.choices, copy.windows = self.choices.copy(), self.windows.copy()
        copy._board = board_of(self.compiled.scenario.candidates, self.simulator.facts)
        memo[id(self)] = copy
        return copy

"""The Python face of the simulator: a batch of episodes of one scenario, driven by commands."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from hetenv.errors import CommandError
from hetenv.jit import entry
from hetenv.scenario import Compiled, World
from hetenv.sim.bitset import insert, n_words, summary_words
from hetenv.sim.commands import Command
from hetenv.sim.initial import empty_facts, initial_state
from hetenv.sim.invariants import check
from hetenv.sim.step import Verb, run
from hetenv.sim.tables import NONE, JobState, Rows, State, Status

GROWTH = 1.25
"""Spare room for requests and events, so that worlds of unlike size seldom move the tables."""


class Simulator:
    """B simulations of one compiled scenario. `state` holds all that changes; everything else is fixed or shared.

    Attributes:
        state: tables [B, ...] (`hetenv.sim.tables`); read them freely, change them through commands only.
        facts: the worlds' tables; row b belongs to simulation b.
    """

    def __init__(self, compiled: Compiled, n_envs: int = 1) -> None:
        if n_envs < 1:
            raise ValueError(f"n_envs: must be at least 1 (got {n_envs})")
        self.compiled = compiled
        self.n_envs = n_envs
        self._empty = initial_state(compiled, 1)
        self.state = _repeated(self._empty, n_envs)
        self.facts = empty_facts(compiled, n_envs, 1, 1)
        self.state.clock["status"] = Status.TERMINATED
        self._entry: Any = None

    def reset(self, world: World, b: int = 0) -> None:
        """Begin an episode of `world` in simulation b and bring it to its first decision."""
        self.load(world, b)
        self._run(b, Verb.OPEN)

    def load(self, world: World, b: int = 0) -> None:
        """Put a world and the empty cluster into simulation b; its episode is still to be opened."""
        self._make_room(world)
        for table, empty in zip(_tables(self.state), _tables(self._empty)):
            table[b] = empty[0]
        n, events = world.requests.size, world.events.size
        self.facts.requests[b, :n], self.facts.events[b, :events] = world.requests, world.events
        self.facts.ranks[b, :, :n] = world.ranks
        np.put_along_axis(self.facts.ranked[b], world.ranks, np.arange(n, dtype=np.int32)[None], axis=1)
        self.facts.node_event[b] = world.node_event
        clock = self.state.clock[b]
        clock["world"], clock["n_requests"], clock["n_wall"] = b, n, world.n_wall_events

    def _run(self, b: int, verb: Verb, command: int = 0, job: int = NONE, config: int = NONE) -> bool:
        arguments = (self.state, self.facts, b, int(verb), int(command), job, config)
        if self._entry is None:
            self._entry = entry(run, *arguments)
        return bool(self._entry(*arguments))

    def give(self, command: Command, job: int = -1, config: int = -1, b: int = 0) -> bool:
        """Give one command; False if it was illegal (it then changed nothing but is counted).

        Raises:
            CommandError: the episode is over, or no such command.
        """
        status = self.state.clock[b]["status"]
        if status != Status.OPEN:
            raise CommandError(f"simulation {b} is {Status(status).name.lower()}; call reset before giving commands")
        return self._run(b, Verb.GIVE, Command(command), int(job), int(config))

    def clear_delta(self, b: int = 0) -> None:
        """Begin a new DELTA row of the ledger."""
        self._run(b, Verb.CLEAR)

    def wait(self, b: int = 0) -> None:
        """Let time move to the next decision."""
        self.give(Command.WAIT, b=b)

    def wake(self, at_s: float, b: int = 0) -> None:
        """Ask for a decision at `at_s` at the latest, should none come before; round clocks keep to their rounds.

        It is no command: it changes nothing else and holds until the next decision. Of several the earliest counts.

        Raises:
            CommandError: at_s does not lie after now.
        """
        clock = self.state.clock[b]
        if not at_s > clock["now"]:
            raise CommandError(f"wake: at_s must lie after now, {clock['now']:g} s (got {at_s:g})")
        if self.facts.rules["round_s"][0] == 0.0:
            clock["forced_s"] = min(clock["forced_s"], at_s)

    def is_legal(self, command: Command, job: int = -1, config: int = -1, b: int = 0) -> bool:
        """Whether `give` would carry the command out."""
        return self._run(b, Verb.ASK, Command(command), int(job), int(config))

    def status(self, b: int = 0) -> Status:
        """Whether simulation b is open, terminated or truncated."""
        return Status(self.state.clock[b]["status"])

    def now(self, b: int = 0) -> float:
        """Seconds since the scenario's start."""
        return float(self.state.clock[b]["now"])

    def snapshot(self, b: int | None = None) -> State:
        """A copy of the state of one simulation ([1, ...]) or of all."""
        rows = slice(None) if b is None else slice(b, b + 1)
        return State(*(table[rows].copy() for table in _tables(self.state)))

    def restore(self, snapshot: State, b: int | None = None) -> None:
        """Put a snapshot back, or the snapshot of one simulation into simulation b (which then follows the same world)."""
        if snapshot.jobs.shape[1] != self.state.jobs.shape[1]:
            raise CommandError(
                f"snapshot has room for {snapshot.jobs.shape[1]} requests, the simulator for {self.state.jobs.shape[1]};"
                " restore snapshots of this simulator, taken since its last reset"
            )
        rows = slice(None) if b is None else slice(b, b + 1)
        for table, saved in zip(_tables(self.state), snapshot):
            table[rows] = saved

    def check_invariants(self, bs: Sequence[int] | None = None) -> None:
        """Raise AssertionError naming the first broken invariant (debugging and tests)."""
        for b in range(self.n_envs) if bs is None else bs:
            check(self.state, self.facts, b)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_entry": None}

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__getstate__())
        copy.state = self.snapshot()
        changing = {name: getattr(self.facts, name).copy() for name in ("requests", "events", "ranks", "ranked", "node_event")}
        copy.facts = self.facts._replace(**changing)
        memo[id(self)] = copy
        return copy

    def _make_room(self, world: World) -> None:
        """Enlarge the tables where a world needs more rows than there are; open episodes go on unchanged."""
        n, events = self.state.jobs.shape[1], self.facts.events.shape[1]
        if world.requests.size <= n and world.events.size <= events:
            return
        n = max(n, int(world.requests.size * GROWTH) + 1) if world.requests.size > n else n
        events = max(events, int(world.events.size * GROWTH) + 1) if world.events.size > events else events
        self._empty = initial_state(self.compiled, n)
        state, facts = _repeated(self._empty, self.n_envs), empty_facts(self.compiled, self.n_envs, n, events)
        for name in ("requests", "events", "ranks", "ranked", "node_event"):
            _copy_into(getattr(facts, name), getattr(self.facts, name))
        for name, table in state._asdict().items():
            if name != "queue_bits":
                _copy_into(table, getattr(self.state, name))
        _extend_free_runs(state, self.state.runs.shape[1])
        self.state, self.facts = state, facts
        self._rebuild_queues()

    def _rebuild_queues(self) -> None:
        n = self.state.jobs.shape[1]
        assert self.state.queue_bits.shape[2] == n_words(n)
        for b, job in zip(*np.nonzero(self.state.jobs["state"] == JobState.QUEUED)):
            for order, words in enumerate(self.state.queue_bits[b]):
                insert(words, 0, summary_words(n), int(self.facts.ranks[self.state.clock[b]["world"], order, job]))


def _tables(state: State) -> tuple[Rows, ...]:
    """The tables of a state, whatever their types."""
    return tuple(state)


def _repeated(state: State, n: int) -> State:
    return State(*(np.repeat(table, n, axis=0) for table in _tables(state)))


def _copy_into(target: Rows, source: Rows) -> None:
    target[tuple(slice(0, size) for size in source.shape)] = source


def _extend_free_runs(state: State, n_old: int) -> None:
    """Put the running slots beyond the old table at the head of each free list."""
    n_new = state.runs.shape[1]
    if n_new == n_old:
        return
    for b in range(state.clock.shape[0]):
        state.runs["next"][b, n_new - 1] = state.clock["free_run"][b]
        state.clock["free_run"][b] = n_old

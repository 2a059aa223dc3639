"""Policies: who decides. A Policy picks candidate rows, a Planner gives commands over the full queue; both see beliefs only.

`make_policy(name)` finds them by name: a registered heuristic or planner, `rl:FOLDER_OR_SCENARIO` a trained agent.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from math import inf
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import ScenarioError, unknown
from hetenv.sim.commands import Command

if TYPE_CHECKING:
    from hetenv.view import View


@dataclass(frozen=True)
class Decision:
    """What a candidate-row policy sees. B simulations at a decision, A candidate rows."""

    candidates: NDArray[np.void]
    """[B, A] CANDIDATE rows (`hetenv.env.candidates`); only rows with is_legal = 1 mean anything."""
    observation: "Callable[[], dict[str, NDArray[np.float32]]]"
    """Makes the observation tables [B, ...] on demand, as the environment shows them."""
    now_s: NDArray[np.float64]
    """[B]."""

    @property
    def legal(self) -> NDArray[np.bool_]:
        """[B, A] the action mask; row 0, `wait`, is always legal."""
        return self.candidates["is_legal"] == 1


@runtime_checkable
class Policy(Protocol):
    """Picks one candidate row per simulation."""

    name: str

    def reset(self, seed: int) -> None:
        """Begin an episode; `seed` feeds whatever randomness the policy has."""

    def act(self, decision: Decision) -> NDArray[np.int64]:
        """rows: [B] index of a legal row each."""


@dataclass(frozen=True)
class Order:
    """One command of a planner: job and CONFIG row (unused by PREEMPT).

    `wake_s`: when the planner wants to be asked again at the latest, s since the scenario's start, after now (inf: it does not
    care). It holds whether or not the command is legal; round clocks keep to their rounds.
    """

    command: Command
    job: int = -1
    config: int = -1
    wake_s: float = inf


@runtime_checkable
class Planner(Protocol):
    """Gives the commands of one instant, in order; an implied wait ends them. Illegal ones are counted and skipped.

    Each order is carried out before the next is asked for, so a planner is best written as a generator: the view always shows the
    state after the orders given so far.
    """

    name: str

    def reset(self, seed: int) -> None:
        """Begin an episode."""

    def plan(self, view: "View") -> Iterable[Order]:
        """Commands over the full queue and any configuration. `view` is read-only and holds beliefs only."""


class ScorePolicy:
    """Base of policies that score candidate rows; the highest legal score wins, ties go to the first row.

    A subclass sets `name` and writes `score`.
    """

    name: str

    def reset(self, seed: int) -> None:
        """Nothing to begin."""

    def score(self, candidates: NDArray[np.void]) -> NDArray[np.float64]:
        """scores: [B, A], finite where legal."""
        raise NotImplementedError

    def act(self, decision: Decision) -> NDArray[np.int64]:
        """The best legal row."""
        scores = np.where(decision.legal, self.score(decision.candidates), -np.inf)
        return scores.argmax(axis=1)


AnyPolicy = Policy | Planner


def agents_package() -> ModuleType:
    """The `agents` package: inside an installed hetenv, or beside it in a checkout."""
    for module in ("hetenv.agents", "agents"):
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            if error.name not in (module, "agents", "hetenv.agents"):
                raise
    raise ScenarioError("the agents package is missing; reinstall hetenv")


def policy_names() -> list[str]:
    """Names of all registered policies and planners."""
    return sorted(agents_package().POLICIES)


def make_policy(name: "str | AnyPolicy", scenario: str | None = None) -> AnyPolicy:
    """A policy by name; an object that is one already comes back as it is.

    Args:
        scenario: name of the scenario it will run on, for policies that are shipped tuned or trained per scenario.

    Raises:
        ScenarioError: no such policy; the message lists the known ones.
    """
    if not isinstance(name, str):
        return name
    agents = agents_package()
    if name.startswith("rl:"):
        return agents.load_trained(name.removeprefix("rl:"))
    registry = {**agents.POLICIES, **agents.VARIANTS}
    if name not in registry:
        raise ScenarioError(unknown("policy", name, registry))
    return registry[name](scenario)

"""The learning curve: greedy play on fixed validation worlds while training goes on, and the best network kept."""

import csv
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from hetenv.policy import Policy
from hetenv.scenario import Compiled

from .network import CandidateNetwork, actor_weights
from .play import Played, play
from .scorer import Scorer
from .trained import FILE, TrainedPolicy, save


@dataclass(frozen=True)
class Task:
    """What to train, and where it goes.

    Attributes:
        rule: the policy that training starts from, by `rule_name`; None and empty: start from nothing.
        name: of the trained policy in tables, to which the decisions it was trained on are added.
        n_validation: validation worlds.
    """

    compiled: Compiled
    rule: Policy | None
    rule_name: str
    name: str
    seed: int
    folder: Path
    n_validation: int = 40


@dataclass(frozen=True)
class Point:
    """One validation; objectives are means over the validation worlds."""

    steps: int
    """Decisions trained on so far."""
    train_s: float
    """Seconds of training so far, validation not counted."""
    objective: float
    versus_start: float
    """Mean paired difference to the policy that training started from; below 0 is better."""
    versus_start_se: float
    """Its standard error."""
    truncated_episodes: int
    """Episodes that ended with jobs left. They are in the mean, at the age of those jobs."""


@dataclass
class Curve:
    """All validations of a run so far."""

    scales: dict[str, float]
    points: list[Point] = field(default_factory=list)
    start_objectives: list[float] = field(default_factory=list)
    """Per validation world, of the policy that training started from."""

    @property
    def best(self) -> Point:
        """The lowest mean objective; the earliest of equals."""
        return min(self.points, key=lambda point: point.objective)

    def add(self, steps: int, train_s: float, played: Played) -> bool:
        """Append a validation; True if it is the best so far."""
        if not self.start_objectives:
            self.start_objectives = played.objective.tolist()
        differences = played.objective - np.array(self.start_objectives)
        error = float(differences.std(ddof=1) / np.sqrt(differences.size)) if differences.size > 1 else float("nan")
        mean = float(played.objective.mean())
        point = Point(steps, train_s, mean, float(differences.mean()), error, int(played.is_open.sum()))
        self.points.append(point)
        return self.best is point

    def write(self, path: Path) -> None:
        """As CSV."""
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [column.name for column in fields(Point)])
            writer.writeheader()
            writer.writerows(asdict(point) for point in self.points)


def validate(task: Task, network: CandidateNetwork, curve: Curve, steps: int, train_s: float) -> Point:
    """Play the validation worlds, extend the curve, and keep the network in `folder/policy.npz` if it is the best so far."""
    scenario, weights = task.compiled.scenario, actor_weights(network)
    policy = TrainedPolicy(f"{task.name}_at_{steps}", Scorer(weights), task.rule)
    played = play(task.compiled, policy, scenario.seeds.numbers("validation", task.n_validation))
    if curve.add(steps, train_s, played):
        about = {"name": policy.name, "scenario": scenario.name, "rule": task.rule_name, "steps": steps}
        save(task.folder / FILE, weights, about)
    curve.write(task.folder / "curve.csv")
    return curve.points[-1]


def summary(curve: Curve) -> dict[str, Any]:
    """Plain data about a finished run: throughput and what validation found."""
    last, best = curve.points[-1], curve.best
    return {
        "decisions": last.steps,
        "train_s": last.train_s,
        "decisions_per_s": last.steps / max(1e-9, last.train_s),
        "best_decisions": best.steps,
        "best_validation_objective": best.objective,
        "start_validation_objective": curve.points[0].objective,
        **curve.scales,
    }

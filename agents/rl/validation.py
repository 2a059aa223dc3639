"""The learning curve: greedy play on fixed validation worlds while training goes on, and the best network kept."""

import csv
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import numpy as np

from hetenv.scenario import Compiled

from .network import CandidateNetwork
from .play import Played, play
from .trained import FILE, TrainedPolicy, save


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


def validate(
    compiled: Compiled, policy: TrainedPolicy, rule_name: str, curve: Curve, steps: int, train_s: float, folder: Path, n: int
) -> Point:
    """Play the validation worlds, extend the curve, and keep the network in `folder` if it is the best so far."""
    played = play(compiled, policy, compiled.scenario.seeds.numbers("validation", n))
    if curve.add(steps, train_s, played):
        keep(folder, policy.network, policy.name, compiled.scenario.name, rule_name, steps)
    curve.write(folder / "curve.csv")
    return curve.points[-1]


def keep(folder: Path, network: CandidateNetwork, name: str, scenario: str, rule_name: str, steps: int) -> None:
    """Write `folder/policy.pt`."""
    save(folder / FILE, network, {"name": name, "scenario": scenario, "rule": rule_name, "steps": steps})

"""The `index` policy: the parametrised rule of `index_rule`, shipped with parameters tuned per scenario."""

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hetenv.env.observation import CLUSTER_FIELDS
from hetenv.errors import ScenarioError
from hetenv.jit import kernel
from hetenv.policy import Decision
from hetenv.sim.tables import Rows

from .index_rule import CONTEXT, N_PARAMETERS, Parameter, config_factor, score_rows

TUNED: Final = Path(__file__).parent / "index_tuned.csv"
"""A row per scenario: its parameters, and from which search they come (`hetenv tune SCENARIO --keep`)."""
PROVENANCE: Final = ("scenario", "trials", "seed", "train_worlds", "validation_worlds", "validation_objective")
NEVER: Final = 1e6
DEFAULT: Final[dict[str, float]] = {
    "time_power": 1.0,
    "weight_power": 0.0,
    "age_power": 0.0,
    "gpu_price": 0.001,
    "gpu_power": -0.3,
    "efficiency_power": 0.5,
    "advantage_power": 0.3,
    "efficiency_floor": 0.15,
    "speed_floor": 0.3,
    "carbon_price": 0.0,
    "energy_price": 0.0,
    "money_price": 0.0,
    "patience": 0.0,
    "preempt_ratio": 2.0,
    "change_gain": 1.3,
    "gpu_base": 0.0,
}
"""Chosen by hand; for scenarios without a tuned row, and where tuning starts."""
_JOB_SCALE: Final = 16.0
"""Scale of the observation's job counts (`hetenv.env.observation`)."""


@kernel
def fill_factors(rows: Rows, parameters: NDArray[np.float64], factors: NDArray[np.float64]) -> None:
    """Write the factors of the configurations that legal candidate rows [A] name."""
    for index in range(1, rows.shape[0]):
        row = rows[index]
        if row["is_legal"] == 1 and row["config"] >= 0:
            factors[row["config"]] = config_factor(row["efficiency"], row["advantage"], row["n_gpus"], parameters)


@kernel
def pick(
    candidates: Rows,
    contexts: Rows,
    factors: NDArray[np.float64],
    parameters: NDArray[np.float64],
    scores: NDArray[np.float64],
    picks: NDArray[np.int64],
) -> None:
    """Score [B, A] candidate rows; writes scores [B, A] where legal and picks [B]."""
    for b in range(candidates.shape[0]):
        fill_factors(candidates[b], parameters, factors)
        picks[b] = score_rows(candidates[b], contexts[b], factors, parameters, scores[b])


class Index:
    """The row that the rule scores highest; `index_rule` states it. Reads candidate rows and job counts; keeps no memory."""

    name = "index"

    def __init__(self, parameters: Mapping[str, float]) -> None:
        """parameters: by name, all of them."""
        self.parameters = vector(parameters)
        self._factors = np.zeros(1)

    def reset(self, seed: int) -> None:
        """Nothing to begin."""

    def scores(self, decision: Decision) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """[B, A] scores, -inf where illegal, and the best row of each [B]."""
        rows = np.ascontiguousarray(decision.candidates)
        n_configs = int(rows["config"].max()) + 1
        if n_configs > self._factors.size:
            self._factors = np.zeros(2 * n_configs)
        scores, picks = np.full(rows.shape, -np.inf), np.zeros(rows.shape[0], np.int64)
        pick(rows, contexts_of(decision), self._factors, self.parameters, scores, picks)
        return scores, picks

    def act(self, decision: Decision) -> NDArray[np.int64]:
        """The best row of each simulation."""
        return self.scores(decision)[1]


def contexts_of(decision: Decision) -> NDArray[np.void]:
    """[B] CONTEXT rows: the counts behind the observation's squashed ones (exact below ten thousand jobs)."""
    cluster = np.atleast_2d(decision.observation()["cluster"])
    contexts = np.zeros(cluster.shape[0], CONTEXT)
    for column, field in (("n_queued", "queued"), ("n_running", "running")):
        squashed = cluster[:, CLUSTER_FIELDS.index(field)].astype(np.float64)
        contexts[column] = np.rint(_JOB_SCALE * squashed / np.maximum(1.0 - squashed, 1e-9))
    return contexts


def vector(parameters: Mapping[str, float]) -> NDArray[np.float64]:
    """[N_PARAMETERS] from names; ScenarioError names one that is missing or unknown."""
    names = [parameter.name.lower() for parameter in Parameter]
    for name in set(names) ^ set(parameters):
        raise ScenarioError(f"index: parameter {name!r} is {'missing' if name in names else 'unknown'}; known: {', '.join(names)}")
    found = np.array([float(parameters[name]) for name in names])
    assert found.size == N_PARAMETERS
    return found


def named(parameters: NDArray[np.float64]) -> dict[str, float]:
    """The inverse of `vector`."""
    return {parameter.name.lower(): float(parameters[parameter]) for parameter in Parameter}


@cache
def tuned() -> dict[str, dict[str, float]]:
    """Scenario name -> tuned parameters, as shipped."""
    if not TUNED.is_file():
        return {}
    with TUNED.open(encoding="utf-8", newline="") as file:
        return {row["scenario"]: {name: float(row[name]) for name in DEFAULT} for row in csv.DictReader(file)}


def keep(found: Mapping[str, Any]) -> None:
    """Ship the result of `tune` as the scenario's parameters."""
    rows: dict[str, dict[str, Any]] = {}
    if TUNED.is_file():
        with TUNED.open(encoding="utf-8", newline="") as file:
            rows = {row["scenario"]: row for row in csv.DictReader(file)}
    rows[found["scenario"]] = {**{name: found[name] for name in PROVENANCE}, **found["parameters"]}
    with TUNED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*PROVENANCE, *DEFAULT], restval=0.0, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in sorted(rows))
    tuned.cache_clear()


def index(scenario: str | None) -> Index:
    """The rule as tuned for a scenario, with DEFAULT parameters where none are shipped for it."""
    return Index(tuned().get(scenario or "", DEFAULT))

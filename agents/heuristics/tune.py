"""Tuning of the `index` rule: random search over whole episodes on common training worlds, selection on validation worlds.

Each round draws settings, half of them afresh around the start, half near the best so far; all play a few worlds, the
better third plays three times
as many, and so on to all (successive halving: Jamieson and Talwalkar, AISTATS 2016). The FINALISTS play the validation worlds.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hetenv.objective import Account
from hetenv.scenario import Compiled, Scenario, load
from hetenv.units import JOULE_PER_KWH

from .index import DEFAULT, index, named, vector
from .index_episodes import Episodes
from .index_rule import N_PARAMETERS, Parameter

ROUND: Final = 40
"""Settings per round."""
FINALISTS: Final = 8
KEPT_SHARE: Final = 1.0 / 3.0
NEAR_SIGMA: Final = 0.25
"""Relative step near the best, in ranges."""
TRAIN_WORLDS: Final = 36
MAX_DECISIONS: Final = 100_000
"""Per episode: a setting that never ends counts as infinitely bad."""


@dataclass(frozen=True)
class _Range:
    """How a parameter is drawn: log-uniform in [low, high] where `log`, else uniform; `off` (if any) with probability OFF_SHARE."""

    low: float
    high: float
    log: bool = False
    off: float | None = None


OFF_SHARE: Final = 0.25
RANGES: Final[dict[Parameter, _Range]] = {
    Parameter.TIME_POWER: _Range(0.0, 4.0),
    Parameter.WEIGHT_POWER: _Range(-0.5, 1.0, off=0.0),
    Parameter.AGE_POWER: _Range(0.0, 1.0, off=0.0),
    Parameter.GPU_PRICE: _Range(1e-5, 0.3, log=True),
    Parameter.GPU_BASE: _Range(1e-3, 1.0, log=True, off=0.0),
    Parameter.GPU_POWER: _Range(-2.5, 1.0),
    Parameter.EFFICIENCY_POWER: _Range(0.0, 3.0),
    Parameter.ADVANTAGE_POWER: _Range(0.0, 2.0, off=0.0),
    Parameter.EFFICIENCY_FLOOR: _Range(0.0, 0.8, off=0.0),
    Parameter.SPEED_FLOOR: _Range(0.0, 1.0, off=0.0),
    Parameter.PREEMPT_RATIO: _Range(0.5, 100.0, log=True, off=1e6),
    Parameter.CHANGE_GAIN: _Range(1.05, 4.0, log=True, off=1e6),
}
IMPACT_FACTOR: Final = _Range(0.2, 5.0, log=True)
"""On the impact prices, whose start is the objective's own ratio."""
PATIENCE: Final = _Range(0.02, 5.0, log=True, off=0.0)
"""Searched only where the objective counts energy, carbon or its cost."""


@dataclass(frozen=True)
class Trial:
    """A setting and what it cost.

    Attributes:
        objective: mean over the worlds it played.
        n_worlds: how many of the training worlds these are.
    """

    parameters: NDArray[np.float64]
    objective: float
    n_worlds: int


def impact_prices(scenario: Scenario) -> dict[Parameter, float]:
    """The objective's weights of energy, carbon and grid cost in weighted job-hours; only those that are positive."""
    weights = scenario.objective.vector()
    job_hour = weights[Account.JOB_S] * 3600.0
    if job_hour <= 0.0:
        return {}
    prices = {
        Parameter.CARBON_PRICE: weights[Account.CARBON_KG] / job_hour,
        Parameter.ENERGY_PRICE: weights[Account.ENERGY_J] * JOULE_PER_KWH / job_hour,
        Parameter.MONEY_PRICE: weights[Account.GRID_COST_USD] / job_hour,
    }
    return {parameter: float(price) for parameter, price in prices.items() if price > 0.0}


class _Draws:
    """Settings at random."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.start = vector(DEFAULT)
        self.ranges = dict(RANGES)
        for parameter, price in impact_prices(scenario).items():
            self.start[parameter] = price
            self.ranges[parameter] = _Range(price * IMPACT_FACTOR.low, price * IMPACT_FACTOR.high, log=True)
            self.ranges[Parameter.PATIENCE] = PATIENCE

    def afresh(self) -> NDArray[np.float64]:
        """Every searched parameter drawn from its range."""
        found = self.start.copy()
        for parameter, span in self.ranges.items():
            found[parameter] = self._one(span)
        return found

    def near(self, best: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
        """About half of the parameters moved by a normal step of sigma ranges; now and then one drawn anew."""
        found = best.copy()
        for parameter, span in self.ranges.items():
            if self._rng.random() < 0.5:
                continue
            is_off = span.off is not None and found[parameter] == span.off
            if is_off or self._rng.random() < 0.1:
                found[parameter] = self._one(span)
                continue
            low, high, at = (np.log(x) if span.log else x for x in (span.low, span.high, max(found[parameter], span.low)))
            moved = np.clip(at + sigma * (high - low) * self._rng.standard_normal(), low, high)
            found[parameter] = np.exp(moved) if span.log else moved
        return found

    def mixed(self, one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
        """Each parameter from one of two settings."""
        return np.where(self._rng.random(N_PARAMETERS) < 0.5, one, other)

    def _one(self, span: _Range) -> float:
        if span.off is not None and self._rng.random() < OFF_SHARE:
            return span.off
        if span.log:
            return float(np.exp(self._rng.uniform(np.log(span.low), np.log(span.high))))
        return float(self._rng.uniform(span.low, span.high))


def tune(
    scenario: "str | Path | Scenario",
    trials: int = 400,
    seed: int = 0,
    minutes: float | None = None,
    progress: Callable[[int, int, float], None] | None = None,
    n_train: int = TRAIN_WORLDS,
) -> dict[str, Any]:
    """Tune the rule for a scenario.

    Args:
        trials: settings to try.
        minutes: stop the search after this time at the latest.
        progress: called with trials done, trials wanted and the best training objective so far.
        n_train: training worlds, from the scenario's training seeds.

    Returns:
        Plain data: `parameters` by name, objectives (means) of the found, the hand-chosen and the shipped setting on
        the validation worlds, the found one's on
        the training worlds, and how they were found.
    """
    began_s = time.perf_counter()
    found = load(scenario)
    compiled = found.compile()
    draws = _Draws(found, seed)
    train = _episodes(compiled, list(found.seeds.numbers("train", n_train)))
    until_s = np.inf if minutes is None else began_s + 60.0 * minutes
    best, n_tried, n_decisions = _search(draws, train, trials, until_s, progress)
    best = [replace(trial, parameters=_rounded(trial.parameters)) for trial in best]
    searched_s = time.perf_counter() - began_s
    validation = _episodes(compiled, list(found.seeds.numbers("validation")))
    shipped = index(found.name).parameters
    on_validation = [float(validation.play(trial.parameters)[0].mean()) for trial in best]
    winner = best[int(np.argmin(on_validation))]
    return {
        "scenario": found.name,
        "parameters": named(winner.parameters),
        "train_objective": winner.objective,
        "validation_objective": min(on_validation),
        "validation_objective_start": float(validation.play(draws.start)[0].mean()),
        "validation_objective_shipped": float(validation.play(shipped)[0].mean()),
        "trials": n_tried,
        "seed": seed,
        "train_worlds": train.n,
        "validation_worlds": validation.n,
        "decisions": n_decisions,
        "search_s": searched_s,
    }


def _rounded(parameters: NDArray[np.float64]) -> NDArray[np.float64]:
    """To the four digits that are shipped."""
    return np.array([float(f"{value:.4g}") for value in parameters])


def _episodes(compiled: Compiled, seeds: list[int]) -> Episodes:
    return Episodes(compiled, [compiled.sample(seed) for seed in seeds], MAX_DECISIONS)


def _search(
    draws: _Draws,
    train: Episodes,
    trials: int,
    until_s: float,
    progress: Callable[[int, int, float], None] | None,
) -> tuple[list[Trial], int, int]:
    """The best FINALISTS settings that played all training worlds, how many settings were tried, and their decisions."""
    best: list[Trial] = []
    n_tried = n_decisions = 0
    n_rounds = max(1, -(-trials // ROUND))
    while n_tried < trials and (time.perf_counter() < until_s or not best):
        share = n_tried / (n_rounds * ROUND)
        settings = _round(draws, best, min(ROUND, trials - n_tried), share)
        ended, spent = _halve(train, settings)
        best = sorted([*best, *ended], key=lambda trial: trial.objective)[:FINALISTS]
        n_tried, n_decisions = n_tried + len(settings), n_decisions + spent
        if progress is not None:
            progress(n_tried, trials, best[0].objective)
    return best, n_tried, n_decisions


def _round(draws: _Draws, best: list[Trial], n: int, share: float) -> list[NDArray[np.float64]]:
    """n settings; `share` of the search is done. At first all afresh, later mostly near the best, in shrinking steps."""
    if not best:
        return [draws.start, *(draws.afresh() if k % 2 else draws.near(draws.start, NEAR_SIGMA) for k in range(n - 1))]
    settings = []
    for k in range(n):
        if k < n * 0.3 * (1.0 - share):
            settings.append(draws.afresh())
            continue
        parent = best[k % len(best)].parameters
        if k % 3 == 0:
            parent = draws.mixed(parent, best[(k // 3) % len(best)].parameters)
        settings.append(draws.near(parent, NEAR_SIGMA * (1.0 - 0.8 * share)))
    return settings


def _halve(train: Episodes, settings: list[NDArray[np.float64]]) -> tuple[list[Trial], int]:
    """Successive halving; the trials that played all worlds, and the decisions of all."""
    sums = [0.0] * len(settings)
    alive, played, spent = list(range(len(settings))), 0, 0
    n = max(1, train.n // 9)
    while True:
        last = min(train.n, n)
        for k in alive:
            objectives, decisions = train.play(settings[k], played, last)
            sums[k] += float(objectives.sum())
            spent += decisions
        played = last
        alive.sort(key=lambda k: sums[k])
        if played == train.n:
            return [Trial(settings[k], sums[k] / played, played) for k in alive if np.isfinite(sums[k])], spent
        alive = alive[: max(2, int(np.ceil(len(alive) * KEPT_SHARE)))]
        n *= 3

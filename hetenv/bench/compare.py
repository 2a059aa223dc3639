"""Comparison of policies: rows of means and paired differences over common seeds, from the results of single episodes."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.bench.metrics import METRICS
from hetenv.bench.stats import ALPHA, Floats, MeanSample, holm_levels, mean_sample
from hetenv.errors import ScenarioError, unknown

COMPARED: Final = (*METRICS, "decision_mean_s", "wall_s")
Episode = Mapping[str, Any]
"""One result of `run`."""
Column = tuple[MeanSample, int] | None
Triple = tuple[float | None, float | None, float | None]
"""A mean and its interval."""
UNDEFINED: Final = (None, None, None)


@dataclass(frozen=True)
class ComparisonRow:
    """One metric of one policy on one scenario, over n common seeds.

    lo, hi: interval of the mean. diff: mean of (policy - baseline) over the seeds; diff_lo, diff_hi: its interval, corrected over the
    policies of the scenario. None: undefined.
    """

    scenario: str
    policy: str
    metric: str
    mean: float | None
    lo: float | None
    hi: float | None
    diff: float | None
    diff_lo: float | None
    diff_hi: float | None
    n: int

    @property
    def verdict(self) -> str:
        """`better` or `worse` than the baseline where the corrected interval excludes zero, else empty."""
        direction = METRICS[self.metric].better if self.metric in METRICS else -1
        if self.diff_lo is None or self.diff_hi is None or direction == 0 or self.diff_lo <= 0.0 <= self.diff_hi:
            return ""
        return "better" if (self.diff_lo > 0.0) == (direction > 0) else "worse"


def compare(episodes: Iterable[Episode], baseline: str) -> list[ComparisonRow]:
    """Rows for every scenario, policy and metric, in the order in which scenarios and policies first appear.

    Only seeds that every policy of a scenario has run count. A metric that a policy or the baseline lacks on a seed (None) is
    left out of that mean, and n says over how many seeds it is.

    Raises:
        ScenarioError: no episode of the baseline on a scenario, or episodes of unlike dynamics under one name.
    """
    by_scenario: dict[str, dict[str, dict[int, Episode]]] = {}
    for episode in episodes:
        by_policy = by_scenario.setdefault(str(episode["scenario"]), {})
        by_policy.setdefault(str(episode["policy"]), {})[int(episode["seed"])] = episode
    return [row for scenario, by_policy in by_scenario.items() for row in _compare_one(scenario, by_policy, baseline)]


def _compare_one(scenario: str, by_policy: Mapping[str, Mapping[int, Episode]], baseline: str) -> list[ComparisonRow]:
    if baseline not in by_policy:
        raise ScenarioError(f"{scenario}: " + unknown("baseline", baseline, by_policy))
    goldens = {str(episode["golden"]) for episodes in by_policy.values() for episode in episodes.values()}
    if len(goldens) > 1:
        raise ScenarioError(f"{scenario}: episodes of unlike dynamics ({', '.join(sorted(goldens))}); run them again")
    seeds = sorted(set.intersection(*(set(episodes) for episodes in by_policy.values())))
    values = {
        policy: np.array([[_number(episodes[seed][metric]) for metric in COMPARED] for seed in seeds], np.float64)
        for policy, episodes in by_policy.items()
    }
    rows = [
        row
        for k, metric in enumerate(COMPARED)
        for row in _metric_rows(scenario, metric, {p: v[:, k] for p, v in values.items()}, baseline)
    ]
    place = {policy: index for index, policy in enumerate(values)}
    return sorted(rows, key=lambda row: place[row.policy])


def _metric_rows(scenario: str, metric: str, values: Mapping[str, Floats], baseline: str) -> list[ComparisonRow]:
    """Rows of one metric; values: per policy [seeds], nan where undefined."""
    others = [policy for policy in values if policy != baseline]
    means = _samples(list(values.values()))
    differences = _corrected(_samples([values[policy] - values[baseline] for policy in others]))
    of_policy: dict[str, Triple] = {baseline: (0.0, 0.0, 0.0), **dict(zip(others, differences))}
    rows = []
    for policy, column in zip(values, means):
        if column is None:
            rows.append(ComparisonRow(scenario, policy, metric, *UNDEFINED, *UNDEFINED, 0))
        else:
            sample, index = column
            mean = (float(sample.mean[index]), *_finite(sample.interval(index)))
            rows.append(ComparisonRow(scenario, policy, metric, *mean, *of_policy[policy], sample.n))
    return rows


def _number(value: object) -> float:
    return float("nan") if value is None or value == "" else float(value)  # type: ignore[arg-type]


def _samples(columns: Sequence[Floats]) -> list[Column]:
    """Resampled mean of each column [seeds]; nans are left out, None where there is nothing else."""
    defined = [column[~np.isnan(column)] for column in columns]
    found: list[Column] = [None] * len(defined)
    for n in {column.size for column in defined} - {0}:
        places = [place for place, column in enumerate(defined) if column.size == n]
        sample = mean_sample(np.stack([defined[place] for place in places], axis=1))
        for index, place in enumerate(places):
            found[place] = (sample, index)
    return found


def _corrected(columns: Sequence[Column]) -> list[Triple]:
    """Mean and Holm-corrected interval of each difference; undefined ones do not count as comparisons."""
    there = [column for column in columns if column is not None]
    levels = iter(holm_levels(np.array([sample.p_value(index) for sample, index in there]), ALPHA))
    found: list[Triple] = []
    for column in columns:
        if column is None:
            found.append(UNDEFINED)
        else:
            sample, index = column
            found.append((float(sample.mean[index]), *_finite(sample.interval(index, next(levels)))))
    return found


def _finite(interval: tuple[float, float]) -> tuple[float | None, float | None]:
    return interval if np.isfinite(interval[0]) else (None, None)


def write_csv(rows: Sequence[ComparisonRow], path: Path) -> None:
    """The rows as CSV; undefined values are empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(ComparisonRow)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)

"""The tables people read: one Markdown table per scenario, with what must be known to compare it with another."""

from collections.abc import Mapping, Sequence
from typing import Final

from hetenv.bench.compare import ComparisonRow
from hetenv.bench.metrics import METRICS
from hetenv.phases import flatten
from hetenv.scenario import DrainEnd, OneByOneClockConfig, RoundClockConfig, Scenario, WarmStart

SHOWN: Final = (
    "jct_lower_bound_mean_s",
    "jct_p99_s",
    "finished_share",
    "utilisation_available",
    "energy_kwh",
    "carbon_kg",
    "cost_usd",
)
"""Columns besides the primary metric."""


def settings(scenario: Scenario) -> str:
    """What a reader must know before comparing the table with another: knowledge, prices of changes, windows."""
    restarts = sorted({job_class.restart_s for job_class in flatten(scenario.classes).values()})
    to_s = "the end" if scenario.measure.to_s is None else f"{scenario.measure.to_s:g} s"
    return "; ".join(
        (
            f"knowledge of work: {_knowledge(scenario)}",
            f"clock: {_clock(scenario)}",
            f"start: {f'warm, {scenario.start.until_s:g} s' if isinstance(scenario.start, WarmStart) else 'empty cluster'}",
            f"end: {f'drain until {scenario.limit_s:g} s' if isinstance(scenario.end, DrainEnd) else f'{scenario.limit_s:g} s'}",
            f"measured: {scenario.measure.from_s:g} s to {to_s}",
            "restart, fixed part: " + ", ".join(f"{restart_s:g}" for restart_s in restarts) + " s",
            "mapping: pack",
            f"contention between jobs: {scenario.contention}",
        )
    )


def _knowledge(scenario: Scenario) -> str:
    known = scenario.knowledge
    error = f" (truth x log-normal error, median {known.estimate_bias:g}, sigma {known.estimate_sigma:g})"
    return known.work + (error if known.work == "estimate" else "")


def _clock(scenario: Scenario) -> str:
    if isinstance(scenario.clock, RoundClockConfig):
        return f"rounds of {scenario.clock.round_s:g} s"
    if isinstance(scenario.clock, OneByOneClockConfig):
        return "each event alone"
    interval_s = scenario.clock.max_interval_s
    return "events" if interval_s is None else f"events, at least every {interval_s:g} s"


def markdown(
    rows: Sequence[ComparisonRow], scenarios: Sequence[Scenario], baseline: str, goldens: Mapping[str, str]
) -> str:
    """One table per scenario: the primary metric with its interval and corrected difference, then SHOWN as means."""
    return "\n\n".join(
        _one_table(
            [row for row in rows if row.scenario == scenario.name], scenario, baseline, goldens.get(scenario.name, "?")
        )
        for scenario in scenarios
    )


def _one_table(rows: Sequence[ComparisonRow], scenario: Scenario, baseline: str, golden: str) -> str:
    primary = scenario.primary_metric
    by_policy: dict[str, dict[str, ComparisonRow]] = {}
    for row in rows:
        by_policy.setdefault(row.policy, {})[row.metric] = row
    direction = METRICS[primary].better
    ranked = sorted(by_policy, key=lambda policy: _sort_key(by_policy[policy][primary].mean, direction))
    shown = [metric for metric in SHOWN if metric != primary]
    head = ["policy", f"{primary} [95 %]", f"difference to {baseline} [95 %, corrected]", "", *shown]
    lines = [
        f"### {scenario.name} (version {scenario.version}, golden {golden})",
        "",
        _line(head),
        _line(["---"] * len(head)),
    ]
    for policy in ranked:
        row = by_policy[policy][primary]
        difference = "baseline" if policy == baseline else _with_interval(row.diff, row.diff_lo, row.diff_hi)
        cells = [policy, _with_interval(row.mean, row.lo, row.hi), difference, row.verdict]
        lines.append(_line([*cells, *(_figure(by_policy[policy][metric].mean) for metric in shown)]))
    n = max((row.n for row in rows), default=0)
    means = (
        "Policies whose name ends in `_oracle` read the truth. " if any(p.endswith("_oracle") for p in ranked) else ""
    )
    lines += [
        "",
        f"{n} common seeds; 95 % bootstrap-t intervals, corrected over policies by Holm's method. {means}{settings(scenario)}.",
    ]
    return "\n".join(lines)


def _sort_key(mean: float | None, direction: int) -> float:
    return float("inf") if mean is None else (-mean if direction > 0 else mean)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _with_interval(value: float | None, low: float | None, high: float | None) -> str:
    return _figure(value) + ("" if low is None or high is None else f" [{_figure(low)}, {_figure(high)}]")

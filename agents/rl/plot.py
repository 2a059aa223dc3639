"""The learning curve as a picture."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from .validation import Curve

matplotlib.use("Agg")


def plot_curve(curve: Curve, path: Path, scenario: str, rule_name: str) -> None:
    """Validation objective against decisions, with the start's level and the paired standard error."""
    steps = [point.steps for point in curve.points]
    start = curve.points[0].objective
    objective = [point.objective for point in curve.points]
    error = [point.versus_start_se for point in curve.points]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(
        steps,
        [o - e for o, e in zip(objective, error)],
        [o + e for o, e in zip(objective, error)],
        alpha=0.25,
        linewidth=0,
    )
    axes.plot(steps, objective, marker="o", markersize=3, label="network, greedy")
    axes.axhline(start, color="grey", linestyle="--", label=f"start ({rule_name or 'no rule'})")
    axes.plot(curve.best.steps, curve.best.objective, marker="*", markersize=12, linestyle="", label="kept")
    axes.set(xlabel="decisions", ylabel="objective on validation worlds (less is better)", title=scenario)
    axes.legend()
    figure.savefig(path, dpi=150)

"""`calibrate`: fits at most eight constants of one source's stacks to some of its runs, on top of what is known
elsewhere.

Constants are chosen, not fixed: the one that lowers the penalised cost most is added and all chosen are refitted,
until the gain falls below 0.3. Measured with robust log ratios, as in `fit`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hetenv import catalog
from hetenv.errors import TraceError, unknown
from hetenv.perf import fit
from hetenv.perf.constants import CALIBRATION_SIGMA, SIGMA, Parameter, parameters_for
from hetenv.perf.fit_stacks import complete, fitted_runs, left_out_values
from hetenv.perf.rows import STACK_ROW
from hetenv.perf.runs import Run
from hetenv.perf.scores import spearman, throughputs

MAX_CONSTANTS = 8
MIN_GAIN = 0.3
_HARDWARE_COLUMNS = {"gemm_efficiency": "efficiency", "convolution_efficiency": "convolution"}
"""Where a stack's row takes up the mean of what was fitted to its accelerators and precisions."""
_LEVELS = ("stack", "precision", "accelerator", "conv")


def _even(table: fit.Table) -> fit.Table:
    """One source: every run weighs the same."""
    return replace(table, weights=np.ones(len(table.runs)))


def base_table(runs: Sequence[Run]) -> fit.Table:
    """Runs of one source under constants that have not seen it: left-one-out values, else the shipped ones."""
    known = left_out_values().get(runs[0].source_id)
    if known is None:
        return _even(fit.shipped(runs))
    return _even(fit.tabulate(runs).baked(complete(known, runs)))


def candidates(runs: Sequence[Run]) -> list[Parameter]:
    """Constants of the stacks, precisions and accelerators of these runs, around what the base says.

    Where a source holds several stacks of one family, a constant may also move for all of them at once; where they are
    releases or modes of one product, it moves only so.
    """
    stacks = sorted({run.stack for run in runs})
    products = [fit.about_stack(stack).product for stack in stacks]
    shared = {f"stack:{stack}" for stack, product in zip(stacks, products) if products.count(product) > 1}
    levels = [
        p for p in parameters_for(fit.labels(runs)) if p.label.partition(":")[0] in _LEVELS and p.label not in shared
    ]
    found = [Parameter(p.label, p.constant, 0.0, CALIBRATION_SIGMA.get(p.constant, p.sigma)) for p in levels]
    families: dict[str, set[str]] = {}
    for run in runs:
        families.setdefault(fit.about_stack(run.stack).family, set()).add(run.stack)
    for family, members in families.items():
        if len(members) > 1:
            found += [
                Parameter(f"family:{family}", constant, 0.0, CALIBRATION_SIGMA.get(constant, sigma))
                for constant, sigma in SIGMA["stack"].items()
            ]
    return found


def _gains(table: fit.Table, values: fit.Values, parameters: Sequence[Parameter]) -> NDArray[np.float64]:
    """[P] fall of the penalised cost that a Newton step in each parameter alone promises."""
    logs = np.log(fit.predicted_s(table, values))
    ratio = (logs - table.log_measured) / fit.NOISE
    weight = table.weights**2 / np.sqrt(1.0 + ratio**2)
    jacobian = fit._jacobian(table, values, parameters, logs) / fit.NOISE
    slope = jacobian.T @ (weight * ratio)
    curvature = (jacobian**2).T @ weight + np.array([p.sigma**-2 for p in parameters])
    return np.asarray(slope**2 / curvature)


def choose(table: fit.Table, parameters: Sequence[Parameter]) -> dict[tuple[str, str], float]:
    """At most eight fitted values, chosen greedily."""
    chosen: list[Parameter] = []
    values: dict[tuple[str, str], float] = {}
    best = fit.cost(table, values, [])
    left = list(parameters)
    while left and len(chosen) < MAX_CONSTANTS:
        gains = _gains(table, values, left)
        tried = None
        for index in np.argsort(-gains)[:3]:
            extended = [*chosen, left[int(index)]]
            trial = fit.fit(table, extended, values, n_steps=6)
            cost = fit.cost(table, trial, extended)
            if tried is None or cost < tried[0]:
                tried = (cost, trial, int(index))
        if tried is None or best - tried[0] < MIN_GAIN:
            break
        best, values = tried[0], tried[1]
        chosen.append(left.pop(tried[2]))
    return values


def calibrate(path: Path, source: str, runs: Sequence[Run] | None = None) -> dict[str, object]:
    """Fit `source`'s rows of `path`; returns the chosen constants, the error and stack rows in the form of
    stacks.csv."""
    every = fitted_runs(path) if runs is None else list(runs)
    mine = [run for run in every if run.source_id == source]
    if not mine:
        raise TraceError(unknown("source", source, {run.source_id for run in every}))
    table = base_table(mine)
    values = choose(table, candidates(mine))
    stacks, devices = fit.applied(table, values)
    known_devices = fit.shipped(mine).devices
    rows = []
    for name in dict.fromkeys(run.stack for run in mine):
        members = [i for i, run in enumerate(mine) if run.stack == name]
        numbers = {column: float(stacks[members[0]][column]) for column in STACK_ROW.names or ()}
        for column, hardware in _HARDWARE_COLUMNS.items():
            numbers[column] *= float(np.exp(np.mean(np.log(devices[hardware] / known_devices[hardware])[members])))
        known = asdict(catalog.stack(name))
        rows.append(known | numbers | {"name": f"{source}-{name}", "source": f"calibrated on {path.name}"})
    error = np.abs(fit.predicted_s(table, values) / np.exp(table.log_measured) - 1.0)
    return {
        "source": source,
        "n": len(mine),
        "constants": {f"{label} {constant}": float(np.exp(log)) for (label, constant), log in values.items()},
        "mape": float(error.mean()),
        "median_ape": float(np.median(error)),
        "stacks": rows,
    }


@dataclass(frozen=True)
class Draws:
    """What repeated calibrations on a part of the runs say of the rest. error, signed: [N] mean absolute and mean signed
    relative error of each run over the draws that left it out, NaN where none did. spearman: mean over draws; used:
    constants."""

    error: NDArray[np.float64]
    signed: NDArray[np.float64]
    spearman: float | None
    used: float


class _Tally:
    """Sums over draws."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.total, self.signed, self.count = np.zeros(len(runs)), np.zeros(len(runs)), np.zeros(len(runs))
        self.correlations: list[float] = []

    def add(self, test: NDArray[np.intp], predicted_s: NDArray[np.float64]) -> None:
        """Score the runs of one draw that were left out."""
        part = [self.runs[i] for i in test]
        measured = np.array([run.measured_s for run in part])
        error = predicted_s / measured - 1.0
        self.total[test] += np.abs(error)
        self.signed[test] += error
        self.count[test] += 1
        found = spearman(throughputs(part, predicted_s), throughputs(part, measured))
        self.correlations += [] if found is None else [found]

    def draws(self, used: float) -> Draws:
        """Means over all draws."""
        n = np.where(self.count > 0, self.count, np.nan)
        mean = float(np.mean(self.correlations)) if self.correlations else None
        return Draws(self.total / n, self.signed / n, mean, used)


def _split(rng: np.random.Generator, n: int, share: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Random (fitted, scored) indices."""
    order = rng.permutation(n)
    n_fit = max(2, round(share * n))
    return np.sort(order[:n_fit]), np.sort(order[n_fit:])


def draws(runs: Sequence[Run], n_draws: int, share: float = 0.3, seed: int = 0) -> Draws:
    """Fitted on a random `share` of one source's runs, scored on the rest, `n_draws` times."""
    table = base_table(runs)
    rng = np.random.default_rng(seed)
    tally, used = _Tally(runs), 0
    for _ in range(n_draws):
        train, test = _split(rng, len(runs), share)
        part = _even(table.take(train))
        values = choose(part, candidates(part.runs))
        used += len(values)
        tally.add(test, fit.predicted_s(table.take(test), values))
    return tally.draws(used / n_draws)


def scalar_draws(
    runs: Sequence[Run], predicted_s: NDArray[np.float64], n_draws: int, share: float = 0.3, seed: int = 0
) -> Draws:
    """The same with one factor on `predicted_s`, the median log ratio of the fitted runs."""
    rng = np.random.default_rng(seed)
    log_ratio = np.log([run.measured_s for run in runs]) - np.log(predicted_s)
    tally = _Tally(runs)
    for _ in range(n_draws):
        train, test = _split(rng, len(runs), share)
        tally.add(test, predicted_s[test] * np.exp(np.median(log_ratio[train])))
    return tally.draws(1.0)

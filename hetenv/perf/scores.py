"""Error figures over predictions: relative errors, bias, rank correlation, plan regret, accelerator ratios. Plain
numpy."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hetenv.perf.runs import Run

Score = dict[str, float | int | None]


def score(predicted_s: NDArray[np.float64], measured_s: NDArray[np.float64], n_refused: int = 0) -> Score:
    """mape and median_ape: mean and median |error|; bias: median signed error; all fractions."""
    if not len(measured_s):
        return {"mape": None, "median_ape": None, "bias": None, "n": 0, "n_refused": n_refused}
    error = predicted_s / measured_s - 1.0
    return {
        "mape": float(np.mean(np.abs(error))),
        "median_ape": float(np.median(np.abs(error))),
        "bias": float(np.median(error)),
        "n": len(error),
        "n_refused": n_refused,
    }


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average ranks."""
    order = np.argsort(values, kind="stable")
    found = np.empty(len(values))
    found[order] = np.arange(len(values))
    for value in np.unique(values):
        same = values == value
        found[same] = found[same].mean()
    return found


def spearman(predicted: NDArray[np.float64], measured: NDArray[np.float64]) -> float | None:
    """Rank correlation, None for fewer than three values or no spread."""
    if len(measured) < 3 or np.ptp(measured) == 0 or np.ptp(predicted) == 0:
        return None
    return float(np.corrcoef(ranks(predicted), ranks(measured))[0, 1])


def throughputs(runs: Sequence[Run], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """[N] tokens (or images) per second of the whole job."""
    work = [run.training.global_batch * run.training.tokens_per_sample for run in runs]
    return np.asarray(np.array(work, float) / seconds)


def plan_regrets(runs: Sequence[Run], predicted_s: NDArray[np.float64]) -> list[float]:
    """Per workload with at least two plans: measured time of the plan that the model picks over the best measured
    one."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, run in enumerate(runs):
        groups.setdefault((*run.workload, run.devices.accelerator_entry.name), []).append(i)
    found = []
    for rows in groups.values():
        if len({runs[i].plan for i in rows}) >= 2:
            pick = min(rows, key=lambda i: predicted_s[i])
            found.append(runs[pick].measured_s / min(runs[i].measured_s for i in rows))
    return found


def accelerator_errors(runs: Sequence[Run], predicted_s: NDArray[np.float64]) -> list[float]:
    """Per pair of runs that differ in nothing but the accelerator (same workload, plan and release): |log(predicted ratio of
    their times / measured ratio)|, the relative error that does not depend on which of the two comes first."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, run in enumerate(runs):
        groups.setdefault((*run.workload, run.plan, run.release), []).append(i)
    pairs = [pair for rows in groups.values() for pair in combinations(rows, 2)]
    return [_ratio_error(runs, predicted_s, a, b) for a, b in pairs if _accelerator(runs[a]) != _accelerator(runs[b])]


def best_accelerator_errors(runs: Sequence[Run], predicted_s: NDArray[np.float64]) -> list[float]:
    """Per workload and pair of accelerators: the same between the best measured run on each, whatever its plan and release."""
    groups: dict[tuple[object, ...], dict[str, int]] = {}
    for i, run in enumerate(runs):
        best = groups.setdefault(run.workload, {})
        name = _accelerator(run)
        if name not in best or run.measured_s < runs[best[name]].measured_s:
            best[name] = i
    return [
        _ratio_error(runs, predicted_s, a, b) for best in groups.values() for a, b in combinations(best.values(), 2)
    ]


def _accelerator(run: Run) -> str:
    return run.devices.accelerator_entry.name


def _ratio_error(runs: Sequence[Run], predicted_s: NDArray[np.float64], a: int, b: int) -> float:
    measured = runs[a].measured_s / runs[b].measured_s
    return float(abs(np.log(predicted_s[a] / predicted_s[b] / measured)))

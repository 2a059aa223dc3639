"""`validate`: the three scores of the performance model on a file of measured runs, as plain data.

As shipped: the catalog's constants where they were not fitted on the source; else constants refitted without that
source, and for expert models without that model. Calibrated: at most eight constants on a random 30 % of a source,
scored on the rest. Ratio: within one source, between plans and between accelerators of one workload.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import TraceError, unknown
from hetenv.perf import fit, scores
from hetenv.perf.calibrate import Draws, draws, scalar_draws
from hetenv.perf.fit_stacks import complete, left_out_values
from hetenv.perf.mixed_runs import predict_mixed, profiled
from hetenv.perf.predictions import predictions, write_predictions
from hetenv.perf.runs import Run, read_runs
from hetenv.perf.settle import settled

KINDS = ("dense", "moe", "cnn", "mixed")
MIN_TO_CALIBRATE = 20
N_DRAWS = 20


def as_shipped(runs: Sequence[Run], leave_out_models: bool = True) -> NDArray[np.float64]:
    """[N] seconds, each run under constants that have not seen its source (for expert models of a fitted source: its
    model)."""
    predicted = np.zeros(len(runs))
    groups: dict[str, list[int]] = {}
    for i, run in enumerate(runs):
        key = run.source_id if run.source_id in left_out_values() else ""
        model = f"model:{run.training.model_entry.name}"
        if key and leave_out_models and run.kind == "moe" and model in left_out_values():
            key = model
        groups.setdefault(key, []).append(i)
    for key, rows in groups.items():
        part = [runs[i] for i in rows]
        table = fit.tabulate(part).baked(complete(left_out_values()[key], part)) if key else fit.shipped(part)
        predicted[rows] = fit.predicted_s(table, {})
    return predicted


def _grouped(runs: Sequence[Run], predicted: NDArray[np.float64], refused: Sequence[Run]) -> dict[str, object]:
    """Scores by kind and by source."""
    measured = np.array([run.measured_s for run in runs])
    kinds = np.array([run.kind for run in runs])
    sources = np.array([run.source_id for run in runs])
    found: dict[str, object] = {}
    for kind in KINDS:
        rows = kinds == kind
        found[kind] = scores.score(predicted[rows], measured[rows], sum(run.kind == kind for run in refused))
    per_source: dict[str, object] = {}
    for source in sorted({*sources, *(run.source_id for run in refused)}):
        rows = [i for i, name in enumerate(sources) if name == source]
        entry = scores.score(predicted[rows], measured[rows], sum(run.source_id == source for run in refused))
        part = [runs[i] for i in rows]
        entry["spearman"] = scores.spearman(
            scores.throughputs(part, predicted[rows]), scores.throughputs(part, measured[rows])
        )
        per_source[source] = entry
    found["by_source"] = per_source
    return found


def _apart(runs: Sequence[Run], predicted: NDArray[np.float64]) -> dict[str, object]:
    """Scores by kind of rows on accelerators and precisions that other sources hold too, and of those that none does:
    without their source nothing is known of that hardware but its datasheet."""
    holders: dict[tuple[str, str], set[str]] = {}
    hardware = [
        (run.devices.accelerator_entry.name, f"{run.devices.accelerator_entry.architecture}/{run.cells['precision']}")
        for run in runs
    ]
    for run, names in zip(runs, hardware):
        for level, name in enumerate(names):
            holders.setdefault((str(level), name), set()).add(run.source_id)
    alone = np.array([any(len(holders[str(i), name]) == 1 for i, name in enumerate(names)) for names in hardware], bool)
    measured = np.array([run.measured_s for run in runs])
    found: dict[str, object] = {}
    for label, chosen in (("shared", ~alone), ("alone", alone)):
        rows = {kind: chosen & np.array([run.kind == kind for run in runs], bool) for kind in KINDS}
        found[label] = {kind: scores.score(predicted[row], measured[row]) for kind, row in rows.items()}
    return found


def _calibration_groups(runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """Runs by source and kind, at least MIN_TO_CALIBRATE each: expert models are calibrated apart, as they are scored."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.source_id, run.kind), []).append(run)
    return {key: part for key, part in groups.items() if len(part) >= MIN_TO_CALIBRATE}


def calibrated(
    runs: Sequence[Run], n_draws: int = N_DRAWS, profiled_s: Mapping[str, float] | None = None
) -> dict[str, object]:
    """Mean errors over draws of sources with at least 20 configurations, by kind and by source.

    profiled_s: by row_id, seconds predicted from layer profiles; where a source has them, one scalar is calibrated instead.
    """
    known = profiled_s or {}
    by_kind: dict[str, list[Draws]] = {kind: [] for kind in KINDS}
    by_source: dict[str, list[Draws]] = {}
    for (source, kind), part in _calibration_groups(runs).items():
        if all(run.row_id in known for run in part):
            found = scalar_draws(part, np.array([known[run.row_id] for run in part]), n_draws)
        else:
            found = draws(part, n_draws)
        by_kind[kind].append(found)
        by_source.setdefault(source, []).append(found)
    result: dict[str, object] = {kind: _drawn(parts) for kind, parts in by_kind.items()}
    result["by_source"] = {
        source: _drawn(parts)
        | {
            "spearman": parts[0].spearman,
            "constants_used": max(part.used for part in parts),
        }
        for source, parts in by_source.items()
    }
    return result


def _drawn(parts: Sequence[Draws]) -> dict[str, float | int | None]:
    """Score over draws; a run that no draw left out does not count."""
    if not parts:
        return {"mape": None, "median_ape": None, "bias": None, "n": 0, "n_refused": 0}
    error = np.concatenate([part.error[~np.isnan(part.error)] for part in parts])
    signed = np.concatenate([part.signed[~np.isnan(part.signed)] for part in parts])
    return {
        "mape": float(error.mean()),
        "median_ape": float(np.median(error)),
        "bias": float(np.median(signed)),
        "n": len(error),
        "n_refused": 0,
    }


def ratio(runs: Sequence[Run], predicted: NDArray[np.float64]) -> dict[str, float | int | None]:
    """Plan regret and error of accelerator ratios, within sources."""
    regrets = scores.plan_regrets(runs, predicted)
    errors, best = scores.accelerator_errors(runs, predicted), scores.best_accelerator_errors(runs, predicted)
    return {
        "accelerator_mape": float(np.mean(errors)) if errors else None,
        "accelerator_n": len(errors),
        "accelerator_best_mape": float(np.mean(best)) if best else None,
        "accelerator_best_n": len(best),
        "plan_regret_median": float(np.median(regrets)) if regrets else None,
        "plan_regret_p90": float(np.quantile(regrets, 0.9)) if regrets else None,
        "plan_n": len(regrets),
    }


def validate(
    path: Path | str,
    by: str = "source_id",
    out: Path | str | None = None,
    stacks: Mapping[str, str] | None = None,
    n_draws: int = N_DRAWS,
) -> dict[str, object]:
    """Scores of a file in the form of published training runs: {"as_shipped", "calibrated", "ratio"}.

    by: column that further groups as-shipped scores (result under "by"). out: folder that gets predictions.csv, and scatter.png
    where matplotlib is installed.
    stacks: source_id -> stack name, for sources that the catalog does not know.
    """
    path = Path(path)
    every = [settled(run) for run in read_runs(path, dict(stacks or {}))]
    mixed_runs = [run for run in every if run.kind == "mixed"]
    mixed = predict_mixed(path, mixed_runs)
    from_profiles = predict_mixed(path, [run for run in every if run.kind == "dense" and profiled(run)])
    refused = [run for run in every if run.refused or (run.row_id in mixed and mixed[run.row_id][1])]
    runs = [run for run in fit.averaged(every) if run.kind != "mixed"]
    predicted = as_shipped(runs)
    for i, run in enumerate(runs):
        if run.row_id in from_profiles and not from_profiles[run.row_id][1]:
            predicted[i] = from_profiles[run.row_id][0]
            runs[i] = replace(run, flags=(*run.flags, "layer profiles"))
    good = [run for run in mixed_runs if run not in refused]
    all_runs = runs + good
    all_predicted = np.concatenate([predicted, np.array([mixed[run.row_id][0] for run in good])])
    shipped = _grouped(all_runs, all_predicted, refused)
    shipped["hardware"] = _apart(runs, predicted)
    shipped["n_rows"] = len(every)
    shipped["refused"] = dict(Counter(run.refused or mixed[run.row_id][1] for run in refused))
    moe = np.array([run.kind == "moe" for run in runs], bool)
    without_source = as_shipped([run for run in runs if run.kind == "moe"], leave_out_models=False)
    shipped["moe_leave_one_source_out"] = scores.score(
        without_source, np.array([run.measured_s for run, there in zip(runs, moe) if there])
    )
    result: dict[str, object] = {
        "as_shipped": shipped,
        "calibrated": calibrated(
            runs, n_draws, {name: value for name, (value, why) in from_profiles.items() if not why}
        ),
        "ratio": ratio(runs, predicted),
    }
    if by != "source_id":
        result["by"] = _by_column(all_runs, all_predicted, by)
    if out is not None:
        seconds = {run.key: float(value) for run, value in zip(runs, predicted)}
        write_predictions(Path(out), predictions(every, seconds, mixed))
    return result


def _by_column(runs: Sequence[Run], predicted: NDArray[np.float64], column: str) -> dict[str, object]:
    """Scores of the rows that share a value of a column."""
    if runs and column not in runs[0].cells:
        raise TraceError(unknown("column", column, runs[0].cells))
    values = np.array([run.cells[column] for run in runs])
    measured = np.array([run.measured_s for run in runs])
    return {
        str(value): scores.score(predicted[values == value], measured[values == value]) for value in np.unique(values)
    }


def refused_share(result: Mapping[str, object]) -> float:
    """Share of the measured rows that the model refuses."""
    shipped = result["as_shipped"]
    assert isinstance(shipped, dict)
    return float(sum(shipped["refused"].values()) / shipped["n_rows"]) if shipped["n_rows"] else 0.0

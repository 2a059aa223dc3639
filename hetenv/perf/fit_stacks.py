"""`fit_stacks`: fits all constants to a file of measured runs and writes the catalog's generated tables.

stacks.csv: one row per described stack; efficiencies.csv: hardware factors; stacks_loso.csv: the fitted logs without
one source (or without one expert model), for predictions "as shipped" of rows that the shipped constants were fitted
on.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hetenv import catalog
from hetenv.catalog import Stack, tables
from hetenv.catalog.software import Software, all_software
from hetenv.perf import fit
from hetenv.perf.constants import COLUMNS, FLAG_PARAMETERS, parameters_for
from hetenv.perf.runs import Run, read_runs
from hetenv.perf.settle import settled

CATALOG = Path(catalog.__file__).parent
SOURCE = "fit of published training runs (fit_stacks); scores in docs/validation.md"
_HARDWARE = ("precision", "accelerator", "memory", "conv")
_SMALLEST_LOG = 5e-4


def fitted_runs(path: Path) -> list[Run]:
    """The configurations that constants are fitted to: all kinds but mixed GPUs, open knobs settled, repeats
    averaged."""
    return [run for run in fit.averaged(settled(run) for run in read_runs(path)) if run.kind != "mixed"]


def groups_of(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """What is left out together: each source, and each expert model of a source with several."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.source_id, []).append(run)
        if run.kind == "moe":
            groups.setdefault(f"model:{run.training.model_entry.name}", []).append(run)
    return groups


def complete(values: fit.Values, runs: Iterable[Run]) -> dict[tuple[str, str], float]:
    """Values with the prior mean for what these runs need and the fit never saw."""
    full = dict(values)
    for parameter in parameters_for(fit.labels(runs)):
        full.setdefault((parameter.label, parameter.constant), parameter.mean)
    return full


def fit_without(runs: Sequence[Run], left_out: Sequence[Run]) -> dict[tuple[str, str], float]:
    """Values fitted to all runs but these, completed by priors for them."""
    names = {id(run) for run in left_out}
    rest = [run for run in runs if id(run) not in names]
    table = fit.tabulate(rest)
    return complete(fit.fit(table, parameters_for(fit.labels(rest))), left_out)


def _stack_cells(about: Software, values: fit.Values, band: tuple[float, float]) -> dict[str, object]:
    """One row of stacks.csv: start values times the fitted factors of the stack's labels."""
    start = fit.start_row(about)
    cells: dict[str, object] = {field.name: "" for field in fields(Stack)}
    numbers = {name: float(start[name][0]) for name in start.dtype.names or ()}
    mine = {"global", f"family:{about.family}", f"stack:{about.name}"} | {f"flag:{flag}" for flag in about.flags}
    for flag in about.flags:
        if flag in FLAG_PARAMETERS:
            values = {(f"flag:{flag}", FLAG_PARAMETERS[flag][0]): FLAG_PARAMETERS[flag][1], **values}
    for (label, constant), log in values.items():
        if label in mine and constant in COLUMNS:
            for column, power in COLUMNS[constant]:
                numbers[column] *= float(np.exp(power * log))
    cells.update({name: f"{value:.5g}" for name, value in numbers.items()})
    cells.update(name=about.name, aliases="|".join(about.aliases), family=about.family, source=SOURCE, licence="MIT")
    for name in ("is_flash", "skips_masked", "launch_blocks"):
        cells[name] = int(getattr(about, name))
    cells["band_low"], cells["band_high"] = f"{band[0]:.3g}", f"{band[1]:.3g}"
    return cells


def _band(log_ratios: NDArray[np.float64]) -> tuple[float, float]:
    """10th and 90th percentile of measured over predicted time."""
    low, high = np.exp(np.quantile(log_ratios, [0.1, 0.9]))
    return float(low), float(high)


def _write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def fit_stacks(path: Path, folder: Path = CATALOG, leave_out: bool = True) -> dict[str, object]:
    """Fit to `path` and write the generated tables to `folder`. Returns the number of runs, parameters and the
    error."""
    runs = fitted_runs(path)
    table = fit.tabulate(runs)
    parameters = parameters_for(fit.labels(runs))
    values = fit.fit(table, parameters, n_steps=25)
    log_ratio = table.log_measured - np.log(fit.predicted_s(table, values))
    left: list[dict[str, object]] = []
    outside = log_ratio.copy()
    if leave_out:
        for name, group in groups_of(runs).items():
            without = fit_without(runs, group)
            mine = fit.labels(group)
            left += [
                {"left_out": name, "label": label, "constant": constant, "log": f"{log:.5g}"}
                for (label, constant), log in sorted(without.items())
                if label in mine and abs(log) > _SMALLEST_LOG
            ]
            if not name.startswith("model:"):
                rows = np.array([i for i, run in enumerate(runs) if run.source_id == name])
                part = fit.tabulate(group)
                outside[rows] = part.log_measured - np.log(fit.predicted_s(part, without))
        _write(folder / "stacks_loso.csv", left)
    cells = []
    for about in all_software().values():
        rows = np.array([i for i, run in enumerate(runs) if run.stack == about.name], np.intp)
        cells.append(_stack_cells(about, values, _band(log_ratio[rows] if len(rows) >= 5 else outside)))
    _write(folder / "stacks.csv", cells)
    _write(folder / "efficiencies.csv", _efficiency_rows(table, values))
    error = np.abs(np.expm1(-log_ratio))
    return {
        "n_runs": len(runs),
        "n_parameters": len(parameters),
        "in_sample_mape": float(error.mean()),
        "in_sample_median_ape": float(np.median(error)),
    }


def _efficiency_rows(table: fit.Table, values: fit.Values) -> list[dict[str, object]]:
    return [
        {
            "name": label,
            "aliases": "",
            "factor": f"{np.exp(log):.5g}",
            "n_rows": len(table.groups.get(label, ())),
            "source": SOURCE,
            "licence": "MIT",
        }
        for (label, _), log in sorted(values.items())
        if label.startswith(_HARDWARE)
    ]


@cache
def left_out_values() -> dict[str, dict[tuple[str, str], float]]:
    """Shipped leave-one-out values by what was left out."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    path = CATALOG / "stacks_loso.csv"
    if not path.exists():
        return found
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["left_out"], {})[row["label"], row["constant"]] = float(row["log"])
    return found


def forget_tables() -> None:
    """Drop cached catalog tables after `fit_stacks` has rewritten them."""
    for cached in (tables.stacks, tables._stack_index, tables.efficiencies, left_out_values):
        cached.cache_clear()

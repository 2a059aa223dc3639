"""Fitting the constants to measured runs: Gauss-Newton on robust log ratios with normal priors (a maximum a
posteriori).

Loss of a run: 2(sqrt(1+r^2)-1) with r = log(predicted/measured)/0.06; a run of a source with n configurations weighs
1/sqrt(1+n/3), so that large sources do not drown the small ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hetenv import catalog
from hetenv.catalog.software import Software, all_software, software
from hetenv.catalog.tables import precision_class
from hetenv.perf.constants import COLUMNS, FLAG_PARAMETERS, Parameter
from hetenv.perf.plan import plan_row
from hetenv.perf.rows import DEVICE_ROW, ESTIMATE_ROW, MODEL_ROW, PLAN_ROW, SETTING_ROW, STACK_ROW, Precision
from hetenv.perf.runs import Run
from hetenv.perf.step import price_runs
from hetenv.perf.training import device_row, model_row, precision_of, stack_row

NOISE = 0.06
"""Scale of the log ratio below which a deviation counts as noise; repeats of one configuration differ by a median 5.6
%."""
SOURCE_SCALE = 3.0
DP_HIDDEN = 0.5
"""Share of one micro-batch's backward that hides the gradient exchange of stacks that overlap it, bucket by bucket."""
PRIOR_SCALE = 1.0
"""Priors are normal near their mean and exponential beyond this many sigmas: one odd stack does not move its family."""
_STEP = 1e-4

Values = Mapping[tuple[str, str], float]
"""Fitted logs by (label, constant)."""


def about_stack(name: str) -> Software:
    """The description of a stack; a stack known by its fitted row only counts as one of its family."""
    return all_software()[name] if name in all_software() else software(catalog.stack(name).family)


def labels_of(run: Run) -> frozenset[str]:
    """The labels whose parameters apply to a run."""
    about = about_stack(run.stack)
    accelerator = run.devices.accelerator_entry
    precision = precision_of(run.training.precision)
    kind = f"{accelerator.architecture}/{precision_class(precision.name)}"
    if run.kind == "cnn":
        return frozenset({"global", f"stack:{run.stack}", f"conv:{kind}"})
    flags = {f"flag:{flag}" for flag in about.flags if flag in FLAG_PARAMETERS}
    return frozenset(
        flags
        | {
            "global",
            f"precision:{kind}",
            f"accelerator:{accelerator.name}",
            f"memory:{accelerator.architecture}",
            f"family:{about.family}",
            f"stack:{run.stack}",
        }
    )


@dataclass(frozen=True)
class Table:
    """Runs as arrays. groups: member rows of each label; narrow: rows whose layers run below 16 bit."""

    runs: tuple[Run, ...]
    models: NDArray[np.void]
    devices: NDArray[np.void]
    stacks: NDArray[np.void]
    shapes: NDArray[np.float64]
    plans: NDArray[np.void]
    log_measured: NDArray[np.float64]
    weights: NDArray[np.float64]
    groups: dict[str, NDArray[np.intp]]
    wide_groups: dict[str, NDArray[np.intp]]

    def take(self, rows: NDArray[np.intp]) -> "Table":
        """The table of some rows, constants as they are here."""
        part = tabulate([self.runs[i] for i in rows])
        return replace(part, stacks=self.stacks[rows], devices=self.devices[rows])

    def baked(self, values: "Values") -> "Table":
        """The table whose own constants are these values, so that no values on top mean the same predictions."""
        stacks, devices = applied(self, values)
        return replace(self, stacks=stacks, devices=devices)


def start_row(about: Software) -> NDArray[np.void]:
    """STACK_ROW of the start values with a stack's kernels."""
    row = stack_row(catalog.tables.start_stack()).copy()
    row["is_flash"] = about.is_flash
    row["skips_masked"] = about.skips_masked
    row["launch_blocks"] = about.launch_blocks
    row["dp_hidden"] = DP_HIDDEN if "dp_overlap" in about.flags else 0.0
    if "op_recompute" not in about.flags:
        row["selective_recompute"] = 0.0
    return row


def shipped(runs: Sequence[Run]) -> Table:
    """The table under the catalog's stacks and efficiencies as they stand."""
    table = tabulate(runs)
    for i, run in enumerate(runs):
        table.stacks[i] = stack_row(catalog.stack(run.stack))[0]
        table.devices[i] = device_row(run.devices, precision_of(run.training.precision))[0]
    return table


def tabulate(runs: Sequence[Run]) -> Table:
    """Arrays of runs that the model takes, repeats already averaged, under the values that fits start from."""
    n = len(runs)
    models, devices = np.zeros(n, MODEL_ROW), np.zeros(n, DEVICE_ROW)
    stacks, plans = np.zeros(n, STACK_ROW), np.zeros(n, PLAN_ROW)
    shapes = np.zeros((n, 2))
    members: dict[str, list[int]] = {}
    wide: dict[str, list[int]] = {}
    sizes: dict[str, int] = {}
    for i, run in enumerate(runs):
        precision = precision_of(run.training.precision)
        models[i] = model_row(run.training.model_entry)[0]
        devices[i] = device_row(run.devices, precision)[0]
        share = run.devices.accelerator_entry.achievable_share
        devices[i]["efficiency"] = devices[i]["efficiency16"] = share
        devices[i]["convolution"] = 1.0
        stacks[i] = start_row(about_stack(run.stack))[0]
        shapes[i] = run.training.tokens_per_sample, run.training.global_batch
        plans[i] = plan_row(run.plan)[0]
        for label in labels_of(run):
            members.setdefault(label, []).append(i)
        architecture = run.devices.accelerator_entry.architecture
        if precision >= Precision.FP8:
            wide.setdefault(f"precision:{architecture}/16bit", []).append(i)
        sizes[run.source_id] = sizes.get(run.source_id, 0) + 1
    weights = np.array([(1.0 + sizes[run.source_id] / SOURCE_SCALE) ** -0.25 for run in runs])
    measured = np.log([run.measured_s for run in runs]) if n else np.zeros(0)
    return Table(
        tuple(runs),
        models,
        devices,
        stacks,
        shapes,
        plans,
        np.asarray(measured, np.float64),
        weights,
        {label: np.array(rows) for label, rows in members.items()},
        {label: np.array(rows) for label, rows in wide.items()},
    )


def _scale(table: Table, stacks: NDArray[np.void], devices: NDArray[np.void], key: tuple[str, str], log: float) -> None:
    """Multiply the columns that one parameter reaches, in place."""
    label, constant = key
    rows = table.groups.get(label)
    if constant == "conv":
        if rows is not None:
            devices["convolution"][rows] *= np.exp(log)
        return
    if constant == "hbm":
        if rows is not None:
            devices["memory_bytes_per_s"][rows] *= np.exp(log)
        return
    if constant == "peak":
        factor = np.exp(log)
        if rows is not None:
            devices["efficiency"][rows] *= factor
            narrow = devices["is_narrow"][rows] > 0
            both = rows if label.startswith("accelerator") else rows[~narrow]
            devices["efficiency16"][both] *= factor
        also = table.wide_groups.get(label)
        if also is not None:
            devices["efficiency16"][also] *= factor
        return
    if rows is not None:
        for column, power in COLUMNS[constant]:
            stacks[column][rows] *= np.exp(power * log)


def reach(table: Table, label: str) -> NDArray[np.intp]:
    """Rows that a label's parameters change."""
    parts = [part for part in (table.groups.get(label), table.wide_groups.get(label)) if part is not None]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.intp)


def applied(table: Table, values: Values) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """(STACK_ROWs, DEVICE_ROWs) of all runs under the fitted values."""
    stacks, devices = table.stacks.copy(), table.devices.copy()
    for key, log in values.items():
        _scale(table, stacks, devices, key, log)
    return stacks, devices


def _price(
    table: Table, stacks: NDArray[np.void], devices: NDArray[np.void], rows: NDArray[np.intp]
) -> NDArray[np.void]:
    settings, out = np.zeros(len(rows), SETTING_ROW), np.zeros(len(rows), ESTIMATE_ROW)
    price_runs(table.models[rows], devices[rows], stacks[rows], table.shapes[rows], table.plans[rows], settings, out)
    return out


def priced(table: Table, values: Values) -> NDArray[np.void]:
    """[N] ESTIMATE_ROW of all runs under the fitted values."""
    stacks, devices = applied(table, values)
    return _price(table, stacks, devices, np.arange(len(table.runs)))


def predicted_s(table: Table, values: Values) -> NDArray[np.float64]:
    """[N] seconds per step under the fitted values."""
    return np.asarray(priced(table, values)["iter_s"])


def _jacobian(
    table: Table, values: Values, parameters: Sequence[Parameter], logs: NDArray[np.float64]
) -> NDArray[np.float64]:
    """[N, P] derivative of log seconds by each parameter, by forward differences over the rows it reaches."""
    stacks, devices = applied(table, values)
    jacobian = np.zeros((len(table.runs), len(parameters)))
    for j, parameter in enumerate(parameters):
        rows = reach(table, parameter.label)
        if not len(rows):
            continue
        moved_stacks, moved_devices = stacks.copy(), devices.copy()
        _scale(table, moved_stacks, moved_devices, (parameter.label, parameter.constant), _STEP)
        moved = np.log(_price(table, moved_stacks, moved_devices, rows)["iter_s"])
        jacobian[rows, j] = (moved - logs[rows]) / _STEP
    return jacobian


def cost(table: Table, values: Values, parameters: Sequence[Parameter]) -> float:
    """Penalised robust loss."""
    ratio = (np.log(predicted_s(table, values)) - table.log_measured) / NOISE
    loss = np.sum(table.weights**2 * 2.0 * (np.sqrt(1.0 + ratio**2) - 1.0))
    z = np.array([(values[p.label, p.constant] - p.mean) / p.sigma for p in parameters])
    return float(loss + np.sum(2.0 * PRIOR_SCALE**2 * (np.sqrt(1.0 + (z / PRIOR_SCALE) ** 2) - 1.0)))


def fit(
    table: Table, parameters: Sequence[Parameter], base: Values | None = None, n_steps: int = 12
) -> dict[tuple[str, str], float]:
    """Values of `parameters` on top of `base` that minimise the penalised loss."""
    values = dict(base or {})
    for p in parameters:
        values.setdefault((p.label, p.constant), p.mean)
    keys = [(p.label, p.constant) for p in parameters]
    means = np.array([p.mean for p in parameters])
    precisions = np.array([1.0 / p.sigma**2 for p in parameters])
    best, damping = cost(table, values, parameters), 1e-3
    for _ in range(n_steps):
        logs = np.log(predicted_s(table, values))
        ratio = (logs - table.log_measured) / NOISE
        weight = table.weights**2 / np.sqrt(1.0 + ratio**2)
        jacobian = _jacobian(table, values, parameters, logs) / NOISE
        now = np.array([values[key] for key in keys])
        pull = precisions / np.sqrt(1.0 + (now - means) ** 2 * precisions / PRIOR_SCALE**2)
        gradient = jacobian.T @ (weight * ratio) + pull * (now - means)
        normal = (jacobian * weight[:, None]).T @ jacobian + np.diag(pull)
        improved = False
        for _ in range(6):
            move = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -gradient)
            move *= min(1.0, 1.0 / max(1e-9, float(np.abs(move).max())))
            trial = values | dict(zip(keys, (now + move).tolist()))
            trial_cost = cost(table, trial, parameters)
            if trial_cost < best:
                improved, gain, values, best = True, best - trial_cost, trial, trial_cost
                damping *= 0.3
                break
            damping *= 5.0
        if not improved or gain < 1e-3 * max(1.0, best) * 0.1:
            break
    return values


def labels(runs: Iterable[Run]) -> set[str]:
    """All labels of some runs."""
    return {label for run in runs for label in labels_of(run)}


def averaged(runs: Iterable[Run]) -> list[Run]:
    """One run per configuration: repeats take their mean time, the first row's name."""
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        if not run.refused:
            groups.setdefault(run.key, []).append(run)
    return [
        group[0] if len(group) == 1 else replace(group[0], measured_s=float(np.mean([run.measured_s for run in group])))
        for group in groups.values()
    ]

"""Knobs that a published run leaves open: the lightest recompute mode that fits, the fastest legal micro-batch and
stages.

Full recomputation is never assumed: stacks that leave it unsaid recompute single modules when memory is short.
"""

from dataclasses import replace
from itertools import product

import numpy as np

from hetenv.perf.plan import Plan, plan_row
from hetenv.perf.rows import ESTIMATE_ROW, SETTING_ROW, Recompute, Schedule
from hetenv.perf.runs import Run
from hetenv.perf.setting import prepare
from hetenv.perf.step import price_row
from hetenv.perf.training import device_row, model_row, precision_of, stack_row


def _choices(run: Run) -> list[Plan]:
    """All plans that the row's blanks allow, stated knobs unchanged, lightest recompute first."""
    plan, batch = run.plan, run.training.global_batch
    micros = [plan.micro_batch]
    if "micro_batch" in run.open_knobs:
        micros = [b for b in (1, 2, 4, 8, 16, 32) if batch % (plan.dp * b) == 0] or [1]
    virtuals = [plan.virtual_stages]
    if "virtual_stages" in run.open_knobs:
        most = max(1, run.training.model_entry.layers // plan.pp)
        virtuals = [v for v in (1, 2, 3, 4, 6, 8) if v <= most and run.training.model_entry.layers % (plan.pp * v) == 0]
    modes = [Recompute.NONE, Recompute.SELECTIVE] if "recompute" in run.open_knobs else [plan.recompute]
    found = []
    for mode, micro, virtual in product(modes, micros, virtuals or [1]):
        if virtual > 1 and (batch // (plan.dp * micro)) % plan.pp:
            continue
        schedule = Schedule.INTERLEAVED if virtual > 1 else Schedule.ONE_F_ONE_B
        changed = replace(plan, recompute=mode, micro_batch=micro, virtual_stages=virtual, schedule=schedule)
        found.append(changed)
    return found


def settled(run: Run) -> Run:
    """The run with its open knobs chosen; a run without any is returned as it is."""
    if not run.open_knobs or run.refused:
        return run
    setting, out = np.zeros(1, SETTING_ROW), np.zeros(1, ESTIMATE_ROW)
    device = device_row(run.devices, precision_of(run.training.precision))
    model, stack = model_row(run.training.model_entry), stack_row(run.training.stack_entry)
    prepare(model[0], device[0], stack[0], run.training.tokens_per_sample, run.training.global_batch, setting[0])
    best: tuple[tuple[float, ...], Plan] | None = None
    for plan in _choices(run):
        price_row(setting[0], plan_row(plan)[0], out[0])
        fits = out["memory_bytes"][0] <= setting["memory_bytes"][0]
        rank = (
            (0.0, float(plan.recompute), float(out["iter_s"][0])) if fits else (1.0, float(out["memory_bytes"][0]), 0.0)
        )
        if best is None or rank < best[0]:
            best = (rank, plan)
    return run if best is None else replace(run, plan=best[1])

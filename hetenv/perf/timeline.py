"""A per-device timeline of one training step in Chrome's trace format (chrome://tracing, Perfetto)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import PlanError
from hetenv.perf.estimate import Estimate, estimate
from hetenv.perf.plan import MixedPlan, Plan, plan_row, split_layers
from hetenv.perf.rows import Schedule
from hetenv.perf.schedule import blocks
from hetenv.perf.step import layer_s
from hetenv.perf.training import Devices, Training, setting_row

MICROSECONDS = 1e6


def stage_times(training: Training, devices: Devices, plan: Plan) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """([p] forward, [p] backward) seconds of one micro-batch on each stage, head included."""
    setting = setting_row(training, devices)[0]
    tokens = plan.micro_batch * training.tokens_per_sample / plan.cp
    layer, backward = layer_s(setting, plan_row(plan)[0], tokens)
    sizes = np.array(split_layers(training.model_entry.layers, plan.pp), float)[::-1]
    forward_s, backward_s = sizes * (layer - backward), sizes * backward
    head = tokens * float(setting["head_token_s"]) / plan.tp
    forward_s[-1] += head / 3.0
    backward_s[-1] += head * 2.0 / 3.0
    return forward_s, backward_s


def timeline(training: Training, devices: Devices, plan: Plan) -> dict[str, object]:
    """Trace events of one replica's stages: forward and backward blocks, then the exposed gradient exchange."""
    return timeline_of(training, (devices,), estimate(training, devices, plan))


def timeline_of(training: Training, pools: Sequence[Devices], result: Estimate) -> dict[str, object]:
    """The same for any plan: a pipeline over two kinds is one process of the trace, replicas on two kinds are two."""
    plan = result.plan
    if result.iter_s == inf:
        raise PlanError(f"{plan}: {result.reason}")
    if training.model_entry.kind == "convolution":
        raise PlanError("a convolution network has no stages to draw")
    if isinstance(plan, Plan):
        names = [pools[0].accelerator_entry.name]
        parts = [_blocks(*stage_times(training, pools[0], plan), _n_micro(training, plan))]
    elif plan.mode == "data":
        names = [pool.accelerator_entry.name for pool in pools]
        shares = [replace(training, global_batch=batch) for batch in plan.batches]
        parts = [
            _blocks(*stage_times(share, pool, part), _n_micro(share, part))
            for share, pool, part in zip(shares, pools, plan.plans)
        ]
    else:
        names = [" then ".join(pools[i].accelerator_entry.name for i in (plan.first, 1 - plan.first))]
        parts = [_blocks(*_mixed_stage_times(training, pools, plan), _n_micro(training, plan.whole))]
    longest = max(total for total, _, _ in parts)
    events: list[dict[str, object]] = []
    for pid, (name, (_, begin, end)) in enumerate(zip(names, parts)):
        if len(parts) > 1:
            events.append({"name": "process_name", "cat": "name", "ph": "M", "pid": pid, "args": {"name": name}})
        events += _events(pid, begin, end, longest, result.exposed_s)
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"plan": str(plan), "iter_s": result.iter_s}}


def _n_micro(training: Training, plan: Plan) -> int:
    return training.global_batch // (plan.dp * plan.micro_batch)


def _blocks(
    forward_s: NDArray[np.float64], backward_s: NDArray[np.float64], n_micro: int
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    return blocks(forward_s, backward_s, np.zeros(len(forward_s)), n_micro, Schedule.ONE_F_ONE_B)


def _mixed_stage_times(
    training: Training, pools: Sequence[Devices], plan: MixedPlan
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """([p] forward, [p] backward) seconds of one micro-batch on each stage of a pipeline over two kinds."""
    forward: list[float] = []
    backward: list[float] = []
    for pool in (plan.first, 1 - plan.first):
        setting, part = setting_row(training, pools[pool])[0], plan.plans[pool]
        tokens = part.micro_batch * training.tokens_per_sample
        layer, back = layer_s(setting, plan_row(part)[0], tokens)
        sizes = split_layers(plan.layers[pool], part.pp)
        forward += [n * (layer - back) for n in sizes]
        backward += [n * back for n in sizes]
    head = tokens * float(setting["head_token_s"]) / part.tp
    forward[-1] += head / 3.0
    backward[-1] += head * 2.0 / 3.0
    return np.array(forward), np.array(backward)


def _events(
    pid: int, begin: NDArray[np.float64], end: NDArray[np.float64], last_s: float, exposed_s: float
) -> list[dict[str, object]]:
    """Blocks of one process, a thread per stage; exposed communication begins at `last_s`."""
    found = []
    for stage in range(len(begin)):
        spans = [
            (f"{name} {k}", name, begin[stage, way, k], end[stage, way, k])
            for way, name in enumerate(("forward", "backward"))
            for k in range(begin.shape[2])
        ]
        if exposed_s > 0:
            spans.append(("exposed communication", "communication", last_s, last_s + exposed_s))
        found += [
            {
                "name": name,
                "cat": category,
                "ph": "X",
                "pid": pid,
                "tid": stage,
                "ts": float(start) * MICROSECONDS,
                "dur": float(stop - start) * MICROSECONDS,
            }
            for name, category, start, stop in spans
        ]
    return found


def write_timeline(path: Path, training: Training, pools: Sequence[Devices], result: Estimate) -> None:
    """`timeline_of` as a JSON file."""
    path.write_text(json.dumps(timeline_of(training, pools, result)), encoding="utf-8")

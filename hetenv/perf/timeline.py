"""A per-device timeline of one training step in Chrome's trace format (chrome://tracing, Perfetto)."""

import json
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import PlanError
from hetenv.perf.estimate import estimate
from hetenv.perf.plan import Plan, plan_row, split_layers
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
    result = estimate(training, devices, plan)
    if result.iter_s == inf:
        raise PlanError(f"{plan}: {result.reason}")
    if training.model_entry.kind == "convolution":
        raise PlanError("a convolution network has no stages to draw")
    forward_s, backward_s = stage_times(training, devices, plan)
    n_micro = training.global_batch // (plan.dp * plan.micro_batch)
    total, begin, end = blocks(forward_s, backward_s, np.zeros(plan.pp), n_micro, Schedule.ONE_F_ONE_B)
    events: list[dict[str, object]] = []
    for stage in range(plan.pp):
        for way, name in enumerate(("forward", "backward")):
            for k in range(n_micro):
                events.append(
                    {
                        "name": f"{name} {k}",
                        "cat": name,
                        "ph": "X",
                        "pid": 0,
                        "tid": stage,
                        "ts": begin[stage, way, k] * MICROSECONDS,
                        "dur": (end[stage, way, k] - begin[stage, way, k]) * MICROSECONDS,
                    }
                )
        if result.exposed_s > 0:
            events.append(
                {
                    "name": "exposed communication",
                    "cat": "communication",
                    "ph": "X",
                    "pid": 0,
                    "tid": stage,
                    "ts": total * MICROSECONDS,
                    "dur": result.exposed_s * MICROSECONDS,
                }
            )
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"plan": str(plan), "iter_s": result.iter_s}}


def write_timeline(path: Path, training: Training, devices: Devices, plan: Plan) -> None:
    """`timeline` as a JSON file."""
    path.write_text(json.dumps(timeline(training, devices, plan)), encoding="utf-8")

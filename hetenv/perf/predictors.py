"""Interchangeable predictors of a step's seconds behind one protocol: the operators, a table of layer times, a user's function."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

import numpy as np

from hetenv.errors import PlanError
from hetenv.perf.estimate import estimate
from hetenv.perf.layer_table import LayerTable
from hetenv.perf.plan import Plan, split_layers
from hetenv.perf.schedule import makespan_s
from hetenv.perf.training import Devices, Training


class Predictor(Protocol):
    """Seconds of one step; inf where the plan cannot run."""

    def step_s(self, training: Training, devices: Devices, plan: Plan) -> float: ...


@dataclass(frozen=True)
class Operators:
    """The closed form of this package."""

    def step_s(self, training: Training, devices: Devices, plan: Plan) -> float:
        """Seconds of one step by `estimate`."""
        result = estimate(training, devices, plan)
        return result.iter_s if result.is_legal else inf


@dataclass(frozen=True)
class Profiles:
    """Measured layer times; communication outside the tensor group comes from the closed form."""

    table: LayerTable

    def step_s(self, training: Training, devices: Devices, plan: Plan) -> float:
        """Pipeline of profiled stages plus the closed form's exposed communication; inf where the table has no entry."""
        model, name = training.model_entry, devices.accelerator_entry.name
        forward, backward = np.zeros(plan.pp), np.zeros(plan.pp)
        try:
            for stage, size in enumerate(split_layers(model.layers, plan.pp)):
                ends = stage == 0, stage == plan.pp - 1
                times = self.table.stage_s(model.name, name, plan.micro_batch, plan.tp, size, *ends)
                forward[stage], backward[stage] = times.forward_s, times.backward_s
        except PlanError:
            return inf
        n_micro = training.global_batch // (plan.dp * plan.micro_batch)
        comm = estimate(training, devices, plan)
        exchange = max(0.0, comm.comm_s[1] - comm.hideable_s[1])
        return makespan_s(forward, backward, np.zeros(plan.pp), n_micro) + exchange


@dataclass(frozen=True)
class UserFunction:
    """Any callable of (training, devices, plan)."""

    function: Callable[[Training, Devices, Plan], float]

    def step_s(self, training: Training, devices: Devices, plan: Plan) -> float:
        """What the function says."""
        return self.function(training, devices, plan)


def rank_accelerators(
    predictor: Predictor, training: Training, devices: Sequence[Devices], plan: Plan
) -> list[tuple[str, float]]:
    """(accelerator, step seconds) of one plan on several kinds of devices, fastest first."""
    times = [(one.accelerator_entry.name, predictor.step_s(training, one, plan)) for one in devices]
    return sorted(times, key=lambda pair: pair[1])

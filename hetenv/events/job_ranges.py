"""Elastic jobs whose owners allow them fewer GPUs for a while."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hetenv.events.cause import Cause
from hetenv.events.spells import off_spells
from hetenv.events.stream import Effect, EventContext, rows
from hetenv.units import HOUR_S
from hetenv.workload.requests import Elasticity


class JobRanges(Cause):
    """Now and then a job that is not rigid may hold only a share of its most GPUs, never less than its least.

    Budgets, quotas and deadlines of others move what a job may take (AntMan, OSDI 2020; Pollux, OSDI 2021, changes
    allocations every minute). Exponential times between and within spells, per job, whether it runs or not.
    Effect: JOB_RANGE at both ends of a spell, value = most GPUs.
    """

    kind: Literal["job_ranges"] = "job_ranges"
    jobs_share: float = Field(default=1.0, gt=0.0, le=1.0, description="of the jobs that are not rigid")
    apart_mean_h: float = Field(gt=0.0, allow_inf_nan=False)
    lasting_mean_h: float = Field(gt=0.0, allow_inf_nan=False)
    gpus_share: float = Field(default=0.5, ge=0.0, le=1.0, description="of max_gpus, rounded down")

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """Rows of begins, then of ends within the horizon."""
        requests, horizon_s = context.requests, context.horizon_s
        chosen = rng.random(requests.size) < self.jobs_share
        bound = np.maximum(np.floor(requests["max_gpus"] * self.gpus_share), requests["min_gpus"])
        moves = chosen & (requests["elasticity"] != Elasticity.RIGID) & (bound < requests["max_gpus"])
        job, from_s, to_s = off_spells(
            rng, requests.size, self.apart_mean_h * HOUR_S, self.lasting_mean_h * HOUR_S, horizon_s
        )
        kept = moves[job]
        job, from_s, to_s = job[kept], from_s[kept], to_s[kept]
        ends = to_s < horizon_s
        return np.concatenate(
            [
                rows(Effect.JOB_RANGE, from_s, job, bound[job]),
                rows(Effect.JOB_RANGE, to_s[ends], job[ends], requests["max_gpus"][job[ends]]),
            ]
        )

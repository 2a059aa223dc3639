"""Listed workloads: the jobs stand in the scenario itself, one by one; every episode has the same."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from hetenv.errors import ScenarioError, unknown
from hetenv.workload.context import WorkloadContext
from hetenv.workload.requests import NEVER, by_submit
from hetenv.workload.requests import requests as new_requests
from hetenv.workload.synthetic import pool_mask


class ListedJob(BaseModel):
    """A rigid job. `duration_s` and `estimate_s` are meant on its class's fastest configuration of that size."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    submit_s: float = Field(allow_inf_nan=False, description="negative: present before the start")
    job_class: str
    gpus: int = Field(gt=0)
    duration_s: float = Field(ge=0.0, allow_inf_nan=False)
    estimate_s: float | None = Field(
        default=None, gt=0.0, allow_inf_nan=False, description="what its user declared; default: as `knowledge` says"
    )
    weight: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)


class ListedWorkload(BaseModel):
    """The given jobs, numbered by submit time, ties in the given order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["listed"] = "listed"
    jobs: Annotated[tuple[ListedJob, ...], Field(min_length=1)]

    def draw(self, rng: np.random.Generator, context: WorkloadContext) -> NDArray[np.void]:
        """REQUEST rows in job-id order; those submitted from the horizon on are left out, those that fit nowhere rejected.

        Raises:
            ScenarioError: an unknown class.
        """
        classes = list(context.classes)
        masks = {name: pool_mask(found.pools, f"classes.{name}", context) for name, found in context.classes.items()}
        rows = new_requests(len(self.jobs))
        for index, (row, job) in enumerate(zip(rows, self.jobs)):
            if job.job_class not in masks:
                raise ScenarioError(f"workload.jobs[{index}].job_class: {unknown('job class', job.job_class, classes)}")
            job_class = classes.index(job.job_class)
            rate = context.reference_rate(job_class, job.gpus, job.gpus, masks[job.job_class])
            row["rejected"], rate = rate <= 0.0, rate if rate > 0.0 else 1.0
            row["submit_s"], row["weight"], row["job_class"], row["pools"] = (
                job.submit_s, job.weight, job_class, masks[job.job_class],
            )  # fmt: skip
            row["min_gpus"] = row["max_gpus"] = job.gpus
            row["work"], row["believed_work"] = job.duration_s * rate, (job.estimate_s or 0.0) * rate
            row["checkpoint_interval"] = context.classes[job.job_class].checkpoint_interval or NEVER
        return by_submit(rows[rows["submit_s"] < context.horizon_s])

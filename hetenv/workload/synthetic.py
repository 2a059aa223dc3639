"""Synthetic workloads: an arrival process and a mix of job kinds."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from hetenv.errors import ScenarioError, unknown
from hetenv.workload import choices
from hetenv.workload.arrivals import Arrivals
from hetenv.workload.choices import CountChoice, Counts, Weights
from hetenv.workload.context import WorkloadContext
from hetenv.workload.durations import Duration
from hetenv.workload.requests import NEVER, Elasticity, by_submit
from hetenv.workload.requests import requests as new_requests


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RigidGpus(_Config):
    """The user asks for a number of GPUs and gets exactly that."""

    kind: Literal["rigid"] = "rigid"
    counts: Counts

    @property
    def reference(self) -> CountChoice:
        """The count at which `duration` is meant."""
        return self.counts


class RangeGpus(_Config):
    """Any listed count from `min` to `max`: chosen at each start (moldable) or at any time (malleable).

    `reference_gpus` (a count or count -> share, default `min`) is the size at which the job would run for `duration`.
    """

    kind: Literal["moldable", "malleable"]
    min: int = Field(gt=0)
    max: int = Field(gt=0)
    reference_gpus: CountChoice | None = None

    @property
    def reference(self) -> CountChoice:
        """The count at which `duration` is meant."""
        return self.min if self.reference_gpus is None else self.reference_gpus

    @model_validator(mode="after")
    def _ordered(self) -> "RangeGpus":
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}; swap them")
        outside = [count for count in choices.values_of(self.reference) if not self.min <= count <= self.max]
        if outside:
            raise ValueError(f"reference_gpus {outside[0]} is outside {self.min}..{self.max}")
        return self


Gpus = Annotated[RigidGpus | RangeGpus, Field(discriminator="kind")]


class JobMix(_Config):
    """One kind of jobs. Work = duration x the speed of the class's fastest configuration at the reference size."""

    job_class: str
    share: float = Field(default=1.0, ge=0.0, allow_inf_nan=False, description="of all jobs; scaled to sum to 1")
    duration: Duration
    gpus: Gpus = RigidGpus(counts={1: 1.0})
    weights: Weights = {1.0: 1.0}
    deadline_slack: float | None = Field(
        default=None, gt=0.0, allow_inf_nan=False, description="deadline = submit + slack x duration; default: none"
    )
    pools: tuple[str, ...] | None = Field(default=None, min_length=1, description="allowed pools; default: the class's")
    cpus_per_gpu: int = Field(default=0, ge=0)
    host_memory_gbytes_per_gpu: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    preemptible: bool = True


class SyntheticWorkload(_Config):
    """Jobs by an arrival process, each of a kind drawn from the mix."""

    kind: Literal["synthetic"] = "synthetic"
    arrivals: Arrivals
    jobs: tuple[JobMix, ...] = Field(min_length=1)
    initial_jobs: int = Field(default=0, ge=0, description="submitted at time 0, besides the arrivals")
    max_jobs: int | None = Field(default=None, gt=0, description="later jobs are left out; default: no limit")

    @model_validator(mode="after")
    def _some_share(self) -> "SyntheticWorkload":
        if not sum(mix.share for mix in self.jobs) > 0.0:
            raise ValueError("jobs: the shares sum to 0; give at least one a positive share")
        return self

    def draw(self, rng: np.random.Generator, context: WorkloadContext) -> NDArray[np.void]:
        """REQUEST rows in job-id order; `believed_work` is left 0.

        Raises:
            ScenarioError: an unknown class or pool, or a reference size at which the class has no configuration.
        """
        times = np.concatenate([np.zeros(self.initial_jobs), self.arrivals.draw(rng, context.horizon_s)])[
            : self.max_jobs
        ]
        kinds = choices.pick(rng, np.array([mix.share for mix in self.jobs]), times.size)
        rows = self._templates(context)[kinds]
        rows["submit_s"] = times
        for index, mix in enumerate(self.jobs):
            _fill(rows, np.flatnonzero(kinds == index), mix, f"workload.jobs[{index}]", rng, context)
        return by_submit(rows)

    def _templates(self, context: WorkloadContext) -> NDArray[np.void]:
        """[kinds] rows with all that does not vary within a kind."""
        rows = new_requests(len(self.jobs))
        for index, (row, mix) in enumerate(zip(rows, self.jobs)):
            where = f"workload.jobs[{index}]"
            if mix.job_class not in context.classes:
                raise ScenarioError(f"{where}.job_class: {unknown('job class', mix.job_class, context.classes)}")
            job_class = context.classes[mix.job_class]
            row["job_class"] = list(context.classes).index(mix.job_class)
            row["pools"] = pool_mask(mix.pools or job_class.pools, where, context)
            row["checkpoint_interval"] = job_class.checkpoint_interval or NEVER
            row["cpus_per_gpu"] = mix.cpus_per_gpu
            row["host_mbytes_per_gpu"] = round(mix.host_memory_gbytes_per_gpu * 1000)
            row["preemptible"] = mix.preemptible
            if isinstance(mix.gpus, RangeGpus):
                row["min_gpus"], row["max_gpus"] = mix.gpus.min, mix.gpus.max
                row["elasticity"] = Elasticity[mix.gpus.kind.upper()]
        return rows


def _fill(
    rows: NDArray[np.void],
    chosen: NDArray[np.int64],
    mix: JobMix,
    where: str,
    rng: np.random.Generator,
    context: WorkloadContext,
) -> None:
    """Write what varies among the `chosen` jobs of one kind: work, size, weight, deadline."""
    duration_s = mix.duration.draw(rng, chosen.size)
    reference = choices.draw(rng, mix.gpus.reference, chosen.size)
    rates = np.zeros(chosen.size)
    for count in choices.values_of(mix.gpus.reference):
        rates[reference == count] = _rate(count, mix, where, context)
    rows["work"][chosen] = duration_s * rates
    if isinstance(mix.gpus, RigidGpus):
        rows["min_gpus"][chosen] = rows["max_gpus"][chosen] = reference
    rows["weight"][chosen] = choices.draw(rng, mix.weights, chosen.size)
    if mix.deadline_slack is not None:
        rows["deadline_s"][chosen] = rows["submit_s"][chosen] + mix.deadline_slack * duration_s


def _rate(count: int, mix: JobMix, where: str, context: WorkloadContext) -> float:
    """Work/s of the class at one reference size."""
    pools = pool_mask(mix.pools or context.classes[mix.job_class].pools, where, context)
    rate = context.reference_rate(list(context.classes).index(mix.job_class), count, count, pools)
    if rate <= 0.0:
        raise ScenarioError(
            f"{where}.gpus: class {mix.job_class!r} has no configuration on {count} GPUs of the allowed pools; "
            f"list {count} in its gpu_counts, allow another pool, or choose another reference size"
        )
    return rate


def pool_mask(names: tuple[str, ...] | None, where: str, context: WorkloadContext) -> int:
    """Bit mask of the named pools (all where None)."""
    known = context.cluster.pool_names
    if names is None:
        return (1 << len(known)) - 1
    for name in names:
        if name not in known:
            raise ScenarioError(f"{where}.pools: {unknown('pool', name, known)}")
    return sum(1 << known.index(name) for name in set(names))

"""Job classes: where a job's speed comes from. A class is shared by many requests."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Counts = tuple[Annotated[int, Field(gt=0)], ...]


class _JobClass(BaseModel):
    """What every kind of class has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpu_counts: Counts = Field(default=(1, 2, 4, 8, 16), min_length=1, description="sizes that may be tabulated")
    pools: tuple[str, ...] | None = Field(default=None, min_length=1, description="allowed pools; default: all")
    checkpoint_interval: float | None = Field(
        default=None, gt=0.0, description="work between durable checkpoints, in the class's unit; default: none"
    )
    checkpoint_pause_s: float = Field(default=0.0, ge=0.0, description="what a periodic checkpoint stops the job for")
    checkpoint_persist_s: float = Field(
        default=0.0, ge=0.0, description="what it takes after the pause until it is durable, the job stepping (asynchronous)"
    )
    degrades: bool = Field(
        default=False, description="goes on with fewer GPUs where a failure takes a data-parallel replica; not if rigid"
    )
    degrade_s: float = Field(default=30.0, ge=0.0, description="overhead of going on smaller")


class AnalyticClass(_JobClass):
    """Speed follows from the performance model: unit of work = one sample."""

    kind: Literal["analytic"] = "analytic"
    model: str = Field(description="name in the catalog")
    seq_len: int | None = Field(default=None, gt=0, description="default: the model's")
    global_batch: int = Field(gt=0, description="samples per step")
    precision: str = "bf16"
    stack: str = "default"
    restart_s: float = Field(default=60.0, ge=0.0, description="fixed part of a restart; save and load come on top")
    first_start_s: float = Field(default=30.0, ge=0.0, description="held before the first step of a job's first start")
    pool_pairs: tuple[tuple[str, str], ...] = Field(
        default=(), description="pairs of unlike pools of one site that a job may use together, half of its GPUs in each"
    )
    checkpoint_gbytes_per_s: float = Field(default=5.0, gt=0.0, description="storage bandwidth of saves and loads")


class TableClass(_JobClass):
    """Speed measured per pool and GPU count: unit of work = one step."""

    kind: Literal["table"] = "table"
    steps_per_s: dict[str, dict[int, float]] = Field(
        min_length=1, description="pool -> GPU count -> steps/s of the whole job"
    )
    power_w: float | None = Field(default=None, ge=0.0, description="of one GPU while running; default: 75 % of TDP")
    spread_penalty: float = Field(
        default=1.0, gt=0.0, le=1.0, description="factor on speed where the job is on more nodes than it needs"
    )
    restart_s: float = Field(default=0.0, ge=0.0)
    first_start_s: float = Field(default=0.0, ge=0.0)


class FixedClass(_JobClass):
    """A stated run time on any allowed pool: unit of work = one second."""

    kind: Literal["fixed"] = "fixed"
    power_w: float | None = Field(default=None, ge=0.0, description="of one GPU while running; default: 75 % of TDP")
    restart_s: float = Field(default=0.0, ge=0.0)
    first_start_s: float = Field(default=0.0, ge=0.0)


JobClass = Annotated[AnalyticClass | TableClass | FixedClass, Field(discriminator="kind")]

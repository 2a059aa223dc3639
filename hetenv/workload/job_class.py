"""Job classes: where a job's speed comes from. A class is shared by many requests."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

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
    checkpoint_mtbf_h: float | None = Field(
        default=None,
        gt=0.0,
        description="mean time between failures of a node: checkpoints come at Young and Daly's interval in place of "
        "checkpoint_interval; needs checkpoint_pause_s",
    )
    data_site: str | None = Field(default=None, description="site of the data set; default: everywhere")
    data_gbytes: float = Field(default=0.0, ge=0.0, allow_inf_nan=False, description="data set, moved to the site that runs the job")
    live_commit_s: float = Field(default=2.0, ge=0.0, description="fixed part of a live change")
    live_overlap: float = Field(
        default=0.0, ge=0.0, le=1.0, description="share of a live change's transfer that is prepared while the job steps"
    )
    degrade_s: float = Field(default=30.0, ge=0.0, description="overhead of going on smaller")

    @model_validator(mode="after")
    def _paid_interval(self) -> "_JobClass":
        if self.checkpoint_mtbf_h is not None and self.checkpoint_pause_s == 0.0:
            raise ValueError("checkpoint_mtbf_h: needs checkpoint_pause_s > 0; free checkpoints would come without end")
        return self


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
    change: Literal["restart", "live"] = Field(
        default="restart", description="how a running job changes: saved and restarted, or its state moved over the network"
    )
    checkpoint_gbytes_per_s: float = Field(default=5.0, gt=0.0, description="storage bandwidth of saves and loads")


class TableClass(_JobClass):
    """Speed measured per pool and GPU count: unit of work = one step."""

    kind: Literal["table"] = "table"
    state_gbytes: float = Field(default=0.0, ge=0.0, allow_inf_nan=False, description="what moves with the job to another site")
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
    state_gbytes: float = Field(default=0.0, ge=0.0, allow_inf_nan=False, description="what moves with the job to another site")
    power_w: float | None = Field(default=None, ge=0.0, description="of one GPU while running; default: 75 % of TDP")
    restart_s: float = Field(default=0.0, ge=0.0)
    first_start_s: float = Field(default=0.0, ge=0.0)


PlainClass = Annotated[AnalyticClass | TableClass | FixedClass, Field(discriminator="kind")]


class Phase(BaseModel):
    """A part of every cycle of a phased job, with its own speed on each pool and size."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    share: float = Field(default=1.0, gt=0.0, allow_inf_nan=False, description="of a cycle's work, beside the other phases' shares")
    runs: PlainClass = Field(description="the class whose plans and speeds hold in this phase")
    per_work: float = Field(default=1.0, gt=0.0, description="units of that class per unit of the job's work")


class PhasedClass(BaseModel):
    """Phases in a cycle (RLHF: generate, score, train); unit of work: the user's, for instance a prompt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["phased"] = "phased"
    cycle_work: float = Field(gt=0.0, allow_inf_nan=False, description="work of one round of all phases")
    phases: tuple[Phase, ...] = Field(min_length=2, max_length=100)

    @model_validator(mode="after")
    def _unique_names(self) -> "PhasedClass":
        names = [phase.name for phase in self.phases]
        if len(set(names)) < len(names):
            raise ValueError("phases: a name is used twice; give each phase its own")
        return self


JobClass = Annotated[AnalyticClass | TableClass | FixedClass | PhasedClass, Field(discriminator="kind")]

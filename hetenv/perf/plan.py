"""A parallel plan: how one job's model, batch and optimizer are spread over its GPUs. Legality is checked in
`legality`."""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import PlanError
from hetenv.perf.rows import PLAN_ROW, Recompute, Schedule


@dataclass(frozen=True)
class Plan:
    """Degrees of parallelism and the knobs that go with them.

    dp, tp, pp, cp: data, tensor, pipeline and context parallel degrees; their product is the number of GPUs.
    ep: expert parallel degree, folded into dp*cp*tp. micro_batch: samples per replica and pass.
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    micro_batch: int = 1
    virtual_stages: int = 1
    zero: int = 0
    recompute: Recompute = Recompute.NONE
    seq_parallel: bool = False
    schedule: Schedule = Schedule.ONE_F_ONE_B

    def __post_init__(self) -> None:
        for name in ("dp", "tp", "pp", "cp", "ep", "micro_batch", "virtual_stages"):
            value = getattr(self, name)
            if value < 1 or int(value) != value:
                raise PlanError(f"plan.{name}={value!r}: must be an integer >= 1")
        if self.zero not in (0, 1, 2, 3):
            raise PlanError(f"plan.zero={self.zero!r}: must be 0, 1, 2 or 3")

    @property
    def n_gpus(self) -> int:
        """GPUs that the plan uses."""
        return self.dp * self.tp * self.pp * self.cp

    def __str__(self) -> str:
        extra = (
            f" cp{self.cp}" * (self.cp > 1)
            + f" ep{self.ep}" * (self.ep > 1)
            + f" v{self.virtual_stages}" * (self.virtual_stages > 1)
        )
        sp = " sp" * self.seq_parallel
        degrees = f"dp{self.dp} tp{self.tp} pp{self.pp}{extra}"
        return f"{degrees} b{self.micro_batch} zero{self.zero} {self.recompute.name.lower()}{sp}"


@dataclass(frozen=True)
class MixedPlan:
    """mode: data or pipeline. plans, batches (samples per step) and layers by kind, in the order of the pools.

    In pipeline mode both plans share dp, tp and micro-batch, and `first` says which pool holds the first stages.
    """

    mode: str
    plans: tuple[Plan, Plan]
    batches: tuple[int, int]
    layers: tuple[int, int]
    first: int = 0

    @property
    def n_gpus(self) -> int:
        """GPUs of both kinds."""
        return self.plans[0].n_gpus + self.plans[1].n_gpus

    @property
    def whole(self) -> Plan:
        """One plan in place of both: replicas of both kinds in data mode, stages of both in pipeline mode; the rest is that
        of the kind with the larger part."""
        a, b = self.plans
        if self.mode == "pipeline":
            return replace(a, pp=a.pp + b.pp)
        larger = a if self.batches[0] >= self.batches[1] else b
        return replace(larger, dp=a.dp + b.dp)

    def __str__(self) -> str:
        a, b = self.plans
        if self.mode == "data":
            return f"[{a}] x {self.batches[0]} + [{b}] x {self.batches[1]} samples"
        return f"[{a}] {self.layers[0]} layers + [{b}] {self.layers[1]} layers, pool {self.first} first"


def plan_row(plan: Plan) -> NDArray[np.void]:
    """PLAN_ROW array of length 1."""
    row = np.zeros(1, PLAN_ROW)
    for field in fields(plan):
        row[field.name] = int(getattr(plan, field.name))
    return row


def plan_of(row: np.void) -> Plan:
    """The Plan of one PLAN_ROW record."""
    values = {str(name): int(row[name]) for name in PLAN_ROW.names or ()}
    return Plan(
        dp=values["dp"],
        tp=values["tp"],
        pp=values["pp"],
        cp=values["cp"],
        ep=values["ep"],
        micro_batch=values["micro_batch"],
        virtual_stages=values["virtual_stages"],
        zero=values["zero"],
        recompute=Recompute(values["recompute"]),
        seq_parallel=bool(values["seq_parallel"]),
        schedule=Schedule(values["schedule"]),
    )


def split_layers(layers: int, stages: int) -> tuple[int, ...]:
    """Even split: sums to `layers`, sizes differ by at most one, larger stages first."""
    if not 1 <= stages <= layers:
        raise PlanError(f"layers={layers} cannot fill pp={stages} stages; lower pp")
    return tuple(layers // stages + (stage < layers % stages) for stage in range(stages))


def check_split(layers: int, split: tuple[int, ...]) -> tuple[int, ...]:
    """A custom split, refused where it does not sum to `layers` or leaves a stage empty."""
    if sum(split) != layers or min(split, default=0) < 1:
        raise PlanError(f"split {split}: must sum to {layers} layers with no empty stage")
    return split

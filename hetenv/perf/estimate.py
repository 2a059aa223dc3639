"""`estimate(training, devices, plan)`: the friendly face of the kernels, and `estimate_many` for arrays of plans."""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from hetenv.perf.plan import MixedPlan, Plan, plan_of, plan_row
from hetenv.perf.rows import ESTIMATE_ROW, REASON_TEXT, LinkLevel, Reason
from hetenv.perf.step import estimate_rows
from hetenv.perf.training import Devices, Training, setting_row


@dataclass(frozen=True)
class Estimate:
    """What one step of a training costs under one plan.

    comm_s and hideable_s: by LinkLevel; iter_s == compute_s + sum of max(0, comm_s - hideable_s). memory_bytes: peak
    of the fullest GPU. state_bytes: a checkpoint of the whole job. powers: average of one GPU, W. straggler_share:
    share of compute_s that one slow member delays. reason_code is Reason.OK where the plan can run. band: 10th and
    90th percentile of measured over predicted time on runs of the stack (of any stack where it has no runs).
    """

    plan: Plan | MixedPlan
    n_gpus: int
    iter_s: float
    compute_s: float
    comm_s: tuple[float, float, float]
    hideable_s: tuple[float, float, float]
    memory_bytes: float
    state_bytes: float
    power_compute_w: float
    power_comm_w: float
    straggler_share: float
    bubble_share: float
    mfu: float
    reason_code: Reason
    global_batch: int
    tokens_per_sample: int
    stack: str = "default"
    band: tuple[float, float] = (1.0, 1.0)

    @property
    def is_legal(self) -> bool:
        """Whether the plan can run."""
        return self.reason_code == Reason.OK

    @property
    def reason(self) -> str:
        """Why the plan cannot run, empty where it can."""
        return REASON_TEXT[self.reason_code]

    @property
    def samples_per_s(self) -> float:
        """Samples of the global batch per second; 0 where the plan cannot be timed."""
        return 0.0 if self.iter_s == inf else self.global_batch / self.iter_s

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second of the whole job."""
        return self.samples_per_s * self.tokens_per_sample

    @property
    def band_s(self) -> tuple[float, float]:
        """Seconds between which eight of ten measured steps are expected."""
        return self.iter_s * self.band[0], self.iter_s * self.band[1]

    @property
    def exposed_s(self) -> float:
        """Seconds of communication that nothing hides."""
        return sum(max(0.0, c - h) for c, h in zip(self.comm_s, self.hideable_s))

    @property
    def energy_j_per_sample(self) -> float:
        """GPU energy per sample, J; inf where the plan cannot be timed."""
        if self.iter_s == inf:
            return inf
        step_j = self.power_compute_w * self.compute_s + self.power_comm_w * self.exposed_s
        return self.n_gpus * step_j / self.global_batch

    def step_s(self, speed: float = 1.0, bandwidth_factors: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> float:
        """Seconds of a step when GPUs run at `speed` and links at `bandwidth_factors` of their nominal rate."""
        if speed <= 0.0 or self.iter_s == inf:
            return inf
        total = self.compute_s / speed
        for comm, hideable, factor in zip(self.comm_s, self.hideable_s, bandwidth_factors):
            if comm > 0.0:
                total += max(0.0, (comm / factor if factor > 0.0 else inf) - hideable)
        return total


def estimate_many(training: Training, devices: Devices, plans: NDArray[np.void]) -> NDArray[np.void]:
    """[N] ESTIMATE_ROW of [N] PLAN_ROW: the array form, millions per second."""
    out = np.zeros(len(plans), ESTIMATE_ROW)
    estimate_rows(setting_row(training, devices)[0], plans, out)
    return out


def estimate_of(training: Training, devices: Devices, plan: np.void, row: np.void) -> Estimate:
    """The Estimate of one ESTIMATE_ROW record."""
    comm, hideable = row["comm_s"], row["hideable_s"]
    return Estimate(
        plan=plan_of(plan),
        n_gpus=devices.n_gpus,
        iter_s=float(row["iter_s"]),
        compute_s=float(row["compute_s"]),
        comm_s=(float(comm[LinkLevel.INTRA]), float(comm[LinkLevel.INTER]), float(comm[LinkLevel.WAN])),
        hideable_s=(float(hideable[LinkLevel.INTRA]), float(hideable[LinkLevel.INTER]), float(hideable[LinkLevel.WAN])),
        memory_bytes=float(row["memory_bytes"]),
        state_bytes=float(row["state_bytes"]),
        power_compute_w=float(row["power_compute_w"]),
        power_comm_w=float(row["power_comm_w"]),
        straggler_share=float(row["straggler_share"]),
        bubble_share=float(row["bubble_share"]),
        mfu=float(row["mfu"]),
        reason_code=Reason(int(row["reason"])),
        global_batch=training.global_batch,
        tokens_per_sample=training.tokens_per_sample,
        stack=training.stack_entry.name,
        band=(training.stack_entry.band_low, training.stack_entry.band_high),
    )


def estimate(training: Training, devices: Devices, plan: Plan) -> Estimate:
    """Time, memory, power and legality of one plan."""
    row = plan_row(plan)
    return estimate_of(training, devices, row[0], estimate_many(training, devices, row)[0])

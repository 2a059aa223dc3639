"""What it costs to change a job's layout: bytes that change owner, and the seconds of a live change and of a restart.

Each rank owns intervals of the job's state: a range of layers (pipeline), of each layer (tensor parallel) and, of optimizer states
under ZeRO, of its replica group. A rank receives its new shard minus what it held before (DynaTrain, arXiv 2605.18815). Ranks keep
their number: rank = ((replica * pp) + stage) * tp + tensor rank.
"""

from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.jit import kernel
from hetenv.perf.plan import Plan
from hetenv.perf.training import Training

OPTIMIZER_BYTES: Final = 12.0
WEIGHT_BYTES: Final = 4.0
"""Bytes a parameter: fp32 master, two moments; weight and gradient at 16 bit (gradients move with the weights' layout)."""


@dataclass(frozen=True)
class FixedParts:
    """Seconds of a (re)start that no byte count explains. source: where the figure is published."""

    name: str
    process_s: float
    communicator_s: float
    warmup_s: float
    save_bytes_per_s: float
    load_bytes_per_s: float
    source: str

    @property
    def total_s(self) -> float:
        """All that does not depend on the state's size."""
        return self.process_s + self.communicator_s + self.warmup_s


PRESETS: Final = {
    parts.name: parts
    for parts in (
        FixedParts("adaptdl", 15.0, 5.0, 8.0, 1e9, 2e9, "Pollux (OSDI 2021): about 30 s per restart of small models"),
        FixedParts("sia-small", 12.0, 5.0, 6.0, 1e9, 2e9, "Sia (SOSP 2023): 25 s for the smallest application"),
        FixedParts("sia-large", 60.0, 20.0, 100.0, 1.0e9, 1.5e9, "Sia (SOSP 2023): 250 s for the largest application"),
        FixedParts("rubick", 60.0, 30.0, 60.0, 1.0e9, 1.5e9, "Rubick (arXiv 2408.08586): 260 s for its largest model"),
        FixedParts("bloom", 60.0, 40.0, 60.0, 58e9, 58e9, "BLOOM training log: 40 s to save 2.3 TB of 176B parameters"),
    )
}


@kernel
def _overlap(a0: float, a1: float, b0: float, b1: float) -> float:
    return max(0.0, min(a1, b1) - max(a0, b0))


@kernel
def _owned(rank: int, dp: int, tp: int, pp: int, sharded: bool, box) -> None:  # type: ignore[no-untyped-def]
    """box: layer range, tensor range (fractions) and optimizer range within the replicas, of one rank."""
    tensor = rank % tp
    stage = rank // tp % pp
    replica = rank // (tp * pp)
    box[0], box[1] = stage / pp, (stage + 1.0) / pp
    box[2], box[3] = tensor / tp, (tensor + 1.0) / tp
    box[4], box[5] = (replica / dp, (replica + 1.0) / dp) if sharded else (0.0, 1.0)


@kernel
def received_share(old, new, n_old: int, n_new: int, optimizer: bool, boxes, out) -> None:  # type: ignore[no-untyped-def]
    """out[rank]: share of the job's state that each new rank lacks. old, new: (dp, tp, pp, zero) of each layout.

    optimizer: sharded from ZeRO stage 1; weights: from stage 3. Optimizer shards cut each tensor shard evenly.
    """
    from_stage = 1 if optimizer else 3
    for rank in range(n_new):
        _owned(rank, new[0], new[1], new[2], new[3] >= from_stage, boxes[1])
        size = 1.0
        for axis in range(3):
            size *= boxes[1, 2 * axis + 1] - boxes[1, 2 * axis]
        kept = 0.0
        if rank < n_old:
            _owned(rank, old[0], old[1], old[2], old[3] >= from_stage, boxes[0])
            kept = 1.0
            for axis in range(3):
                kept *= _overlap(boxes[0, 2 * axis], boxes[0, 2 * axis + 1], boxes[1, 2 * axis], boxes[1, 2 * axis + 1])
        out[rank] = max(0.0, size - kept)


def received_bytes(training: Training, old: Plan, new: Plan) -> NDArray[np.float64]:
    """[new ranks] bytes that each rank must receive. Equal plans: all 0; a grown dp (ZeRO 0): only the new ranks."""
    n_params = training.model_entry.n_params
    total = np.zeros(new.n_gpus)
    shapes = [np.array([plan.dp * plan.cp, plan.tp, plan.pp, plan.zero], np.int64) for plan in (old, new)]
    for optimizer, width in ((False, WEIGHT_BYTES), (True, OPTIMIZER_BYTES)):
        share, boxes = np.zeros(new.n_gpus), np.zeros((2, 6))
        received_share(shapes[0], shapes[1], old.n_gpus, new.n_gpus, optimizer, boxes, share)
        total += width * n_params * share
    return np.where(total < 1.0, 0.0, total)


@dataclass(frozen=True)
class Change:
    """A change of layout. bytes_moved: all ranks; most_bytes: the busiest rank; peak_extra_bytes: held twice on that rank."""

    bytes_moved: float
    most_bytes: float
    peak_extra_bytes: float
    live_s: float
    restart_s: float


def live_s(most_bytes: float, path_bytes_per_s: float, prepare_s: float = 0.0, commit_s: float = 0.1) -> float:
    """Seconds that a live change stops the job: the busiest rank's bytes over its path (preparation overlaps), then a commit."""
    if most_bytes <= 0.0 and prepare_s == 0.0:
        return 0.0
    transfer = most_bytes / path_bytes_per_s if path_bytes_per_s > 0.0 else inf
    return max(prepare_s, transfer) + commit_s


def restart_s(state_bytes: float, parts: FixedParts, save: bool = True) -> float:
    """Seconds of save, process start, communicator set-up, load and warm-up."""
    saving = state_bytes / parts.save_bytes_per_s if save else 0.0
    return saving + parts.total_s + state_bytes / parts.load_bytes_per_s


def change(training: Training, old: Plan, new: Plan, bytes_per_s: float, parts: FixedParts) -> Change:
    """Bytes and seconds of going from `old` to `new`; bytes_per_s: what one rank receives."""
    received = received_bytes(training, old, new)
    most = float(received.max(initial=0.0))
    state = 14.0 * training.model_entry.n_params
    return Change(float(received.sum()), most, most, live_s(most, bytes_per_s), restart_s(state, parts))


def lower_bound_s(n_params: float, bytes_per_param: float, n_gpus: int, bytes_per_s: float) -> float:
    """No full exchange of the state over `n_gpus` can be faster: 70e9 at 16 B over 64 GPUs of 50 GB/s is 0.35 s."""
    return n_params * bytes_per_param / (n_gpus * bytes_per_s)


def worth_changing(gain_share: float, phase_s: float, change_s: float) -> bool:
    """Whether a layout that is `gain_share` faster pays for its change within a phase."""
    return gain_share * phase_s > change_s

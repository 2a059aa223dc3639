"""Bytes that a plan moves in one step, per GPU, by the textbook formulas (arXiv 2512.24750); independent of links and time."""

from dataclasses import dataclass

from hetenv.perf.plan import Plan
from hetenv.perf.training import Training


@dataclass(frozen=True)
class Traffic:
    """Bytes of one GPU and step. tensor: payload of the all-reduces; pipeline: both ways over one border; data: one ring's sends."""

    tensor_bytes: float
    pipeline_bytes: float
    data_bytes: float


def plan_traffic(training: Training, plan: Plan, element_bytes: int = 2) -> Traffic:
    """TP: 4 all-reduces of b*s*h per layer and micro-batch; PP: b*s*h per border each way; DP: 2(d-1)/d * params/(t*p)."""
    model = training.model_entry
    n_micro = training.global_batch // (plan.dp * plan.micro_batch)
    block = plan.micro_batch * training.tokens_per_sample * model.hidden * element_bytes
    tensor = 4.0 * block * (model.layers / plan.pp) * n_micro if plan.tp > 1 else 0.0
    pipeline = 2.0 * block * n_micro if plan.pp > 1 else 0.0
    data = 2.0 * (plan.dp - 1) / plan.dp * model.n_params / (plan.tp * plan.pp) * element_bytes
    return Traffic(tensor, pipeline, data)


def sharded_weight_share(sharded_params: float, n_params: float, n_shards: int) -> float:
    """Weights of one GPU, relative to all, when only some layers are sharded (SplitBrain; VGG-16's dense layers: 0.11 + 0.89/k)."""
    share = sharded_params / n_params
    return 1.0 - share + share / n_shards


def hetero_speed_up(mixed_rate: float, alone_rates: tuple[float, ...]) -> float:
    """H2 (arXiv 2505.17548): rate over all kinds together relative to the sum of each kind's own."""
    return mixed_rate / sum(alone_rates)


def halo_bytes(width: int, channels: int, kernel: int, n_parts: int, element_bytes: int = 2) -> float:
    """Bytes that an image cut into `n_parts` strips sends in all before a convolution: (kernel - 1)/2 rows over each border,
    both ways (DistDL)."""
    return 2.0 * (n_parts - 1) * ((kernel - 1) // 2) * width * channels * element_bytes

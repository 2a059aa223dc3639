"""What people ask about a plan beyond its step time: memory of each stage, layers of each stage, $ and kWh per billion tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from hetenv.perf.estimate import Estimate
from hetenv.perf.memory import (
    CONTEXT_BYTES,
    FRAGMENTATION,
    layer_activation_bytes,
    micro_batches_in_flight,
    model_state_bytes,
)
from hetenv.perf.mixed_stages import stage_bytes
from hetenv.perf.plan import MixedPlan, Plan, plan_row, split_layers
from hetenv.perf.rows import Recompute
from hetenv.perf.training import Devices, Training, setting_row
from hetenv.units import GIGA, HOUR_S, JOULE_PER_KWH

HOST_SHARE = 0.3
"""Host power per GPU relative to its TDP: DGX A100 and H100 nodes draw 25-45 % more than their GPUs (MODEL.md 8)."""


@dataclass(frozen=True)
class Price:
    """Of one billion tokens (or images): rent at the catalog's price, energy of GPUs and hosts at the plug of the node."""

    usd_per_gsample: float
    usd_per_gtoken: float
    kwh_per_gtoken: float


def price(estimate: Estimate, pools: Sequence[Devices]) -> Price:
    """Rent and energy of a plan on one or two kinds of devices; inf where it cannot run."""
    rate = estimate.samples_per_s
    if rate == 0.0:
        return Price(inf, inf, inf)
    usd_per_s = sum(pool.n_gpus * pool.accelerator_entry.usd_per_gpu_h for pool in pools) / HOUR_S
    host_w = HOST_SHARE * sum(pool.n_gpus * pool.accelerator_entry.tdp_w for pool in pools)
    kwh = (estimate.energy_j_per_sample + host_w / rate) / JOULE_PER_KWH
    tokens = max(1, estimate.tokens_per_sample)
    return Price(usd_per_s / rate * GIGA, usd_per_s / rate * GIGA / tokens, kwh * GIGA / tokens)


def stage_layers(training: Training, plan: Plan) -> tuple[int, ...]:
    """Transformer layers of each stage; the larger stages stand where no head or embedding is."""
    sizes = split_layers(training.model_entry.layers, plan.pp)
    return tuple(reversed(sizes))


def stage_memory_bytes(training: Training, devices: Devices, plan: Plan) -> tuple[float, ...]:
    """Peak memory of one GPU of each stage."""
    setting = setting_row(training, devices)[0]
    n_micro = training.global_batch // (plan.dp * plan.micro_batch)
    tokens = plan.micro_batch * training.tokens_per_sample / plan.cp
    layer = layer_activation_bytes(setting, tokens, plan.tp, plan.seq_parallel, int(plan.recompute))
    working = layer_activation_bytes(setting, tokens, plan.tp, plan.seq_parallel, int(Recompute.SELECTIVE))
    replicas = plan.dp * plan.cp
    found = []
    for stage, n_layers in enumerate(stage_layers(training, plan)):
        ends = float(setting["params_first"]) * (stage == 0) + float(setting["params_last"]) * (stage == plan.pp - 1)
        dense = (n_layers * float(setting["params_layer"]) + ends) / plan.tp
        experts = n_layers * float(setting["params_experts"]) / plan.ep
        states = model_state_bytes(dense, plan.zero, replicas)
        states += model_state_bytes(experts, plan.zero, max(1, replicas * plan.tp // plan.ep))
        held = micro_batches_in_flight(int(plan.schedule), plan.pp - stage, plan.virtual_stages, n_micro)
        stored = layer * n_layers * held + (working if plan.recompute == Recompute.FULL else 0.0)
        if stage == plan.pp - 1:
            stored += tokens * float(setting["act_token_head"]) / plan.tp
        found.append(states + CONTEXT_BYTES + FRAGMENTATION * stored)
    return tuple(float(value) for value in found)


def mixed_stage_memory_bytes(training: Training, pools: tuple[Devices, Devices], plan: MixedPlan) -> tuple[float, ...]:
    """Peak memory of one GPU of each stage of a pipeline over two kinds, first stage first."""
    whole = plan.whole
    row = plan_row(whole)[0]
    n_micro = training.global_batch // (whole.dp * whole.micro_batch)
    found: list[float] = []
    for pool in (plan.first, 1 - plan.first):
        setting = setting_row(training, pools[pool])[0]
        for n_layers in split_layers(plan.layers[pool], plan.plans[pool].pp):
            stage = len(found)
            is_last = stage == whole.pp - 1
            ends = float(setting["params_first"]) * (stage == 0) + float(setting["params_last"]) * is_last
            held = min(n_micro, whole.pp - stage)
            found.append(float(stage_bytes(setting, row, n_layers, held, ends, is_last)))
    return tuple(found)

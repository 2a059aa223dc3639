"""Bytes per GPU: parameters, optimizer states under ZeRO, activations per recompute mode, fixed parts.

States: Rajbhandari et al. 2020 (ZeRO), mixed-precision Adam 2 + 2 + 12 bytes a parameter. Activations: Korthikanti et
al. 2022 (arXiv 2205.05198), generalised to gated FFNs and grouped queries; at GPT shapes they give its s*b*h*(34 +
5as/h).
"""

from typing import Any

from hetenv.jit import kernel
from hetenv.perf.rows import Recompute, Schedule

CONTEXT_BYTES = 1.2e9
"""Context, communicator buffers and allocator floor of one process; 1-2 GB in MODEL.md 6."""
FRAGMENTATION = 1.05
"""Reserved over allocated activations; PyTorch with expandable segments 1.02-1.15."""


@kernel
def state_bytes_per_param(zero: int, dp: int) -> float:
    """Weights, gradients and Adam states of one local parameter. 16 without ZeRO; stage 1 shards 12, 2 also 2, 3
    all."""
    if zero == 0:
        return 16.0
    if zero == 1:
        return 4.0 + 12.0 / dp
    if zero == 2:
        return 2.0 + 14.0 / dp
    return 16.0 / dp


@kernel
def model_state_bytes(n_params: float, zero: int, dp: int) -> float:
    """Per GPU. 7.5e9 parameters over 64: 120 GB, 31.41, 16.64, 1.875 for stages 0 to 3 (ZeRO paper, figure 1)."""
    return n_params * state_bytes_per_param(zero, dp)


@kernel
def micro_batches_in_flight(schedule: int, stages: int, virtual_stages: int, n_micro: int) -> float:
    """Micro-batches whose activations the first stage holds at once, in units of one whole stage (2205.05198,
    4.2.3)."""
    if schedule == Schedule.GPIPE:
        return float(n_micro)
    if schedule == Schedule.INTERLEAVED:
        return min(float(n_micro), stages + (stages - 1.0) / virtual_stages)
    return float(min(n_micro, stages))


@kernel
def layer_activation_bytes(setting: Any, tokens: float, tp: int, seq_parallel: bool, recompute: int) -> float:
    """One layer's stored activations for one micro-batch of `tokens` on one GPU."""
    split = 1.0 / tp
    whole = split if seq_parallel else 1.0
    if recompute == Recompute.FULL:
        return tokens * setting["act_token_full"] * whole
    stored = setting["act_token_whole"] * whole + setting["act_token_split"] * split
    if recompute == Recompute.NONE:
        stored += setting["act_token_scores"] * split
    else:
        stored *= setting["act_selective"]
    return tokens * stored


@kernel
def stage_params(setting: Any, plan: Any) -> tuple[float, float]:
    """(dense, expert) parameters on one GPU of the fullest stage."""
    pp, tp = plan["pp"], plan["tp"]
    n_layers = -(-int(setting["layers"]) // pp)
    ends = (
        setting["params_first"] + setting["params_last"]
        if pp == 1
        else max(setting["params_first"], setting["params_last"])
    )
    dense = (n_layers * setting["params_layer"] + ends) / tp
    return dense, n_layers * setting["params_experts"] / plan["ep"]


@kernel
def peak_bytes(setting: Any, plan: Any, n_micro: int, dense: float, experts: float) -> float:
    """Peak memory of the fullest GPU of the job; dense, experts: its parameters (`stage_params`)."""
    replicas = plan["dp"] * plan["cp"]
    states = model_state_bytes(dense, plan["zero"], replicas)
    if experts > 0.0:
        states += model_state_bytes(experts, plan["zero"], max(1, replicas * plan["tp"] // plan["ep"]))
    if setting["is_convolution"] > 0:
        return states + CONTEXT_BYTES + FRAGMENTATION * plan["micro_batch"] * setting["act_token_full"]
    tokens = plan["micro_batch"] * setting["seq_len"] / plan["cp"]
    sp = plan["seq_parallel"] != 0
    layer = layer_activation_bytes(setting, tokens, plan["tp"], sp, plan["recompute"])
    n_layers = -(-int(setting["layers"]) // plan["pp"])
    stored = layer * n_layers * micro_batches_in_flight(plan["schedule"], plan["pp"], plan["virtual_stages"], n_micro)
    if plan["recompute"] == Recompute.FULL:
        stored += layer_activation_bytes(setting, tokens, plan["tp"], sp, Recompute.SELECTIVE.value)
    head = tokens * setting["act_token_head"] / plan["tp"]
    if plan["pp"] > 1:
        last = layer * n_layers + head
        stored = max(stored, last)
    else:
        stored += head
    if plan["zero"] == 3:
        stored += 4.0 * setting["params_layer"] / plan["tp"]
    return states + CONTEXT_BYTES + FRAGMENTATION * stored

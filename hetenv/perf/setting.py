"""What one training on one kind of device costs per token and layer: everything that does not depend on the plan.

GEMM: FLOPs/(peak*E) plus k passes over its operands, added (a roofline of sums fits better than one of maxima). E is
capped smoothly at 0.95. Attention: 4*s*q FLOPs a token, half of it when masked blocks are skipped. All at tp = 1, per
layer, forward.
"""

import math
from typing import Any

from hetenv.jit import kernel

EFFICIENCY_CAP = 0.95
FLASH_BACKWARD = 2.5
"""Five matrix products where the forward pass has two: scores are computed again (FlashAttention, arXiv 2205.14135)."""


IMAGE_STRAGGLER = 1.5
"""Input pipelines differ from GPU to GPU, not from node to node: ResNet-50 loses about 1.7 % per doubling of the GPUs."""


@kernel
def capped(efficiency: float) -> float:
    """(E^-12 + 0.95^-12)^(-1/12): E below the cap, 0.95 far above it."""
    if efficiency <= 0.0:
        return 0.0
    return float((efficiency**-12.0 + EFFICIENCY_CAP**-12.0) ** (-1.0 / 12.0))


@kernel
def per(amount: float, rate: float) -> float:
    """amount / rate with 0 for a rate of 0 (the plan is then refused for PRECISION)."""
    return amount / rate if rate > 0.0 else 0.0


@kernel
def _gemm_terms(model: Any, device: Any, stack: Any, rate: float, byte_s: float, out: Any) -> None:
    """GEMM seconds per token: arithmetic, operands split by tp, operands not split; seconds per pass over the
    weights."""
    h = model["hidden"]
    q = model["heads"] * model["head_dim"]
    kv = model["kv_heads"] * model["head_dim"]
    g = model["ffn_factor"]
    layers = max(model["layers"], 1.0)
    dense = model["n_dense_layers"] / layers
    width = (
        model["ffn_hidden"]
        if model["n_experts"] == 0
        else model["shared_ffn_hidden"] * (1.0 - dense) + model["dense_ffn_hidden"] * dense
    )
    weights = model["attention_params"] + g * h * width
    out["token_s"] = per(2.0 * weights, rate)
    out["operand_token_s"] = byte_s * (4.0 * h if width > 0 else 2.0 * h)
    out["shared_operand_token_s"] = byte_s * (2.0 * q + 2.0 * kv + g * width)
    out["weight_s"] = byte_s * weights
    out["expert_token_s"] = 0.0
    out["expert_weight_s"] = 0.0
    out["permute_token_s"] = 0.0
    if model["n_experts"] > 0:
        share = 1.0 - dense
        inside = model["expert_hidden"]
        expert = g * inside * model["ffn_hidden"]
        out["expert_token_s"] = share * (
            per(2.0 * expert, rate * stack["expert_gemm_rate"]) + byte_s * (2.0 * inside + g * model["ffn_hidden"])
        )
        out["expert_weight_s"] = share * byte_s * expert
        out["permute_token_s"] = share * stack["expert_permute_passes"] * 2.0 * inside / device["memory_bytes_per_s"]


@kernel
def ffn_width(model: Any) -> float:
    """Mean FFN width that a token meets in a layer."""
    if model["n_experts"] == 0:
        return float(model["ffn_hidden"])
    dense = model["n_dense_layers"] / max(model["layers"], 1.0)
    width = model["ffn_hidden"] * model["topk"] + model["shared_ffn_hidden"]
    return float((1.0 - dense) * width + dense * model["dense_ffn_hidden"])


@kernel
def elementwise_share(model: Any) -> float:
    """Element-wise HBM passes of a layer relative to a GPT layer with dropout and a plain FFN of 4h (23 passes).

    Norms 4, residual sums 6, dropout 5, activation 2 per FFN width (3 gated), rotary embedding 2 over queries and keys.
    """
    h = max(model["hidden"], 1.0)
    passes = 10.0 + 5.0 * model["dropout"] + model["ffn_factor"] * ffn_width(model) / h
    if model["ffn_factor"] == 3.0:
        passes += 2.0 * (model["heads"] + model["kv_heads"]) * model["head_dim"] / h
    return passes / 23.0


@kernel
def _attention_terms(model: Any, device: Any, stack: Any, seq_len: float, out: Any) -> None:
    """Attention seconds per token and layer, forward, and backward over forward."""
    q = model["heads"] * model["head_dim"]
    flops = 4.0 * seq_len * q
    rate16 = device["peak16_flops"] * device["clock"]
    if stack["is_flash"] > 0:
        if model["causal"] > 0 and stack["skips_masked"] > 0:
            flops *= 0.5
        out["attention_token_s"] = per(flops, rate16 * stack["attention_rate"])
        out["attention_backward"] = FLASH_BACKWARD
        out["drops_scores"] = 1.0
        return
    rate = rate16 * stack["bmm_rate"]
    if int(model["head_dim"]) % 8 != 0:
        rate /= 6.9
    scores = stack["score_passes"] * model["heads"] * seq_len * device["element_bytes"] / device["memory_bytes_per_s"]
    out["attention_token_s"] = per(flops, rate) + scores
    out["attention_backward"] = 2.0
    out["drops_scores"] = 0.0


@kernel
def _activation_terms(model: Any, device: Any, out: Any) -> None:
    """Stored activation bytes per token and layer (2205.05198 section 4; s*b*h*34 at GPT shapes without scores).

    Below 16 bit most GEMM inputs are kept at 8 bits: 0.7 of the bytes. Selective recomputation drops the scores; where flash
    attention keeps none, it drops norm outputs and activation inputs, about half (Megatron-Core modules, torchtitan operators).
    """
    h = model["hidden"]
    q = model["heads"] * model["head_dim"]
    kv = model["kv_heads"] * model["head_dim"]
    per_width = 6.0 if model["ffn_factor"] == 3.0 else 4.0
    unit = device["element_bytes"] / 2.0 * (1.0 - 0.3 * device["is_narrow"])
    mask = model["dropout"]
    out["act_token_whole"] = unit * (4.0 * h + 4.0 * h) + mask * 2.0 * h
    out["act_token_split"] = unit * (4.0 * q + 4.0 * kv + per_width * ffn_width(model))
    if model["n_experts"] > 0:
        share = 1.0 - model["n_dense_layers"] / max(model["layers"], 1.0)
        out["act_token_split"] += unit * 4.0 * model["expert_hidden"] * model["topk"] * share
    out["act_selective"] = 0.5 if out["drops_scores"] > 0.0 else 1.0
    out["act_token_scores"] = 0.0
    if out["drops_scores"] == 0.0:
        out["act_token_scores"] = (unit * 4.0 + mask) * model["heads"] * out["seq_len"]
    out["act_token_full"] = unit * 2.0 * h
    out["act_token_head"] = 4.0 * model["vocab"] * model["head_share"]
    if model["is_convolution"] > 0:
        out["act_token_full"] = unit * 0.25 * model["train_bytes"]


@kernel
def set_link_times(out: Any) -> None:
    """Seconds per byte of a GPU's link, of a node's NICs and of one GPU's share of them; inf where there is no bandwidth."""
    intra, inter = out["intra_bytes_per_s"], out["inter_bytes_per_s"]
    out["intra_s_per_byte"] = 1.0 / intra if intra > 0.0 else math.inf
    out["node_s_per_byte"] = 1.0 / inter if inter > 0.0 else math.inf
    out["nic_s_per_byte"] = out["gpus_per_node"] / inter if inter > 0.0 else math.inf


@kernel
def _set_nominal_link_times(device: Any, stack: Any, out: Any) -> None:
    """Seconds per byte that the links are sold for: by these overlap is planned, whatever the links now give."""
    intra = device["intra_nominal_bytes_per_s"] * stack["intra_rate"]
    inter = device["inter_nominal_bytes_per_s"] * stack["inter_rate"]
    out["intra_nominal_s_per_byte"] = 1.0 / intra if intra > 0.0 else math.inf
    out["nic_nominal_s_per_byte"] = out["gpus_per_node"] / inter if inter > 0.0 else math.inf


@kernel
def _copy_facts(model: Any, device: Any, stack: Any, out: Any) -> None:
    """Facts that pass through unchanged, and links at their usable rate."""
    out["is_convolution"] = model["is_convolution"]
    out["layers"] = max(model["layers"], 1.0)
    out["heads"] = model["heads"]
    out["kv_heads"] = model["kv_heads"]
    out["n_experts"] = model["n_experts"]
    out["topk"] = model["topk"]
    out["n_gpus"] = device["n_gpus"]
    out["gpus_per_node"] = device["gpus_per_node"]
    out["n_sites"] = device["n_sites"]
    out["intra_bytes_per_s"] = device["intra_bytes_per_s"] * stack["intra_rate"]
    out["inter_bytes_per_s"] = device["inter_bytes_per_s"] * stack["inter_rate"]
    set_link_times(out)
    _set_nominal_link_times(device, stack, out)
    out["wan_bytes_per_s"] = device["wan_bytes_per_s"]
    out["intra_latency_s"] = device["intra_latency_s"]
    out["inter_latency_s"] = device["inter_latency_s"]
    out["wan_latency_s"] = device["wan_latency_s"]
    out["memory_bytes"] = device["memory_bytes"]
    out["element_bytes"] = device["element_bytes"]
    out["gradient_bytes"] = device["element_bytes"]
    out["idle_w"] = device["idle_w"]
    out["limit_w"] = device["limit_w"]
    out["peak_flops"] = device["peak_flops"]
    out["precision_ok"] = (
        1.0 if device["peak_flops"] > 0.0 and device["peak16_flops"] > 0.0 and device["clock"] > 0.0 else 0.0
    )
    out["launch_blocks"] = stack["launch_blocks"]
    out["fixed_s"] = stack["fixed_s"]
    out["full_recompute"] = stack["full_recompute"]
    out["selective_recompute"] = stack["selective_recompute"]
    n_nodes = max(1.0, device["n_gpus"] / device["gpus_per_node"])
    out["straggler_factor"] = 1.0 + stack["straggler"] * math.log2(n_nodes)
    if model["is_convolution"] > 0:
        out["straggler_factor"] = 1.0 + IMAGE_STRAGGLER * stack["straggler"] * math.log2(device["n_gpus"])
    out["sharded_hidden"] = stack["sharded_hidden"]
    out["sharded_slowdown"] = stack["sharded_slowdown"]
    out["dp_hidden"] = stack["dp_hidden"]
    out["dp_exposed"] = stack["dp_exposed"]
    out["tp_exposed"] = stack["tp_exposed"]
    out["tp_latency_s"] = stack["tp_latency_s"]
    out["p2p_exposed"] = stack["p2p_exposed"]
    out["expert_link_rate"] = stack["expert_link_rate"]
    out["expert_inter_rate"] = stack["expert_inter_rate"]
    out["expert_interleaved"] = stack["expert_interleaved"]
    out["expert_fixed_tokens"] = stack["expert_fixed_tokens"]


@kernel
def _param_counts(model: Any, out: Any) -> None:
    """Mean parameters per layer, and of the first and last stage's extra parts."""
    layers = out["layers"]
    main = model["layers"] - model["n_dense_layers"]
    if model["is_convolution"] > 0:
        out["params_layer"] = model["n_params"]
        out["params_experts"] = 0.0
        out["params_first"] = 0.0
        out["params_last"] = 0.0
    else:
        dense = main * model["shared_layer_params"] + model["n_dense_layers"] * model["dense_layer_params"]
        out["params_layer"] = dense / layers
        out["params_experts"] = main * model["n_experts"] * model["expert_params"] / layers
        out["params_first"] = model["embedding_params"]
        out["params_last"] = model["head_params"]
    out["params_all"] = model["n_params"]


@kernel
def _head_and_image(model: Any, device: Any, stack: Any, seq_len: float, out: Any) -> None:
    """The vocabulary head with its cross-entropy per token of the sequence; one image; useful FLOPs of one sample."""
    h = model["hidden"]
    vocab = model["vocab"] * model["head_share"]
    rate16 = device["peak16_flops"] * device["clock"] * capped(device["efficiency16"] * stack["gemm_efficiency"])
    logits = 4.0 * vocab * stack["head_passes"] / device["memory_bytes_per_s"]
    out["head_token_s"] = per(6.0 * h * vocab, rate16) + logits
    q = model["heads"] * model["head_dim"]
    g = model["ffn_factor"]
    main = model["layers"] - model["n_dense_layers"]
    width = (
        model["topk"] * model["ffn_hidden"] * model["expert_hidden"] / h + model["shared_ffn_hidden"]
        if model["n_experts"] > 0
        else model["ffn_hidden"]
    )
    weights = model["layers"] * model["attention_params"]
    weights += g * h * (main * width + model["n_dense_layers"] * model["dense_ffn_hidden"])
    attention = 12.0 * seq_len * q * model["layers"] * (0.5 if model["causal"] > 0 else 1.0)
    out["useful_flops"] = seq_len * (6.0 * weights + attention + 6.0 * h * vocab)
    out["image_s"] = 0.0
    if model["is_convolution"] > 0:
        rate = (
            device["peak_flops"] * device["clock"] * min(device["convolution"] * stack["convolution_efficiency"], 0.95)
        )
        traffic = model["train_bytes"] * device["element_bytes"] / 2.0
        out["image_s"] = per(model["train_flops"], rate) + traffic / (0.8 * device["memory_bytes_per_s"])
        if stack["input_samples_per_s"] > 0.0:
            out["image_s"] = max(out["image_s"], 1.0 / stack["input_samples_per_s"])
        out["useful_flops"] = model["train_flops"]


@kernel
def prepare(model: Any, device: Any, stack: Any, seq_len: float, global_batch: float, out: Any) -> None:
    """Fill one SETTING_ROW from a MODEL_ROW, DEVICE_ROW and STACK_ROW."""
    out["seq_len"] = seq_len
    out["global_batch"] = global_batch
    _copy_facts(model, device, stack, out)
    _param_counts(model, out)
    w = device["element_bytes"]
    bandwidth = device["memory_bytes_per_s"]
    efficiency = capped(device["efficiency"] * stack["gemm_efficiency"])
    rate = device["peak_flops"] * device["clock"] * efficiency
    _gemm_terms(model, device, stack, rate, stack["operand_passes"] * w / bandwidth, out)
    _attention_terms(model, device, stack, seq_len, out)
    _activation_terms(model, device, out)
    _head_and_image(model, device, stack, seq_len, out)
    h = model["hidden"]
    out["elementwise_token_s"] = stack["elementwise_passes"] * elementwise_share(model) * w * h / bandwidth
    out["cast_token_s"] = device["is_narrow"] * stack["cast_passes"] * 2.0 * h / bandwidth
    out["launch_s"] = stack["launch_s"] * device["launch_factor"]
    if model["n_experts"] > 0:
        out["launch_s"] *= 1.0 + (stack["expert_launch"] - 1.0) * (1.0 - model["n_dense_layers"] / out["layers"])
    out["tensor_token_bytes"] = w * h
    out["expert_token_bytes"] = w * model["expert_hidden"] * (1.0 - model["n_dense_layers"] / out["layers"])
    out["optimizer_param_s"] = stack["optimizer_passes"] / bandwidth
    gemm = out["token_s"] + out["topk"] * out["expert_token_s"] + out["attention_token_s"]
    out["gemm_w_share"] = 1.0 if model["is_convolution"] > 0 else gemm / (gemm + out["elementwise_token_s"] + 1e-30)

"""The seconds of one training step under one plan: compute, communication per link level, what of it can hide.

The simulator relies on iter_s == compute_s + sum over levels of max(0, comm_s - hideable_s), and on every part of
comm_s being proportional to 1/bandwidth while compute_s and hideable_s do not depend on it.
"""

import math
from typing import Any

from hetenv.jit import kernel
from hetenv.perf.comm import exchange_s, ring_bytes, ring_latency_s, tensor_s, transfer_s, wire_s
from hetenv.perf.legality import plan_reason
from hetenv.perf.memory import peak_bytes, stage_params
from hetenv.perf.pipeline import bubble_share, straggler_share
from hetenv.perf.power import busy_w, communication_w
from hetenv.perf.rows import LinkLevel, Reason, Recompute
from hetenv.perf.setting import prepare

CONVOLUTION_LAUNCHES = 12.0
"""CPU time of a step of a convolution network in launches of one transformer layer: about 10 ms for ResNet-50."""


@kernel
def _launched(busy: float, launch: float) -> float:
    """(busy^4 + launch^4)^(1/4): kernels run while the next are launched, so the longer of the two counts."""
    b2 = busy * busy
    l2 = launch * launch
    return math.sqrt(math.sqrt(b2 * b2 + l2 * l2))


@kernel
def layer_s(setting: Any, plan: Any, tokens: float) -> tuple[float, float]:
    """(all passes, backward pass) of one layer for one micro-batch of `tokens`, without communication."""
    tp = plan["tp"]
    split = 1.0 / tp
    gemm = tokens * (
        setting["token_s"] * split + setting["operand_token_s"] + setting["shared_operand_token_s"] * split
    )
    gemm += setting["weight_s"] * split
    if setting["n_experts"] > 0:
        n_local = setting["n_experts"] / plan["ep"]
        rows = setting["topk"] * tokens * split
        gemm += setting["expert_token_s"] * (rows + setting["expert_fixed_tokens"] * n_local)
        gemm += setting["expert_weight_s"] * n_local
    share = split if plan["seq_parallel"] != 0 else 0.5 + 0.5 * split
    other = tokens * (setting["elementwise_token_s"] * share + setting["cast_token_s"])
    other += setting["permute_token_s"] * setting["topk"] * tokens * split
    attention = tokens * setting["attention_token_s"] * split
    forward = gemm + other + attention
    backward = 2.0 * gemm + 2.0 * other + setting["attention_backward"] * attention
    passes = 3.0
    again = 0.0
    if plan["recompute"] == Recompute.FULL:
        again = forward * setting["full_recompute"]
        passes = 4.0
    elif plan["recompute"] == Recompute.SELECTIVE:
        again = setting["selective_recompute"] * gemm
        if setting["drops_scores"] > 0.0:
            again += 0.5 * tokens * setting["elementwise_token_s"] * share
        if setting["drops_scores"] == 0.0:
            again += attention
    busy = forward + backward + again
    launch = passes * setting["launch_s"]
    if setting["launch_blocks"] > 0:
        return busy + 4.6 * launch, backward + 9.2 * setting["launch_s"]
    return _launched(busy, launch), _launched(backward, 2.0 * setting["launch_s"])


@kernel
def _blocking_comm(setting: Any, plan: Any, tokens: float, out: Any) -> float:
    """Put all-reduces, all-to-alls and context rings of one layer and micro-batch into out["comm_s"]; returns latencies, s."""
    full = plan["recompute"] == Recompute.FULL
    tp = plan["tp"]
    intra, inter, latency = tensor_s(setting, tp, tokens, 6.0 if full else 4.0)
    if plan["ep"] > 1:
        near, far = exchange_s(setting, plan["ep"], 2.0 * setting["expert_token_bytes"] * tokens / tp)
        passes = 3.0 if full else 2.0
        if plan["virtual_stages"] > 1:
            passes *= setting["expert_interleaved"]
        intra += passes * near
        inter += passes * far
    if plan["cp"] > 1:
        ring = (
            2.0
            * setting["tensor_token_bytes"]
            * setting["kv_heads"]
            / setting["heads"]
            * tokens
            / tp
            * (plan["cp"] - 1)
        )
        if plan["cp"] * tp <= setting["gpus_per_node"]:
            intra += 3.0 * setting["tp_exposed"] * wire_s(ring, setting["intra_s_per_byte"])
        else:
            inter += 3.0 * setting["tp_exposed"] * wire_s(ring, setting["nic_s_per_byte"])
    out["comm_s"][LinkLevel.INTRA] = intra
    out["comm_s"][LinkLevel.INTER] = inter
    out["comm_s"][LinkLevel.WAN] = 0.0
    return latency


@kernel
def _point_to_point(setting: Any, plan: Any, tokens: float, n_micro: int, out: Any) -> None:
    """Activations and their gradients across stage borders, for the whole step."""
    pp = plan["pp"]
    if pp <= 1:
        return
    sent = 2.0 * n_micro * plan["virtual_stages"] * setting["tensor_token_bytes"] * tokens / plan["tp"]
    sent *= setting["p2p_exposed"]
    if setting["n_gpus"] <= setting["gpus_per_node"]:
        out["comm_s"][LinkLevel.INTRA] += wire_s(sent, setting["intra_s_per_byte"])
        return
    out["comm_s"][LinkLevel.INTER] += wire_s(sent, setting["nic_s_per_byte"])
    if setting["n_sites"] > 1 and pp % int(setting["n_sites"]) == 0:
        lanes = plan["dp"] * plan["cp"] * plan["tp"]
        out["comm_s"][LinkLevel.WAN] += transfer_s(sent * lanes, setting["wan_bytes_per_s"])
        out["comm_s"][LinkLevel.WAN] += 2.0 * setting["wan_latency_s"]


@kernel
def _between_sites(setting: Any, plan: Any, out: Any) -> float:
    """Gradient exchange between sites when pipelines do not span them: one copy of the gradients per site and
    direction."""
    n_sites = setting["n_sites"]
    if n_sites <= 1 or (plan["pp"] > 1 and plan["pp"] % int(n_sites) == 0):
        return 0.0
    sent = 2.0 * (n_sites - 1.0) / n_sites * setting["params_all"] * setting["gradient_bytes"]
    seconds = transfer_s(sent, setting["wan_bytes_per_s"]) + 2.0 * setting["wan_latency_s"]
    out["comm_s"][LinkLevel.WAN] += seconds
    return seconds


@kernel
def _gradients(
    setting: Any,
    plan: Any,
    n_micro: int,
    backward_s: float,
    compute_s: float,
    dense: float,
    experts: float,
    out: Any,
) -> None:
    """Gradient exchange and parameter gathers, with the seconds of compute that they can hide behind.

    One share of the compute hides all levels together. It is split between them as their traffic would take time on
    nominal links, so that no byte hides better on a farther level and slower links change no share.
    """
    tp, ep = plan["tp"], plan["ep"]
    size = plan["dp"] * plan["cp"] + int(setting["extra_dp"])
    scale = setting["gradient_bytes"]
    near, far = ring_bytes(setting, size, tp, dense * scale)
    near_latency, far_latency = ring_latency_s(setting, size, tp)
    if experts > 0:
        n_copies = size * tp // ep
        more, farther = ring_bytes(setting, n_copies, ep, experts * scale)
        near += more
        far += farther
        more, farther = ring_latency_s(setting, n_copies, ep)
        near_latency += more
        far_latency += farther
    rings = setting["dp_exposed"]
    share = setting["dp_hidden"]
    cover = backward_s
    if plan["zero"] == 3:
        rings = 1.5 * n_micro
        share = setting["sharded_hidden"]
        cover = compute_s
    elif plan["zero"] == 2:
        rings *= 0.5 * (n_micro + 1.0)
    budget = share * cover
    if _between_sites(setting, plan, out) > 0.0:
        budget *= 0.5
        out["hideable_s"][LinkLevel.WAN] = budget
    near_nominal = rings * (wire_s(near, setting["intra_nominal_s_per_byte"]) + near_latency)
    far_nominal = rings * (wire_s(far, setting["nic_nominal_s_per_byte"]) + far_latency)
    outer = _share(far_nominal, near_nominal)
    intra = rings * (wire_s(near, setting["intra_s_per_byte"]) + near_latency)
    inter = rings * (wire_s(far, setting["nic_s_per_byte"]) + far_latency)
    _add_exchange(out, LinkLevel.INTER.value, inter, min(inter, far_nominal), budget * outer)
    _add_exchange(out, LinkLevel.INTRA.value, intra, min(intra, near_nominal), budget * (1.0 - outer))


@kernel
def _share(part: float, rest: float) -> float:
    """part / (part + rest) for parts that may be 0 or infinite."""
    if part <= 0.0:
        return 0.0
    return 1.0 if part == math.inf else part / (part + rest)


@kernel
def _add_exchange(out: Any, level: int, seconds: float, own_s: float, budget_s: float) -> None:
    """Put one level's exchange into `out`. Where the level also carries blocking traffic, at most `own_s` hides."""
    if seconds <= 0.0:
        return
    alone = out["comm_s"][level] == 0.0
    out["hideable_s"][level] = budget_s if alone else min(budget_s, own_s)
    out["comm_s"][level] += seconds


@kernel
def _clear(out: Any, reason: int) -> None:
    """An estimate of nothing: infinite time, no traffic."""
    out["iter_s"] = math.inf
    out["compute_s"] = 0.0
    for level in range(3):
        out["comm_s"][level] = 0.0
        out["hideable_s"][level] = 0.0
    out["memory_bytes"] = 0.0
    out["state_bytes"] = 0.0
    out["power_compute_w"] = 0.0
    out["power_comm_w"] = 0.0
    out["straggler_share"] = 0.0
    out["bubble_share"] = 0.0
    out["mfu"] = 0.0
    out["reason"] = reason


@kernel
def _busy_s(setting: Any, plan: Any, tokens: float, n_micro: int, latency: float, out: Any) -> tuple[float, float]:
    """(compute of all micro-batches with bubbles, backward of one on the slowest stage); scales comm_s to the whole
    step."""
    pp = plan["pp"]
    if setting["is_convolution"] > 0:
        image = plan["micro_batch"] * setting["image_s"]
        floor = CONVOLUTION_LAUNCHES * setting["launch_s"]
        image = math.sqrt(math.sqrt(image**4 + floor**4))
        return n_micro * image, 0.6 * image
    layer, backward = layer_s(setting, plan, tokens)
    head = tokens * setting["head_token_s"] / plan["tp"]
    n_layers = setting["layers"]
    most = math.ceil(n_layers / pp)
    total = n_layers * layer + head
    slowest = max(most * layer, n_layers / pp * layer + head)
    fill = (1.0 - 1.0 / pp) / plan["virtual_stages"]
    slots = n_micro * most + n_layers * fill
    out["comm_s"][LinkLevel.INTRA] *= slots
    out["comm_s"][LinkLevel.INTER] *= slots
    return n_micro * slowest + total * fill + slots * latency, most * backward + (head * 0.66 if pp == 1 else 0.0)


@kernel
def estimate_row(setting: Any, plan: Any, out: Any) -> None:
    """Fill one ESTIMATE_ROW for a SETTING_ROW and a PLAN_ROW."""
    reason = plan_reason(setting, plan)
    if reason != 0:
        _clear(out, reason)
        return
    price_row(setting, plan, out)


@kernel
def price_row(setting: Any, plan: Any, out: Any) -> None:
    """Time, memory and power of a plan whatever `plan_reason` says of it (a measured run has run)."""
    out["reason"] = Reason.OK.value
    for level in range(3):
        out["hideable_s"][level] = 0.0
    n_micro = int(setting["global_batch"]) // (plan["dp"] * plan["micro_batch"])
    tokens = plan["micro_batch"] * setting["seq_len"] / plan["cp"]
    latency = _blocking_comm(setting, plan, tokens, out)
    busy, backward = _busy_s(setting, plan, tokens, n_micro, latency, out)
    busy *= setting["straggler_factor"]
    if plan["zero"] == 3 and plan["dp"] > 1:
        busy *= 1.0 + setting["sharded_slowdown"]
    dense, experts = stage_params(setting, plan)
    _point_to_point(setting, plan, tokens, n_micro, out)
    _gradients(setting, plan, n_micro, backward, busy, dense, experts, out)
    local = dense + experts
    if plan["zero"] >= 1:
        local /= plan["dp"] * plan["cp"]
    compute = busy + setting["optimizer_param_s"] * local + setting["fixed_s"]
    total = compute
    for level in range(3):
        total += max(0.0, out["comm_s"][level] - out["hideable_s"][level])
    if not total < math.inf:
        _clear(out, Reason.LINK.value)
        return
    _finish(setting, plan, n_micro, compute, total, dense, experts, out)


@kernel
def _finish(
    setting: Any, plan: Any, n_micro: int, compute: float, total: float, dense: float, experts: float, out: Any
) -> None:
    """Times, memory, power and shares of a plan that can run."""
    out["iter_s"] = total
    out["compute_s"] = compute
    out["memory_bytes"] = peak_bytes(setting, plan, n_micro, dense, experts)
    out["state_bytes"] = 14.0 * setting["params_all"]
    bubble = bubble_share(plan["pp"], n_micro, plan["virtual_stages"])
    out["bubble_share"] = bubble
    out["straggler_share"] = straggler_share(plan["pp"], n_micro, plan["virtual_stages"])
    out["power_compute_w"] = busy_w(setting["idle_w"], setting["limit_w"], setting["gemm_w_share"], bubble)
    out["power_comm_w"] = communication_w(setting["idle_w"], setting["limit_w"])
    out["mfu"] = setting["global_batch"] * setting["useful_flops"] / (total * setting["n_gpus"] * setting["peak_flops"])
    if out["memory_bytes"] > setting["memory_bytes"]:
        out["reason"] = Reason.MEMORY.value


@kernel
def estimate_rows(setting: Any, plans: Any, out: Any) -> None:
    """One estimate per plan, all of one setting. plans: [N] PLAN_ROW, out: [N] ESTIMATE_ROW."""
    for i in range(len(plans)):
        estimate_row(setting, plans[i], out[i])


@kernel
def price_runs(models: Any, devices: Any, stacks: Any, shapes: Any, plans: Any, settings: Any, out: Any) -> None:
    """Prepare and price one row each, [N] rows. shapes: [N, 2] sequence length and global batch; settings: [N] work
    space."""
    for i in range(len(plans)):
        prepare(models[i], devices[i], stacks[i], shapes[i, 0], shapes[i, 1], settings[i])
        price_row(settings[i], plans[i], out[i])

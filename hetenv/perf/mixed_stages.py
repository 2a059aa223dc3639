"""A pipeline whose first stages run on one kind of device and the rest on another: exact layer split, price of the
step."""

from typing import Any

from hetenv.jit import kernel
from hetenv.perf.comm import gradient_s, tensor_s, transfer_s
from hetenv.perf.memory import CONTEXT_BYTES, FRAGMENTATION, layer_activation_bytes, state_bytes_per_param
from hetenv.perf.pipeline import straggler_share
from hetenv.perf.power import busy_w, communication_w
from hetenv.perf.rows import LinkLevel, Reason, Recompute
from hetenv.perf.step import _clear, layer_s


@kernel
def stage_bytes(setting: Any, plan: Any, n_layers: int, in_flight: int, ends: float, head: bool) -> float:
    """Memory of one GPU of a stage of `n_layers` that holds `in_flight` micro-batches and `ends` extra parameters."""
    tokens = plan["micro_batch"] * setting["seq_len"]
    params = (n_layers * setting["params_layer"] + ends) / plan["tp"]
    states = params * state_bytes_per_param(plan["zero"], plan["dp"])
    sp = plan["seq_parallel"] != 0
    stored = layer_activation_bytes(setting, tokens, plan["tp"], sp, plan["recompute"]) * n_layers * in_flight
    if plan["recompute"] == Recompute.FULL:
        stored += layer_activation_bytes(setting, tokens, plan["tp"], sp, Recompute.SELECTIVE.value)
    if head:
        stored += tokens * setting["act_token_head"] / plan["tp"]
    return states + CONTEXT_BYTES + FRAGMENTATION * stored


@kernel
def _split_memory(a: Any, b: Any, plan: Any, n_a: int, pp_a: int, pp_b: int, n_micro: int) -> tuple[float, float]:
    """Memory of the fullest GPU of each kind when the first kind holds `n_a` layers."""
    most_a = -(-n_a // pp_a)
    most_b = -(-(int(b["layers"]) - n_a) // pp_b)
    need_a = stage_bytes(a, plan, most_a, min(n_micro, pp_a + pp_b), a["params_first"], False)
    need_b = stage_bytes(b, plan, most_b, min(n_micro, pp_b), 0.0, False)
    return need_a, max(need_b, stage_bytes(b, plan, most_b, 1, b["params_last"], True))


@kernel
def _illegal(a: Any, b: Any, plan: Any, pp: int) -> int:
    """Reason code of the common part of the plan."""
    if a["precision_ok"] == 0 or b["precision_ok"] == 0:
        return Reason.PRECISION.value
    if a["is_convolution"] > 0 or a["n_experts"] > 0:
        return Reason.KIND.value
    if pp > a["layers"]:
        return Reason.LAYERS.value
    if int(a["heads"]) % plan["tp"] != 0:
        return Reason.HEADS.value
    if int(a["global_batch"]) % (plan["dp"] * plan["micro_batch"]) != 0:
        return Reason.BATCH.value
    return Reason.OK.value


@kernel
def _fill(setting: Any, plan: Any, n_micro: int, pp: int, total: float, busy: float, own: float, out: Any) -> None:
    """Shares and powers of one kind; `own` is its mean busy time per GPU."""
    out["iter_s"] = total
    idle_share = 1.0 - own / busy
    out["bubble_share"] = idle_share
    out["straggler_share"] = straggler_share(pp, n_micro, 1)
    out["power_compute_w"] = busy_w(setting["idle_w"], setting["limit_w"], setting["gemm_w_share"], idle_share)
    out["power_comm_w"] = communication_w(setting["idle_w"], setting["limit_w"])
    out["state_bytes"] = 14.0 * setting["params_all"]


@kernel
def best_split(
    a: Any, b: Any, plan: Any, pp_a: int, pp_b: int, layer_a: float, layer_b: float, head_b: float, n_micro: int
) -> int:
    """Layers of the first kind that give the shortest makespan within both memories; the least overfull where none
    fits."""
    n_layers = int(a["layers"])
    best, best_s, best_over = pp_a, 1e300, 1e300
    for n_a in range(pp_a, n_layers - pp_b + 1):
        n_b = n_layers - n_a
        slow = max(-(-n_a // pp_a) * layer_a, max(-(-n_b // pp_b) * layer_b, n_b / pp_b * layer_b + head_b))
        seconds = n_a * layer_a + n_b * layer_b + head_b + (n_micro - 1) * slow
        need_a, need_b = _split_memory(a, b, plan, n_a, pp_a, pp_b, n_micro)
        over = max(0.0, need_a - a["memory_bytes"]) + max(0.0, need_b - b["memory_bytes"])
        if over < best_over or (over == best_over and seconds < best_s):
            best, best_s, best_over = n_a, seconds, over
    return best


@kernel
def price_stages(a: Any, b: Any, plan: Any, pp_a: int, pp_b: int, out_a: Any, out_b: Any) -> int:
    """Fill one ESTIMATE_ROW per kind (`a` holds the first stages); returns the layers of `a`.

    Both rows carry the job's times; memory and powers are each kind's own.
    """
    pp = pp_a + pp_b
    reason = _illegal(a, b, plan, pp)
    _clear(out_a, reason)
    _clear(out_b, reason)
    if reason != 0:
        return 0
    n_micro = int(a["global_batch"]) // (plan["dp"] * plan["micro_batch"])
    tokens = plan["micro_batch"] * a["seq_len"]
    n_reductions = 6.0 if plan["recompute"] == Recompute.FULL else 4.0
    layer_a, _ = layer_s(a, plan, tokens)
    layer_b, back_b = layer_s(b, plan, tokens)
    layer_a += tensor_s(a, plan["tp"], tokens, n_reductions)[2]
    layer_b += tensor_s(b, plan["tp"], tokens, n_reductions)[2]
    head_b = tokens * b["head_token_s"] / plan["tp"]
    n_a = best_split(a, b, plan, pp_a, pp_b, layer_a, layer_b, head_b, n_micro)
    n_b = int(a["layers"]) - n_a
    slow_a = -(-n_a // pp_a) * layer_a
    slow_b = max(-(-n_b // pp_b) * layer_b, n_b / pp_b * layer_b + head_b)
    busy = n_a * layer_a + n_b * layer_b + head_b + (n_micro - 1) * max(slow_a, slow_b)
    busy += max(a["fixed_s"], b["fixed_s"])
    _times(a, b, plan, n_a, pp_a, pp_b, n_micro, tokens, slow_a > slow_b, back_b, busy, out_a)
    total = busy
    for level in range(3):
        total += max(0.0, out_a["comm_s"][level] - out_a["hideable_s"][level])
        out_b["comm_s"][level] = out_a["comm_s"][level]
        out_b["hideable_s"][level] = out_a["hideable_s"][level]
    out_a["compute_s"] = busy
    out_b["compute_s"] = busy
    if not total < 1e300:
        _clear(out_a, Reason.LINK.value)
        _clear(out_b, Reason.LINK.value)
        return n_a
    need_a, need_b = _split_memory(a, b, plan, n_a, pp_a, pp_b, n_micro)
    _fill(a, plan, n_micro, pp, total, busy, n_micro * n_a * layer_a / pp_a, out_a)
    _fill(b, plan, n_micro, pp, total, busy, n_micro * (n_b * layer_b + head_b) / pp_b, out_b)
    useful = a["global_batch"] * a["useful_flops"] / total
    share_a = n_a / a["layers"]
    out_a["mfu"] = useful * share_a / (plan["dp"] * plan["tp"] * pp_a * a["peak_flops"])
    out_b["mfu"] = useful * (1.0 - share_a) / (plan["dp"] * plan["tp"] * pp_b * b["peak_flops"])
    out_a["memory_bytes"] = need_a
    out_b["memory_bytes"] = need_b
    if need_a > a["memory_bytes"]:
        out_a["reason"] = Reason.MEMORY.value
    if need_b > b["memory_bytes"]:
        out_b["reason"] = Reason.MEMORY.value
    return n_a


@kernel
def _times(
    a: Any,
    b: Any,
    plan: Any,
    n_a: int,
    pp_a: int,
    pp_b: int,
    n_micro: int,
    tokens: float,
    a_slower: bool,
    back_b: float,
    busy: float,
    out: Any,
) -> None:
    """Communication of the step into `out`: tensor parallel on the slower kind, borders, gradients at the slower
    stage."""
    n_b = int(a["layers"]) - n_a
    n_reductions = 6.0 if plan["recompute"] == Recompute.FULL else 4.0
    near_a, far_a, _ = tensor_s(a, plan["tp"], tokens, n_reductions)
    near_b, far_b, _ = tensor_s(b, plan["tp"], tokens, n_reductions)
    many_a = n_a + (n_micro - 1) * -(-n_a // pp_a) * (1 if a_slower else 0)
    many_b = n_b + (n_micro - 1) * -(-n_b // pp_b) * (0 if a_slower else 1)
    out["comm_s"][LinkLevel.INTRA] = near_a * many_a + near_b * many_b
    out["comm_s"][LinkLevel.INTER] = far_a * many_a + far_b * many_b
    share = min(a["inter_bytes_per_s"] / a["gpus_per_node"], b["inter_bytes_per_s"] / b["gpus_per_node"])
    sent = 2.0 * n_micro * a["tensor_token_bytes"] * tokens / plan["tp"] * max(a["p2p_exposed"], b["p2p_exposed"])
    out["comm_s"][LinkLevel.INTER] += transfer_s(sent, share)
    if plan["dp"] <= 1:
        return
    stage_a = (-(-n_a // pp_a) * a["params_layer"] + a["params_first"]) / plan["tp"] * a["gradient_bytes"]
    stage_b = (-(-n_b // pp_b) * b["params_layer"] + b["params_last"]) / plan["tp"] * b["gradient_bytes"]
    intra_a, inter_a = gradient_s(a, plan["dp"], plan["tp"], stage_a)
    intra_b, inter_b = gradient_s(b, plan["dp"], plan["tp"], stage_b)
    out["comm_s"][LinkLevel.INTRA] += a["dp_exposed"] * max(intra_a, intra_b)
    gradients = a["dp_exposed"] * max(inter_a, inter_b)
    out["comm_s"][LinkLevel.INTER] += gradients
    out["hideable_s"][LinkLevel.INTER] = min(gradients, b["dp_hidden"] * back_b * -(-n_b // pp_b))

"""Which plans can be built at all: the first rule that a plan breaks, as a Reason code. Memory is checked with the
estimate."""

from typing import Any

from hetenv.jit import kernel
from hetenv.perf.rows import Reason, Schedule


@kernel
def _shape_reason(setting: Any, plan: Any) -> int:
    """Rules on devices, heads, experts and layers."""
    dp, tp, pp, cp, ep = plan["dp"], plan["tp"], plan["pp"], plan["cp"], plan["ep"]
    if dp < 1 or tp < 1 or pp < 1 or cp < 1 or ep < 1 or dp * tp * pp * cp != setting["n_gpus"]:
        return Reason.DEVICES.value
    if setting["is_convolution"] > 0:
        return Reason.KIND.value if tp * pp * cp * ep > 1 else Reason.OK.value
    if pp * plan["virtual_stages"] > setting["layers"]:
        return Reason.LAYERS.value
    if tp > 1:
        kv_heads = int(setting["kv_heads"])
        if int(setting["heads"]) % tp != 0 or (kv_heads % tp != 0 and tp % kv_heads != 0):
            return Reason.HEADS.value
    if cp > 1 and int(setting["seq_len"]) % cp != 0:
        return Reason.SEQUENCE.value
    if ep > 1:
        n_experts = int(setting["n_experts"])
        if n_experts == 0 or n_experts % ep != 0 or (dp * cp * tp) % ep != 0:
            return Reason.EXPERTS.value
    return Reason.OK.value


@kernel
def plan_reason(setting: Any, plan: Any) -> int:
    """Reason code of a plan, without memory and links (CASES P29). setting: SETTING_ROW; plan: PLAN_ROW."""
    if setting["precision_ok"] == 0:
        return Reason.PRECISION.value
    reason = _shape_reason(setting, plan)
    if reason != 0:
        return reason
    share = plan["dp"] * plan["micro_batch"]
    batch = int(setting["global_batch"])
    if share < 1 or batch % share != 0:
        return Reason.BATCH.value
    if plan["virtual_stages"] > 1:
        if plan["schedule"] != Schedule.INTERLEAVED or plan["pp"] < 2:
            return Reason.SCHEDULE.value
        if (batch // share) % plan["pp"] != 0:
            return Reason.SCHEDULE.value
    elif plan["schedule"] == Schedule.INTERLEAVED:
        return Reason.SCHEDULE.value
    if plan["zero"] >= 2 and plan["pp"] > 1:
        return Reason.ZERO.value
    return Reason.OK.value

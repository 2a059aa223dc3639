"""Row layouts that the performance model's kernels read and write, and the codes in them. No formulas here.

MODEL_ROW, DEVICE_ROW and STACK_ROW hold facts; SETTING_ROW holds what one training on one kind of device costs per
token, so that a plan is priced by a few dozen multiplications; PLAN_ROW is the question and ESTIMATE_ROW the answer.
"""

from enum import IntEnum
from typing import Final

import numpy as np


class Precision(IntEnum):
    """Number format of the layer GEMMs. Everything else runs at 16 bit, or at 32 bit for FP32 and TF32."""

    FP32 = 0
    TF32 = 1
    FP16 = 2
    BF16 = 3
    FP8 = 4
    MXFP8 = 5
    NVFP4 = 6


class LinkLevel(IntEnum):
    """Where communication runs: inside a node, between nodes, between sites."""

    INTRA = 0
    INTER = 1
    WAN = 2


class Recompute(IntEnum):
    """What is computed again in the backward pass."""

    NONE = 0
    SELECTIVE = 1
    FULL = 2


class Schedule(IntEnum):
    """Order of micro-batches in a pipeline."""

    ONE_F_ONE_B = 0
    GPIPE = 1
    INTERLEAVED = 2
    ASYNC_1F1B = 3


class Reason(IntEnum):
    """Why a plan is not legal; OK where it is."""

    OK = 0
    DEVICES = 1
    LAYERS = 2
    HEADS = 3
    BATCH = 4
    EXPERTS = 5
    SEQUENCE = 6
    SCHEDULE = 7
    ZERO = 8
    PRECISION = 9
    LINK = 10
    KIND = 11
    MEMORY = 12


REASON_TEXT: Final = {
    Reason.OK: "",
    Reason.DEVICES: "dp*tp*pp*cp is not the number of GPUs",
    Reason.LAYERS: "pp (times virtual stages) exceeds the number of layers",
    Reason.HEADS: "tp does not divide the attention heads (or neither divides the other for kv heads)",
    Reason.BATCH: "dp*micro_batch does not divide the global batch",
    Reason.EXPERTS: "ep does not divide the experts, or not dp*cp*tp",
    Reason.SEQUENCE: "cp*tp does not divide the sequence",
    Reason.SCHEDULE: "the schedule does not fit pp, virtual stages or the number of micro-batches",
    Reason.ZERO: "ZeRO 2 and 3 do not combine with a pipeline",
    Reason.PRECISION: "the accelerator does not support the precision",
    Reason.LINK: "a link that the plan needs has no bandwidth",
    Reason.KIND: "a convolution network runs data-parallel only",
    Reason.MEMORY: "does not fit in the GPU's memory",
}


def _floats(names: str) -> np.dtype[np.void]:
    return np.dtype([(name, np.float64) for name in names.split()], align=True)


def _ints(names: str) -> np.dtype[np.void]:
    return np.dtype([(name, np.int64) for name in names.split()], align=True)


MODEL_ROW: Final = _floats(
    "is_convolution layers hidden heads kv_heads head_dim ffn_hidden ffn_factor vocab causal dropout "
    "n_experts topk n_dense_layers dense_ffn_hidden shared_ffn_hidden expert_hidden head_share "
    "attention_params embedding_params head_params shared_layer_params expert_params dense_layer_params n_params n_active_params "
    "train_flops train_bytes"
)
"""ffn_factor: weight matrices of the FFN (3 gated, 2 plain). dropout: 1 where masks are kept. train_*: per image."""

DEVICE_ROW: Final = _floats(
    "peak_flops peak16_flops element_bytes is_narrow efficiency efficiency16 convolution memory_bytes memory_bytes_per_s "
    "n_gpus gpus_per_node n_sites intra_bytes_per_s inter_bytes_per_s wan_bytes_per_s "
    "intra_nominal_bytes_per_s inter_nominal_bytes_per_s "
    "intra_latency_s inter_latency_s wan_latency_s idle_w limit_w clock launch_factor"
)
"""convolution: fitted factor on convolutions. efficiency: achievable share x fitted factors, of peak_flops. is_narrow:
1 for 8 bits and fewer. inter: all NICs of a node. nominal: what the links are sold for, whatever they give now. clock:
speed of the arithmetic under a power cap, 1 without. limit_w: power cap or TDP."""

STACK_ROW: Final = _floats(
    "gemm_efficiency operand_passes elementwise_passes attention_rate bmm_rate score_passes launch_s "
    "intra_rate inter_rate tp_exposed tp_latency_s dp_exposed dp_hidden p2p_exposed sharded_hidden "
    "sharded_slowdown straggler full_recompute "
    "selective_recompute head_passes cast_passes expert_fixed_tokens expert_gemm_rate expert_launch "
    "expert_permute_passes expert_link_rate expert_inter_rate expert_interleaved "
    "optimizer_passes fixed_s convolution_efficiency input_samples_per_s is_flash skips_masked launch_blocks"
)
"""One row of the catalog's stacks; see hetenv.catalog.entries.Stack."""

SETTING_ROW: Final = _floats(
    "is_convolution layers heads kv_heads n_experts topk seq_len global_batch n_gpus gpus_per_node n_sites extra_dp "
    "token_s operand_token_s shared_operand_token_s weight_s expert_token_s expert_weight_s permute_token_s "
    "cast_token_s elementwise_token_s attention_token_s attention_backward launch_s launch_blocks head_token_s image_s "
    "tensor_token_bytes expert_token_bytes params_layer params_experts params_first params_last params_all "
    "element_bytes gradient_bytes optimizer_param_s fixed_s "
    "full_recompute selective_recompute drops_scores straggler_factor sharded_hidden sharded_slowdown dp_hidden dp_exposed "
    "tp_exposed tp_latency_s p2p_exposed expert_link_rate expert_inter_rate expert_interleaved expert_fixed_tokens "
    "intra_bytes_per_s inter_bytes_per_s wan_bytes_per_s intra_latency_s inter_latency_s wan_latency_s "
    "intra_s_per_byte node_s_per_byte nic_s_per_byte intra_nominal_s_per_byte nic_nominal_s_per_byte "
    "memory_bytes act_token_whole act_token_split act_token_scores act_selective act_token_full act_token_head "
    "useful_flops peak_flops idle_w limit_w gemm_w_share precision_ok"
)
"""extra_dp: replicas of the job on other kinds of devices. Seconds and bytes per token and layer at tp = 1; params_*
are counts; act_* are bytes per token and layer."""

PLAN_ROW: Final = _ints("dp tp pp cp ep micro_batch virtual_stages zero recompute seq_parallel schedule")

ESTIMATE_ROW: Final = np.dtype(
    [
        ("iter_s", np.float64),
        ("compute_s", np.float64),
        ("comm_s", np.float64, (3,)),
        ("hideable_s", np.float64, (3,)),
        ("memory_bytes", np.float64),
        ("state_bytes", np.float64),
        ("power_compute_w", np.float64),
        ("power_comm_w", np.float64),
        ("straggler_share", np.float64),
        ("bubble_share", np.float64),
        ("mfu", np.float64),
        ("reason", np.int64),
    ],
    align=True,
)
"""reason: a Reason code. A plan illegal for another cause than MEMORY has iter_s inf and the rest 0."""

"""The constants that are fitted, on three levels, and the priors on each. A parameter is one constant under one label.

Labels of a run: global; precision:ARCHITECTURE/CLASS and accelerator:NAME and memory:ARCHITECTURE (hardware);
family:F, flag:X and stack:S (software). A run's constants are the start values times exp(sum of the parameters of its
labels). Prior: normal in the log, mean 0.
"""

from dataclasses import dataclass
from typing import Final

COLUMNS: Final[dict[str, tuple[tuple[str, float], ...]]] = {
    "gemm": (("gemm_efficiency", 1.0),),
    "attention": (("attention_rate", -1.0), ("bmm_rate", -1.0), ("score_passes", 1.0)),
    "elementwise": (("elementwise_passes", 1.0),),
    "launch": (("launch_s", 1.0),),
    "tp": (("tp_exposed", 1.0),),
    "dp": (("dp_exposed", 1.0),),
    "p2p": (("p2p_exposed", 1.0),),
    "straggler": (("straggler", 1.0),),
    "recompute": (("full_recompute", 1.0), ("selective_recompute", 1.0)),
    "permute": (("expert_permute_passes", 1.0),),
    "expert_link": (("expert_link_rate", 1.0),),
    "expert_inter": (("expert_inter_rate", 1.0),),
    "expert_interleaved": (("expert_interleaved", 1.0),),
    "expert_fixed": (("expert_fixed_tokens", 1.0),),
    "expert_gemm": (("expert_gemm_rate", 1.0),),
    "expert_launch": (("expert_launch", 1.0),),
    "operand": (("operand_passes", 1.0),),
    "flash": (("attention_rate", 1.0),),
    "bmm": (("bmm_rate", 1.0),),
    "scores": (("score_passes", 1.0),),
    "intra": (("intra_rate", 1.0),),
    "inter": (("inter_rate", 1.0),),
    "head": (("head_passes", 1.0),),
    "cast": (("cast_passes", 1.0),),
    "optimizer": (("optimizer_passes", 1.0),),
    "tp_latency": (("tp_latency_s", 1.0),),
    "convolution": (("convolution_efficiency", 1.0),),
    "fixed": (("fixed_s", 1.0),),
}
"""Columns of STACK_ROW that a constant multiplies, with the power it enters by. Hardware labels act on DEVICE_ROW
instead."""

SIGMA: Final[dict[str, dict[str, float]]] = {
    "global": {
        "gemm": 0.1,
        "operand": 0.07,
        "elementwise": 0.105,
        "flash": 0.14,
        "bmm": 0.14,
        "scores": 0.21,
        "launch": 0.105,
        "tp": 0.21,
        "tp_latency": 0.35,
        "dp": 0.21,
        "p2p": 0.21,
        "straggler": 0.35,
        "recompute": 0.07,
        "inter": 0.07,
        "intra": 0.07,
        "head": 0.105,
        "cast": 0.35,
        "permute": 0.35,
        "expert_link": 0.35,
        "expert_inter": 0.35,
        "expert_fixed": 0.35,
        "expert_gemm": 0.21,
        "expert_launch": 0.28,
        "optimizer": 0.14,
        "convolution": 0.21,
    },
    "family": {"gemm": 0.08, "attention": 0.15, "elementwise": 0.15, "launch": 0.25, "tp": 0.2, "dp": 0.3, "p2p": 0.5},
    "stack": {
        "gemm": 0.05,
        "attention": 1.5,
        "elementwise": 1,
        "launch": 1.2,
        "tp": 2.2,
        "dp": 2.2,
        "p2p": 1.8,
        "straggler": 2.2,
        "recompute": 0.3,
        "permute": 1.0,
        "expert_link": 1.0,
        "expert_inter": 1.0,
        "expert_fixed": 0.5,
        "expert_gemm": 0.2,
        "expert_launch": 0.5,
        "convolution": 0.4,
        "head": 0.3,
        "fixed": 1.0,
    },
    "precision": {"peak": 0.04},
    "accelerator": {"peak": 0.04},
    "memory": {"hbm": 0.08},
    "conv": {"conv": 0.7},
}
"""Standard deviation of the log of each constant, by level. Wide ones at the stack keep its habits out of the
globals."""

CALIBRATION_SIGMA: Final[dict[str, float]] = {
    "gemm": 0.15,
    "peak": 0.1,
    "conv": 0.2,
    "convolution": 0.25,
    "elementwise": 0.4,
    "attention": 0.5,
    "dp": 0.7,
    "tp": 0.7,
    "launch": 0.7,
    "p2p": 0.7,
    "straggler": 0.7,
    "permute": 0.6,
    "expert_link": 0.6,
    "expert_inter": 0.6,
    "expert_fixed": 0.3,
}
"""What replaces the stack's and hardware's sigmas when one source is calibrated: there they spread as unseen sources do."""

FLAG_PARAMETERS: Final[dict[str, tuple[str, float, float]]] = {
    "tp_overlap": ("tp", -0.45, 0.3),
    "dp_overlap": ("dp", 0.0, 0.3),
    "compiled": ("elementwise", 0.0, 0.3),
    "sdpa": ("attention", 0.6, 0.2),
    "blocking": ("launch", 0.0, 0.5),
    "fused_permute": ("permute", -1.3, 0.5),
    "ep_overlap": ("expert_interleaved", -1.2, 0.5),
    "graphed": ("launch", -0.7, 0.5),
    "unfused": ("elementwise", 0.6, 0.3),
}
"""flag: (constant, prior mean of the log, sigma). sdpa: FlashAttention-2 reaches 35 % of an H100's peak where its successor
reaches 65-75 % (arXiv 2407.08608); unfused: fused element-wise kernels gained 11-19 % (Narayanan et al. 2021, section 5.8)."""

CONVOLUTION_MEANS: Final[dict[str, float]] = {"fp32": 0.5, "tf32": -0.75, "16bit": 0.0}
"""Prior mean of the log convolution rate by precision class, relative to the share of the 16-bit peak (set on ResNet-50 rows)."""


POWER_LIMITED: Final = ("B200-SXM-180", "B300-SXM-288", "GB200-186", "GB300-288", "H100-SXM-96-500W")
POWER_LIMITED_SIGMA: Final = 0.15
"""Accelerators whose clocks under load follow their power limit more than their datasheet: a wider prior on their rate."""


@dataclass(frozen=True)
class Parameter:
    """One fitted number: the log of `constant` for all runs that carry `label`."""

    label: str
    constant: str
    mean: float
    sigma: float


def parameters_for(labels: set[str]) -> list[Parameter]:
    """All parameters that runs with these labels can speak to, in a fixed order."""
    found: list[Parameter] = []
    for label in sorted(labels):
        level, _, name = label.partition(":")
        if level == "flag":
            constant, mean, sigma = FLAG_PARAMETERS[name]
            found.append(Parameter(label, constant, mean, sigma))
            continue
        mean = CONVOLUTION_MEANS.get(name.rpartition("/")[2], 0.0) if level == "conv" else 0.0
        wide = level == "accelerator" and name in POWER_LIMITED
        found += [
            Parameter(label, constant, mean, POWER_LIMITED_SIGMA if wide else sigma)
            for constant, sigma in SIGMA[level].items()
        ]
    return found

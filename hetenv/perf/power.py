"""Average power of a GPU while it computes and while it waits for communication; speed under a power cap.

P = idle + (limit - idle) * share. Shares: compute-bound LLM phases draw 0.85-0.95 of TDP, memory-bound 0.6-0.75,
exposed communication 0.2-0.35 (MODEL.md 8; read from published traces, not fitted: uncertainty about +-10 % of TDP).
"""

from typing import Final

from hetenv.jit import kernel

COMPUTE_SHARE: Final = 0.92
MEMORY_SHARE: Final = 0.62
COMM_SHARE: Final = 0.28
CAP_EXPONENT: Final = 0.5
"""Speed ~ (dynamic power)^0.5: voltage rises less than frequency near the top of the curve (DVFS theory at constant
slope: the cube root). A 500 W H100 measures 0.84 of a 700 W one, which is the power 0.48."""


@kernel
def busy_w(idle_w: float, limit_w: float, gemm_share: float, bubble: float) -> float:
    """While computing: `gemm_share` of the busy time in GEMMs, the rest bound by memory; `bubble` of the time idle."""
    share = MEMORY_SHARE + (COMPUTE_SHARE - MEMORY_SHARE) * gemm_share
    return idle_w + (limit_w - idle_w) * share * (1.0 - bubble)


@kernel
def communication_w(idle_w: float, limit_w: float) -> float:
    """While exposed communication runs."""
    return idle_w + (limit_w - idle_w) * COMM_SHARE


@kernel
def capped_clock(idle_w: float, tdp_w: float, cap_w: float) -> float:
    """Speed of the arithmetic under a cap, relative to none; in (0, 1], 0 for a cap at or below idle power."""
    if cap_w >= tdp_w * COMPUTE_SHARE:
        return 1.0
    dynamic = (cap_w - idle_w) / (tdp_w * COMPUTE_SHARE - idle_w)
    return dynamic**CAP_EXPONENT if dynamic > 0.0 else 0.0

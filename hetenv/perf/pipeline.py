"""Makespan of a synchronous pipeline of near-equal stages, in closed form. Unequal stages: `recurrence`."""

from hetenv.jit import kernel


@kernel
def bubble_share(stages: int, n_micro: int, virtual_stages: int = 1) -> float:
    """Idle share of the total time of a flushing pipeline: (p-1)/(v*m + p-1) (Narayanan et al. 2021). p 4, m 8:
    0.2727."""
    if stages <= 1:
        return 0.0
    return (stages - 1.0) / (virtual_stages * n_micro + stages - 1.0)


@kernel
def makespan_s(n_micro: int, stages: int, virtual_stages: int, slowest_s: float, total_s: float) -> float:
    """m*max + (sum - sum/p)/v: one stage is busy with all micro-batches, the rest fills and drains once.

    slowest_s: forward + backward of one micro-batch on the slowest stage; total_s: of all stages.
    """
    return n_micro * slowest_s + (total_s - total_s / stages) / virtual_stages


@kernel
def straggler_share(stages: int, n_micro: int, virtual_stages: int) -> float:
    """Share of the step's compute that one slow member delays: m of the (m + (p-1)/v) slots of a pipeline, all without
    one."""
    return n_micro / (n_micro + (stages - 1.0) / virtual_stages)

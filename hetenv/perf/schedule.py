"""Pipelines of unequal stages, exactly: start and end of every forward and backward block by recurrence over a fixed
order.

Schedules: GPipe (all forwards, then all backwards), 1F1B with flush (PipeDream-flush, Megatron), asynchronous 1F1B (no
flush: the steady state repeats; PipeDream, SOSP 2019) and nF1B (TiMePReSt 2025). Interleaved schedules: closed form in
`pipeline`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetenv.jit import kernel
from hetenv.perf.rows import Schedule


@kernel
def fill_order(schedule: int, stage: int, stages: int, n_micro: int, order: Any) -> None:
    """order: [2m] of one stage; k >= 0 is the forward of micro-batch k, -k-1 its backward."""
    if schedule == Schedule.GPIPE:
        warm = n_micro
    else:
        warm = min(stages - stage - 1, n_micro)
    n = 0
    for k in range(warm):
        order[n] = k
        n += 1
    for k in range(warm, n_micro):
        order[n] = k
        order[n + 1] = -(k - warm) - 1
        n += 2
    for k in range(n_micro - warm, n_micro):
        order[n] = -k - 1
        n += 1


@kernel
def place_blocks(
    forward_s: Any,
    backward_s: Any,
    link_s: Any,
    n_micro: int,
    schedule: int,
    orders: Any,
    at: Any,
    free: Any,
    begin: Any,
    end: Any,
) -> float:
    """Fill begin/end [p, 2, m] (forward 0, backward 1), s; returns the makespan.

    forward_s, backward_s: [p] seconds of one micro-batch on each stage; link_s: [p] seconds of the border after each
    stage, paid once each way by the receiving stage's wait. orders [p, 2m], at [p], free [p]: work space, the last two
    zero.
    """
    stages = len(forward_s)
    for stage in range(stages):
        fill_order(schedule, stage, stages, n_micro, orders[stage])
        for k in range(n_micro):
            end[stage, 0, k] = -1.0
            end[stage, 1, k] = -1.0
    left = stages * 2 * n_micro
    while left > 0:
        for stage in range(stages):
            while at[stage] < 2 * n_micro:
                item = orders[stage, at[stage]]
                way = 0 if item >= 0 else 1
                k = item if item >= 0 else -item - 1
                ready = 0.0
                if way == 0 and stage > 0:
                    if end[stage - 1, 0, k] < 0.0:
                        break
                    ready = end[stage - 1, 0, k] + link_s[stage - 1]
                elif way == 1 and stage < stages - 1:
                    if end[stage + 1, 1, k] < 0.0:
                        break
                    ready = end[stage + 1, 1, k] + link_s[stage]
                begin[stage, way, k] = max(free[stage], ready)
                end[stage, way, k] = begin[stage, way, k] + (forward_s[stage] if way == 0 else backward_s[stage])
                free[stage] = end[stage, way, k]
                at[stage] += 1
                left -= 1
    longest = 0.0
    for stage in range(stages):
        longest = max(longest, free[stage])
    return longest


def blocks(
    forward_s: NDArray[np.float64],
    backward_s: NDArray[np.float64],
    link_s: NDArray[np.float64],
    n_micro: int,
    schedule: Schedule = Schedule.ONE_F_ONE_B,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """(makespan, begin, end): [p, 2, m] of every block, s."""
    shape = (len(forward_s), 2, n_micro)
    begin, end = np.zeros(shape), np.zeros(shape)
    if schedule == Schedule.ASYNC_1F1B:
        schedule = Schedule.ONE_F_ONE_B
    stages = len(forward_s)
    orders, at, free = np.zeros((stages, 2 * n_micro), np.int64), np.zeros(stages, np.int64), np.zeros(stages)
    total = place_blocks(forward_s, backward_s, link_s, n_micro, int(schedule), orders, at, free, begin, end)
    return float(total), begin, end


def makespan_s(
    forward_s: NDArray[np.float64],
    backward_s: NDArray[np.float64],
    link_s: NDArray[np.float64],
    n_micro: int,
    schedule: Schedule = Schedule.ONE_F_ONE_B,
) -> float:
    """Seconds from the first forward to the last backward; asynchronous: m rounds of the slowest stage or border, no
    flush."""
    if schedule == Schedule.ASYNC_1F1B:
        return float(n_micro * max(np.max(forward_s + backward_s), 2.0 * np.max(link_s, initial=0.0)))
    return blocks(forward_s, backward_s, link_s, n_micro, schedule)[0]


def weight_versions(schedule: str, stage: int, stages: int) -> int:
    """Copies of the weights that a stage keeps: pipedream p - s (SOSP 2019), 2bw 2, nf1b and flushing schedules 1."""
    return {"pipedream": stages - stage, "2bw": min(2, stages), "nf1b": 1, "flush": 1}[schedule]


def version_difference(workers: int, forwards: int) -> int:
    """How many updates a micro-batch's backward is behind its forward under nF1B: floor((W+N-2)/N) (TiMePReSt,
    2025)."""
    return (workers + forwards - 2) // forwards


def slow_member_share(
    forward_s: NDArray[np.float64],
    backward_s: NDArray[np.float64],
    link_s: NDArray[np.float64],
    n_micro: int,
    stage: int,
) -> float:
    """Share of the makespan that slowing one stage stretches: d(makespan)/makespan per d(stage time)/stage time."""
    slow = np.ones(len(forward_s))
    slow[stage] = 1.01
    before = makespan_s(forward_s, backward_s, link_s, n_micro)
    return (makespan_s(forward_s * slow, backward_s * slow, link_s, n_micro) / before - 1.0) / 0.01

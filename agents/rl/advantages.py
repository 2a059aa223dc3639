"""Generalised advantage estimation (Schulman et al. 2016, eq. 16) with discount and trace decay by simulated time."""

import numpy as np
from numpy.typing import NDArray


def advantages_by_time(
    rewards: NDArray[np.float32],
    values: NDArray[np.float32],
    ends: NDArray[np.float32],
    elapsed_s: NDArray[np.float64],
    tau_s: float,
    decay_s: float,
) -> NDArray[np.float32]:
    """A_t = d_t + discount_t x trace_t x A_(t+1) with d_t = r_t + discount_t x V_(t+1) - V_t.

    Args:
        rewards: [T, B] of each step.
        values: [T + 1, B] of the state before each step, and of the last one.
        ends: [T, B] 1 where the step ended its episode.
        elapsed_s: [T, B] simulated time of each step.
        tau_s: discount = exp(-elapsed / tau).
        decay_s: trace = exp(-elapsed / decay).

    Returns:
        advantages: [T, B].
    """
    discount = np.exp(-elapsed_s / tau_s) * (1.0 - ends)
    trace = discount * np.exp(-elapsed_s / decay_s)
    deltas = rewards + discount * values[1:] - values[:-1]
    advantages = np.empty(rewards.shape, np.float32)
    following = np.zeros(rewards.shape[1])
    for t in range(rewards.shape[0] - 1, -1, -1):
        following = deltas[t] + trace[t] * following
        advantages[t] = following
    return advantages

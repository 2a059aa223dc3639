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


def without_group_mean(
    advantages: NDArray[np.float32],
    elapsed_s: NDArray[np.float64],
    ends: NDArray[np.float32],
    group_size: int,
    bin_s: float,
) -> NDArray[np.float32]:
    """Advantages minus the mean advantage of the other replicas of the group in the same stretch of simulated time.

    What all replicas of a world meet alike (a burst of arrivals, a failure) says nothing about the actions of one. Replicas are common
    up to the first end of an episode; what comes after it stays as it is.

    Args:
        advantages: [T, B], of rollouts that began from one state per group of `group_size` neighbours.
        bin_s: length of a stretch.
    """
    since_s = elapsed_s.cumsum(axis=0) - elapsed_s
    bins = (since_s / bin_s).astype(np.int64)
    is_common = (ends.cumsum(axis=0) - ends) == 0
    found = advantages.copy()
    for first in range(0, advantages.shape[1], group_size):
        group = slice(first, first + group_size)
        common, replica = is_common[:, group], np.broadcast_to(np.arange(group_size), bins[:, group].shape)
        shape = (int(bins[:, group].max()) + 1, group_size)
        sums, counts = np.zeros(shape), np.zeros(shape)
        place = (bins[:, group][common], replica[common])
        np.add.at(sums, place, advantages[:, group][common])
        np.add.at(counts, place, 1.0)
        others = sums.sum(axis=1, keepdims=True) - sums
        n_others = counts.sum(axis=1, keepdims=True) - counts
        mean = others / np.maximum(n_others, 1.0)
        found[:, group][common] -= mean[place].astype(np.float32)
    return found

"""Uneven shares over unequal devices: integer micro-batches, the dead-band batch controller, tensor shards and their
gathers."""

from collections.abc import Sequence
from math import ceil

import numpy as np

from hetenv.errors import PlanError


def integer_shares(total: int, speeds: Sequence[float]) -> tuple[int, ...]:
    """Split `total` units so that the slowest member ends first: units go one by one to whoever would end soonest.

    Minimises max(n_i / speed_i) exactly; equal speeds give shares that differ by at most one.
    """
    if total < 0 or min(speeds, default=0.0) <= 0.0:
        raise PlanError(f"total={total}, speeds={tuple(speeds)}: need a total >= 0 and positive speeds")
    rate = np.asarray(speeds, float)
    shares = np.floor(total * rate / rate.sum()).astype(int)
    for _ in range(total - int(shares.sum())):
        shares[int(np.argmin((shares + 1) / rate))] += 1
    return tuple(int(share) for share in shares)


def slowest_s(shares: Sequence[int], unit_s: Sequence[float]) -> float:
    """Seconds until the last member has done its share."""
    return max(share * seconds for share, seconds in zip(shares, unit_s))


def dead_band_step(
    batches: Sequence[int], times_s: Sequence[float], dead_band: float = 0.2, low: int = 1, high: int = 1 << 30
) -> tuple[int, ...]:
    """OmniLearn (TPDS 2025): b <- ceil(b * mean(t)/t) within bounds; changes of at most `dead_band` of b are not
    made."""
    mean = sum(times_s) / len(times_s)
    found = []
    for batch, seconds in zip(batches, times_s):
        wanted = batch * mean / seconds
        moved = abs(wanted - batch) / batch > dead_band
        found.append(min(high, max(low, ceil(wanted - 1e-9))) if moved else batch)
    return tuple(found)


def shard_shares(speeds: Sequence[float]) -> tuple[float, ...]:
    """Tensor shards proportional to speed (HAP, EuroSys 2024)."""
    total = sum(speeds)
    return tuple(speed / total for speed in speeds)


def shard_compute_s(flops: float, shares: Sequence[float], speeds: Sequence[float]) -> float:
    """Seconds of a sharded operator: the slowest shard."""
    return max(share * flops / speed for share, speed in zip(shares, speeds))


def padded_gather_s(n_bytes: float, shares: Sequence[float], bytes_per_s: float = 9.46e9) -> float:
    """All-gather padded to the largest shard: n*max(share)*S (HAP: 9.46 GB/s measured)."""
    return len(shares) * max(shares) * n_bytes / bytes_per_s


def grouped_gather_s(n_bytes: float, bytes_per_s: float = 9.15e9) -> float:
    """All-gather as grouped broadcasts: S bytes at a lower rate (HAP: 9.15 GB/s measured)."""
    return n_bytes / bytes_per_s


def gather_s(n_bytes: float, shares: Sequence[float]) -> float:
    """The cheaper of the two gathers; grouped wins once n*max(share) > 1.034."""
    return min(padded_gather_s(n_bytes, shares), grouped_gather_s(n_bytes))

"""Spells: processes that are now on, now off, and the rows of nodes that are away."""

import numpy as np
from numpy.typing import NDArray

from hetenv.events.stream import Effect, rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def off_spells(
    rng: np.random.Generator, n: int, on_mean_s: float, off_mean_s: float, horizon_s: float
) -> tuple[Ints, Floats, Floats]:
    """Off spells of n independent processes with exponential on and off times, in their stationary state at time 0.

    Returns:
        owner, from, to: [R] by (from, owner); from in [0, horizon_s), to > from, perhaps beyond the horizon.
    """
    is_off = rng.random(n) < off_mean_s / (on_mean_s + off_mean_s)
    active, now_s = np.arange(n), np.zeros(n)
    found: list[tuple[Ints, Floats, Floats]] = []
    while active.size:
        lasting_s = rng.standard_exponential(active.size) * np.where(is_off, off_mean_s, on_mean_s)
        until_s = now_s + lasting_s
        found.append((active[is_off], now_s[is_off], until_s[is_off]))
        goes_on = until_s < horizon_s
        active, now_s, is_off = active[goes_on], until_s[goes_on], ~is_off[goes_on]
    owner, from_s, to_s = (np.concatenate(parts) for parts in zip(*found)) if found else (active, now_s, now_s)
    order = np.lexsort((owner, from_s))
    order = order[to_s[order] > from_s[order]]
    return owner[order], from_s[order], to_s[order]


def away(nodes: Ints, from_s: Floats, to_s: Floats, notice_s: float = 0.0) -> NDArray[np.void]:
    """NODE_DOWN rows of nodes that are away in [from_s, to_s), to_s may be inf; before them NODE_NOTICE rows.

    A notice comes `notice_s` ahead, but not before time 0 or while the node is away; value = seconds left.
    """
    down = rows(Effect.NODE_DOWN, from_s, nodes, to_s - from_s)
    if notice_s <= 0.0 or not from_s.size:
        return down
    order = np.lexsort((from_s, nodes))
    same = np.concatenate([[False], nodes[order][1:] == nodes[order][:-1]])
    back_s = np.zeros(from_s.size)
    back_s[order] = np.where(same, np.concatenate([[0.0], to_s[order][:-1]]), 0.0)
    said_s = np.maximum(from_s - notice_s, back_s)
    kept = said_s < from_s
    return np.concatenate([rows(Effect.NODE_NOTICE, said_s[kept], nodes[kept], (from_s - said_s)[kept]), down])


def members(owner: Ints, group: Ints) -> tuple[Ints, Ints]:
    """Spells of groups as spells of their members: index of the spell and of the member, spell by spell.

    Args:
        owner: [R] group of each spell.
        group: [n] group of each member.
    """
    by_group = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=int(owner.max(initial=0)) + 1)
    first = np.cumsum(sizes) - sizes
    spell = np.repeat(np.arange(owner.size), sizes[owner])
    begin = np.cumsum(sizes[owner]) - sizes[owner]
    return spell, by_group[first[owner][spell] + np.arange(spell.size) - begin[spell]]


def groups(rng: np.random.Generator, n: int, mean_size: float | None) -> Ints:
    """[n] number of the group of each of n members, from 0: random groups of mean size `mean_size` (None: one group)."""
    if mean_size is None or n <= 1:
        return np.zeros(n, np.int64)
    share = np.clip((n / mean_size - 1.0) / (n - 1.0), 0.0, 1.0)
    begins = np.concatenate([[False], rng.random(n - 1) < share])
    return np.cumsum(begins)[rng.permutation(n)]

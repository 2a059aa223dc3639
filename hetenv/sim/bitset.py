"""Sets of small integers as two-level bit sets in a row of int64 words: insert, remove, next member.

A set over n integers takes `n_words(n)` words: first one summary word per 1024 integers, then one word per 32. Only the low 32
bits of a word are used, so that no sign and no overflow is met, compiled or not.
"""

import numpy as np
from numpy.typing import NDArray

from hetenv.jit import kernel

BITS = 32


def n_words(n: int) -> int:
    """Words of a set over 0..n-1."""
    leaves = -(-n // BITS)
    return -(-leaves // BITS) + leaves


@kernel
def lowest_bit(word: int) -> int:
    """Index of the lowest set bit of a non-zero 32-bit word."""
    index = 0
    if word & 0xFFFF == 0:
        index += 16
        word >>= 16
    if word & 0xFF == 0:
        index += 8
        word >>= 8
    if word & 0xF == 0:
        index += 4
        word >>= 4
    if word & 0x3 == 0:
        index += 2
        word >>= 2
    if word & 0x1 == 0:
        index += 1
    return index


@kernel
def insert(words: NDArray[np.int64], first: int, summary: int, member: int) -> None:
    """Add `member` to the set whose words start at `first`; `summary` is its number of summary words."""
    leaf = member >> 5
    words[first + summary + leaf] |= 1 << (member & 31)
    words[first + (leaf >> 5)] |= 1 << (leaf & 31)


@kernel
def remove(words: NDArray[np.int64], first: int, summary: int, member: int) -> None:
    """Take `member` out."""
    leaf = member >> 5
    at = first + summary + leaf
    words[at] &= ~(1 << (member & 31))
    if words[at] == 0:
        words[first + (leaf >> 5)] &= ~(1 << (leaf & 31))


@kernel
def following(words: NDArray[np.int64], first: int, summary: int, member: int) -> int:
    """The smallest member >= `member`, or -1."""
    leaf = member >> 5
    at_summary = leaf >> 5
    if at_summary >= summary:
        return -1
    if words[first + at_summary] & (1 << (leaf & 31)):
        word = words[first + summary + leaf] & (-1 << (member & 31))
        if word != 0:
            return (leaf << 5) + lowest_bit(word)
    leaf += 1
    at_summary = leaf >> 5
    if at_summary >= summary:
        return -1
    word = words[first + at_summary] & (-1 << (leaf & 31))
    while word == 0:
        at_summary += 1
        if at_summary >= summary:
            return -1
        word = words[first + at_summary]
    leaf = (at_summary << 5) + lowest_bit(word)
    return (leaf << 5) + lowest_bit(words[first + summary + leaf])


@kernel
def summary_words(n: int) -> int:
    """Summary words of a set over 0..n-1."""
    leaves = (n + 31) >> 5
    return (leaves + 31) >> 5

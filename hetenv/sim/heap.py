"""Binary heaps of table rows by (until, tie). A row knows its place (`heap`), so that its key may change or it may leave."""

import numpy as np
from numpy.typing import NDArray

from hetenv.jit import kernel
from hetenv.sim.tables import NONE, Rows


@kernel
def _before(rows: Rows, i: int, j: int) -> bool:
    if rows[i]["until"] != rows[j]["until"]:
        return rows[i]["until"] < rows[j]["until"]
    return rows[i]["tie"] < rows[j]["tie"]


@kernel
def _rise(heap: NDArray[np.int32], rows: Rows, place: int) -> None:
    member = heap[place]
    while place > 0:
        parent = (place - 1) >> 1
        if not _before(rows, member, heap[parent]):
            break
        heap[place] = heap[parent]
        rows[heap[place]]["heap"] = place
        place = parent
    heap[place] = member
    rows[member]["heap"] = place


@kernel
def _sink(heap: NDArray[np.int32], rows: Rows, size: int, place: int) -> None:
    member = heap[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _before(rows, heap[child + 1], heap[child]):
            child += 1
        if not _before(rows, heap[child], member):
            break
        heap[place] = heap[child]
        rows[heap[place]]["heap"] = place
        place = child
    heap[place] = member
    rows[member]["heap"] = place


@kernel
def push(heap: NDArray[np.int32], rows: Rows, size: int, member: int) -> int:
    """Add a row; returns the new size."""
    heap[size] = member
    rows[member]["heap"] = size
    _rise(heap, rows, size)
    return size + 1


@kernel
def remove(heap: NDArray[np.int32], rows: Rows, size: int, member: int) -> int:
    """Take a row out; returns the new size."""
    place = rows[member]["heap"]
    rows[member]["heap"] = NONE
    size -= 1
    if place != size:
        heap[place] = heap[size]
        rows[heap[place]]["heap"] = place
        reorder(heap, rows, size, heap[place])
    return size


@kernel
def reorder(heap: NDArray[np.int32], rows: Rows, size: int, member: int) -> None:
    """Restore the order after the row's `until` changed."""
    place = rows[member]["heap"]
    _rise(heap, rows, place)
    _sink(heap, rows, size, rows[member]["heap"])

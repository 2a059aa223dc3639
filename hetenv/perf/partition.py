"""Exact contiguous partitions of layers over devices: with replication (PipeDream) and over device types (PipeEdge)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import PlanError
from hetenv.jit import kernel


@dataclass(frozen=True)
class Stage:
    """Layers first..last (inclusive) on `n_devices` replicas of device type `kind`."""

    first: int
    last: int
    n_devices: int
    kind: int = 0


@dataclass(frozen=True)
class Partition:
    """bottleneck_s: time per micro-batch (or minibatch) of the slowest stage or border in the steady state."""

    stages: tuple[Stage, ...]
    bottleneck_s: float


@kernel
def replicated_stage_s(compute_s: float, weight_bytes: float, n: int, bytes_per_s: float) -> float:
    """(compute + 4(m-1)W/(bandwidth*m))/m: a stage of m replicas that average W bytes of gradients (PipeDream's
    optimiser)."""
    return (compute_s + 4.0 * (n - 1.0) * weight_bytes / (bytes_per_s * n)) / n


@kernel
def _replicated(layer_s, weight_bytes, border_bytes, n_devices: int, bytes_per_s: float, best, cut, used) -> None:  # type: ignore[no-untyped-def]
    """best[j, m]: bottleneck of layers 0..j on m devices; cut, used: where its last stage begins and on how many."""
    n_layers = len(layer_s)
    for m in range(1, n_devices + 1):
        for j in range(n_layers):
            compute, weights = 0.0, 0.0
            best[j, m] = np.inf
            for i in range(j, -1, -1):
                compute += layer_s[i]
                weights += weight_bytes[i]
                if i == 0:
                    value = replicated_stage_s(compute, weights, m, bytes_per_s)
                    if value < best[j, m]:
                        best[j, m], cut[j, m], used[j, m] = value, 0, m
                    continue
                for last in range(1, m):
                    stage = replicated_stage_s(compute, weights, last, bytes_per_s)
                    value = max(best[i - 1, m - last], 2.0 * border_bytes[i - 1] / bytes_per_s, stage)
                    if value < best[j, m]:
                        best[j, m], cut[j, m], used[j, m] = value, i, last


def partition_replicated(
    layer_s: NDArray[np.float64],
    weight_bytes: NDArray[np.float64],
    border_bytes: NDArray[np.float64],
    n_devices: int,
    bytes_per_s: float,
) -> Partition:
    """PipeDream's dynamic programme over equal devices. border_bytes: [L] bytes that cross if the pipeline is cut
    after a layer."""
    n_layers = len(layer_s)
    best = np.zeros((n_layers, n_devices + 1))
    cut, used = np.zeros((n_layers, n_devices + 1), np.int64), np.zeros((n_layers, n_devices + 1), np.int64)
    _replicated(layer_s, weight_bytes, border_bytes, n_devices, bytes_per_s, best, cut, used)
    n = int(np.argmin(best[-1, 1:])) + 1
    bottleneck, stages, j, m = float(best[-1, n]), [], n_layers - 1, n
    while j >= 0:
        first, count = int(cut[j, m]), int(used[j, m])
        stages.append(Stage(first, j, count))
        j, m = first - 1, m - count
    return Partition(tuple(reversed(stages)), bottleneck)


def crossing_bytes(predecessors: Sequence[Sequence[int]], output_bytes: NDArray[np.float64]) -> NDArray[np.float64]:
    """[L] bytes that cross a cut after each layer: every output before it that a layer after it reads, once."""
    n_layers = len(output_bytes)
    last_use = np.arange(n_layers)
    for node, sources in enumerate(predecessors):
        for source in sources:
            last_use[source] = max(last_use[source], node)
    return np.array([output_bytes[: cut + 1][last_use[: cut + 1] > cut].sum() for cut in range(n_layers)])


def partition_over_types(
    layer_s: NDArray[np.float64],
    layer_bytes: NDArray[np.float64],
    border_s: NDArray[np.float64],
    counts: Sequence[int],
    memory_bytes: Sequence[float],
) -> Partition:
    """PipeEdge (DSD 2022): contiguous layers over at most `counts` devices of each type, minimal bottleneck, memory
    kept.

    layer_s: [types, L]; layer_bytes: [L]; border_s: [L] seconds of the border after each layer. Devices may stay
    unused.
    """
    n_types, n_layers = layer_s.shape
    work = np.concatenate([np.zeros((n_types, 1)), np.cumsum(layer_s, axis=1)], axis=1)
    size = np.concatenate([[0.0], np.cumsum(layer_bytes)])
    shape = tuple(count + 1 for count in counts)
    best = {(0,) * n_types: np.array([0.0] + [inf] * n_layers)}
    came: dict[tuple[tuple[int, ...], int], tuple[int, int]] = {}
    answer: tuple[float, int, tuple[int, ...]] = (inf, 0, ())
    for used in sorted(np.ndindex(*shape), key=sum):
        if sum(used) == 0:
            continue
        reach = np.full(n_layers + 1, inf)
        for kind in range(n_types):
            before = best.get(tuple(n - (k == kind) for k, n in enumerate(used))) if used[kind] else None
            if before is None:
                continue
            for start in map(int, np.flatnonzero(before[:-1] < inf)):
                border = border_s[start - 1] if start else 0.0
                fits = size[start + 1 :] - size[start] <= memory_bytes[kind]
                value = np.maximum(np.maximum(before[start], border), work[kind, start + 1 :] - work[kind, start])
                value[~fits] = inf
                better = value < reach[start + 1 :]
                for stop in map(int, np.flatnonzero(better) + start + 1):
                    reach[stop] = value[stop - start - 1]
                    came[used, stop] = (start, kind)
        best[used] = reach
        if (reach[-1], sum(used)) < answer[:2]:
            answer = (float(reach[-1]), sum(used), used)
    if not answer[2]:
        raise PlanError(f"{n_layers} layers fit on no choice of {tuple(counts)} devices; add memory or devices")
    stages: list[Stage] = []
    stop, used = n_layers, answer[2]
    while stop > 0:
        start, kind = came[used, stop]
        stages.append(Stage(start, stop - 1, 1, kind))
        used, stop = tuple(n - (k == kind) for k, n in enumerate(used)), start
    return Partition(tuple(reversed(stages)), answer[0])

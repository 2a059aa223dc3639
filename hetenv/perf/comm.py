"""Time of collectives and of a plan's communication per link level. Bandwidths in bytes/s per direction, times in s.

Ring all-reduce: 2(n-1)/n * bytes/bandwidth + 2(n-1)*latency (Thakur et al. 2005). Small messages go by trees: log2(n)
latencies.
"""

import math
from typing import Any

from hetenv.jit import kernel


@kernel
def transfer_s(n_bytes: float, bytes_per_s: float) -> float:
    """Seconds for `n_bytes`; 0 bytes cost nothing, a dead link takes for ever (inf), never NaN."""
    if n_bytes <= 0.0:
        return 0.0
    if bytes_per_s <= 0.0:
        return math.inf
    return n_bytes / bytes_per_s


@kernel
def wire_s(n_bytes: float, s_per_byte: float) -> float:
    """`transfer_s` by a link's seconds per byte, inf for a dead link; 0 bytes cost nothing."""
    return n_bytes * s_per_byte if n_bytes > 0.0 else 0.0


@kernel
def rounds(n: float) -> int:
    """ceil(log2(n)): steps of a tree over n members."""
    found = 0
    while (1 << found) < n:
        found += 1
    return found


@kernel
def ring_all_reduce_s(n_bytes: float, bytes_per_s: float, n: int, latency_s: float) -> float:
    """All-reduce of `n_bytes` over `n` members; exactly 0 for one member. 1e9 B at 50e9 B/s over 8: 0.035 s."""
    if n <= 1:
        return 0.0
    return transfer_s(2.0 * (n - 1) / n * n_bytes, bytes_per_s) + 2.0 * (n - 1) * latency_s


@kernel
def gather_s(n_bytes: float, bytes_per_s: float, n: int, latency_s: float) -> float:
    """All-gather or reduce-scatter of `n_bytes` in total over `n` members."""
    if n <= 1:
        return 0.0
    return transfer_s((n - 1.0) / n * n_bytes, bytes_per_s) + (n - 1) * latency_s


@kernel
def tree_all_reduce_s(n_bytes: float, bytes_per_s: float, n: int, latency_s: float) -> float:
    """All-reduce by a double binary tree: the ring's bytes, 2 log2(n) latencies."""
    if n <= 1:
        return 0.0
    return transfer_s(2.0 * (n - 1) / n * n_bytes, bytes_per_s) + 2.0 * math.log2(n) * latency_s


@kernel
def all_to_all_s(n_bytes: float, bytes_per_s: float, n: int, latency_s: float) -> float:
    """Each of `n` members sends `n_bytes` in all, an equal part to each member."""
    if n <= 1:
        return 0.0
    return transfer_s((n - 1.0) / n * n_bytes, bytes_per_s) + (n - 1) * latency_s


@kernel
def hierarchical_all_reduce_s(
    n_bytes: float, n_local: int, n_nodes: int, local_bytes_per_s: float, nic_bytes_per_s: float, latency_s: float
) -> float:
    """Reduce inside nodes, all-reduce the parts between them at each member's NIC share, gather inside (MODEL.md 4)."""
    local = ring_all_reduce_s(n_bytes, local_bytes_per_s, n_local, latency_s)
    return local + ring_all_reduce_s(n_bytes / max(n_local, 1), nic_bytes_per_s, n_nodes, latency_s)


@kernel
def group_share(setting: Any, size: float, stride: float) -> tuple[float, float]:
    """(members per node, nodes) of a group of `size` ranks that lie `stride` apart, nodes filled in rank order."""
    local = min(size, max(1.0, math.floor(setting["gpus_per_node"] / stride)))
    return local, math.ceil(size / local)


@kernel
def tensor_s(setting: Any, tp: int, tokens: float, n_reductions: float) -> tuple[float, float, float]:
    """(INTRA, INTER, latency) exposed seconds of one layer's `n_reductions` all-reduces of tokens x hidden over `tp` members.

    Over nodes: reduced inside each node first, then between nodes over all NICs of the node, at three times the
    latency.
    """
    if tp <= 1:
        return 0.0, 0.0, 0.0
    times = n_reductions * setting["tp_exposed"]
    n_bytes = setting["tensor_token_bytes"] * tokens
    latency = setting["tp_latency_s"] * rounds(tp)
    local = float(min(tp, int(setting["gpus_per_node"])))
    intra = wire_s(2.0 * (local - 1.0) / local * n_bytes, setting["intra_s_per_byte"])
    if local >= tp:
        return times * intra, 0.0, times * latency
    nodes = tp / local
    inter = wire_s(2.0 * (nodes - 1.0) / nodes * n_bytes, setting["node_s_per_byte"])
    return times * intra, times * inter, times * 3.0 * latency


@kernel
def ring_bytes(setting: Any, size: int, stride: int, n_bytes: float) -> tuple[float, float]:
    """(INTRA, INTER) bytes that each member sends in one all-reduce of `n_bytes` over a group of `size` ranks `stride`
    apart: inside its node first, then between nodes its part of them. Their sum does not depend on the nodes."""
    if size <= 1:
        return 0.0, 0.0
    local, nodes = group_share(setting, float(size), float(stride))
    return 2.0 * (local - 1.0) / local * n_bytes, 2.0 * (nodes - 1.0) / (nodes * local) * n_bytes


@kernel
def ring_latency_s(setting: Any, size: int, stride: int) -> tuple[float, float]:
    """(INTRA, INTER) latencies of one such all-reduce, by trees."""
    if size <= 1:
        return 0.0, 0.0
    local, nodes = group_share(setting, float(size), float(stride))
    return 2.0 * rounds(local) * setting["intra_latency_s"], 2.0 * rounds(nodes) * setting["inter_latency_s"]


@kernel
def gradient_s(setting: Any, size: int, stride: int, n_bytes: float) -> tuple[float, float]:
    """(INTRA, INTER) seconds of one all-reduce of each member's `n_bytes` over a group of `size` ranks `stride`
    apart."""
    near, far = ring_bytes(setting, size, stride, n_bytes)
    near_latency, far_latency = ring_latency_s(setting, size, stride)
    return (
        wire_s(near, setting["intra_s_per_byte"]) + near_latency,
        wire_s(far, setting["nic_s_per_byte"]) + far_latency,
    )


@kernel
def exchange_s(setting: Any, size: int, copy_bytes: float) -> tuple[float, float]:
    """(INTRA, INTER) seconds of an all-to-all of `size` neighbouring ranks, each sending every token to topk of them.

    A token crosses to a node once, however many of its experts live there, and is spread inside it: of n nodes random
    choice of k experts meets n(1 - (1 - 1/n)^k). copy_bytes: one copy of each of the rank's tokens.
    """
    if size <= 1:
        return 0.0, 0.0
    local = min(float(size), setting["gpus_per_node"])
    sent = setting["topk"] * copy_bytes
    intra = wire_s(sent * (size - 1.0) / size, setting["intra_s_per_byte"]) * setting["expert_link_rate"]
    if local >= size:
        return intra, 0.0
    nodes = size / local
    met = (nodes - 1.0) * (1.0 - (1.0 - 1.0 / nodes) ** setting["topk"])
    return intra, wire_s(met * copy_bytes, setting["nic_s_per_byte"]) * setting["expert_inter_rate"]

"""One job over two kinds of devices: uneven batch shares between replicas, or uneven layer splits between pipeline
stages.

Data mode: each kind holds whole replicas under its own plan; batch shares follow speed; gradients go at the slowest
member's link. Pipeline mode: contiguous stages by kind with common dp and tp; the layer split is the exact optimum
under both memories. Equal kinds are merged and priced as one, bit for bit.
"""

from dataclasses import replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import PlanError
from hetenv.perf.estimate import Estimate, estimate_of
from hetenv.perf.mixed_stages import price_stages
from hetenv.perf.plan import MixedPlan, Plan, plan_row
from hetenv.perf.rows import ESTIMATE_ROW, Reason
from hetenv.perf.search import search
from hetenv.perf.setting import set_link_times
from hetenv.perf.step import estimate_rows
from hetenv.perf.training import Devices, Training, setting_row

Pair = tuple[Devices, Devices]
N_BEST = 6


def same_kind(pools: Pair) -> bool:
    """Whether two pools differ in nothing but their number of GPUs."""
    return replace(pools[0], n_gpus=1) == replace(pools[1], n_gpus=1)


def merged(pools: Pair) -> Devices:
    """Two pools of one kind as one."""
    return pools[0].with_gpus(pools[0].n_gpus + pools[1].n_gpus)


def slowest_links(
    training: Training, pools: Pair, batches: tuple[int, int], others: tuple[int, int]
) -> list[NDArray[np.void]]:
    """SETTING_ROWs of both pools with their batch share, the other's replicas, and the slower link between nodes."""
    rows = [setting_row(replace(training, global_batch=b), pool).copy() for pool, b in zip(pools, batches)]
    per_gpu = [float(row["inter_bytes_per_s"][0] / row["gpus_per_node"][0]) for row in rows]
    for row, other in zip(rows, others):
        row["inter_bytes_per_s"] = min(per_gpu) * row["gpus_per_node"]
        row["extra_dp"] = other
        set_link_times(row[0])
        row["nic_nominal_s_per_byte"] = row["nic_s_per_byte"]
    return rows


def _combined(training: Training, pools: Pair, plan: MixedPlan, rows: NDArray[np.void]) -> Estimate:
    """The job's estimate from its two parts: the slower part sets compute and its links; both must be legal."""
    n = np.array([pool.n_gpus for pool in pools], float)
    reasons = [Reason(int(code)) for code in rows["reason"]]
    slow = int(np.argmax(rows["iter_s"]))
    part = estimate_of(training, pools[slow], plan_row(plan.plans[slow])[0], rows[slow])
    busy = rows["power_compute_w"] * rows["compute_s"] / max(part.compute_s, 1e-30)
    waits = rows["power_comm_w"] * np.maximum(0.0, 1.0 - rows["compute_s"] / max(part.compute_s, 1e-30))
    useful = sum(
        float(rows["mfu"][i]) * float(rows["iter_s"][i]) * n[i] * _peak(training, pools[i])
        for i in range(2)
        if rows["iter_s"][i] < inf
    )
    peak = sum(float(n[i]) * _peak(training, pools[i]) for i in range(2))
    return replace(
        part,
        plan=plan,
        n_gpus=int(n.sum()),
        memory_bytes=float(rows["memory_bytes"].max()),
        power_compute_w=float(((busy + waits) * n).sum() / n.sum()),
        power_comm_w=float((rows["power_comm_w"] * n).sum() / n.sum()),
        mfu=useful / (part.iter_s * peak) if part.iter_s < inf else 0.0,
        reason_code=max(reasons),
        global_batch=training.global_batch,
    )


def _peak(training: Training, pool: Devices) -> float:
    return float(setting_row(training, pool)["peak_flops"][0])


def estimate_data(training: Training, pools: Pair, plans: tuple[Plan, Plan], batches: tuple[int, int]) -> Estimate:
    """Replicas on both pools; `batches` samples a step each, which must sum to the global batch."""
    if sum(batches) != training.global_batch or min(batches) < 1:
        raise PlanError(f"batches={batches}: must be positive and sum to the global batch {training.global_batch}")
    others = (plans[1].dp * plans[1].cp, plans[0].dp * plans[0].cp)
    rows = np.zeros(2, ESTIMATE_ROW)
    for i, setting in enumerate(slowest_links(training, pools, batches, others)):
        estimate_rows(setting[0], plan_row(plans[i]), rows[i : i + 1])
    layers = training.model_entry.layers
    return _combined(training, pools, MixedPlan("data", plans, batches, (layers, layers)), rows)


def batch_splits(total: int, units: tuple[int, int], speeds: tuple[float, float]) -> list[tuple[int, int]]:
    """Splits of `total` into multiples of `units` near the proportional one, nearest first (at most four)."""
    wish = total * speeds[0] / (speeds[0] + speeds[1])
    found = []
    for a in range(units[0], total, units[0]):
        if (total - a) % units[1] == 0:
            found.append((abs(a - wish), a))
    return [(a, total - a) for _, a in sorted(found)[:4]]


def data_candidates(training: Training, pools: Pair) -> list[Estimate]:
    """Good pairs of plans, legal or not: each kind's fastest at shares near the proportional ones."""
    parts = []
    for pool in pools:
        share = max(1, training.global_batch * pool.n_gpus // (pools[0].n_gpus + pools[1].n_gpus))
        options: dict[tuple[int, int], Estimate] = {}
        for batch in {share, 1 << (share.bit_length() - 1), 1 << share.bit_length()}:
            for one in search(replace(training, global_batch=batch), pool, top=N_BEST).best:
                assert isinstance(one.plan, Plan)
                options.setdefault((one.plan.dp, one.plan.micro_batch), one)
        parts.append(sorted(options.values(), key=lambda one: -one.samples_per_s)[: 2 * N_BEST])
    found = []
    for a in parts[0]:
        for b in parts[1]:
            assert isinstance(a.plan, Plan) and isinstance(b.plan, Plan)
            units = a.plan.dp * a.plan.micro_batch, b.plan.dp * b.plan.micro_batch
            for batches in batch_splits(training.global_batch, units, (a.samples_per_s, b.samples_per_s)):
                found.append(estimate_data(training, pools, (a.plan, b.plan), batches))
    return found


def estimate_pipeline(training: Training, pools: Pair, plan: Plan, stages: tuple[int, int], first: int = 0) -> Estimate:
    """Stages on both pools: `stages` by pool, best layer split; plan.pp is replaced by their sum."""
    order = (first, 1 - first)
    settings = [setting_row(training, pools[i])[0] for i in order]
    row = plan_row(replace(plan, pp=sum(stages)))
    out = np.zeros(2, ESTIMATE_ROW)
    layers = int(price_stages(settings[0], settings[1], row[0], stages[order[0]], stages[order[1]], out[0], out[1]))
    total = training.model_entry.layers
    by_pool = (layers, total - layers) if first == 0 else (total - layers, layers)
    plans = (replace(plan, pp=stages[0]), replace(plan, pp=stages[1]))
    mixed = MixedPlan("pipeline", plans, (training.global_batch,) * 2, by_pool, first)
    rows = out[list(order)] if first == 0 else out[[1, 0]]
    return _combined(training, pools, mixed, rows)

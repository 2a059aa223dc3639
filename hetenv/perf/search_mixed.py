"""Complete search over one job on two kinds of devices.

Data mode: every pair of plans with every split of the batch into whole micro-batches. The step takes as long as the slower
part, so each part keeps only its best plan per (samples, replicas, replicas of the other part). Pipeline mode: every tp,
dp, micro-batch, recompute mode, ZeRO 0-1 and order of the kinds, each with its best layer split.
"""

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetenv.jit import kernel
from hetenv.perf.estimate import Estimate, estimate
from hetenv.perf.mixed import (
    Pair,
    data_candidates,
    estimate_data,
    estimate_pipeline,
    merged,
    same_kind,
    slowest_links,
)
from hetenv.perf.mixed_stages import price_stages
from hetenv.perf.plan import Plan, plan_of
from hetenv.perf.rows import ESTIMATE_ROW, PLAN_ROW, REASON_TEXT, Reason, Recompute
from hetenv.perf.search import MAX_MICRO_BATCH, MAX_TP, SearchResult, plan_space, search
from hetenv.perf.step import estimate_row
from hetenv.perf.training import Training, setting_row

PIPELINE_ROW = np.dtype([("plan", PLAN_ROW), ("pp", np.int64, (2,)), ("first", np.int64)])


@kernel
def _rounds(plan: Any) -> int:
    """Micro-batches that a step may hold come in multiples of this."""
    return int(plan["pp"]) if plan["virtual_stages"] > 1 else 1


@kernel
def slopes(setting: Any, plans: Any, out: Any, found: Any, reasons: Any) -> None:
    """found[i]: seconds per sample that plan i adds at least, inf where it cannot run; reasons: counts by code.

    A step's seconds are convex in the number of micro-batches, so the first difference is the smallest.
    """
    for i in range(len(plans)):
        plan = plans[i]
        unit = plan["dp"] * plan["micro_batch"] * _rounds(plan)
        setting["global_batch"] = unit
        estimate_row(setting, plan, out)
        reasons[out["reason"]] += 1
        found[i] = np.inf
        if out["reason"] == Reason.OK:
            once = out["iter_s"]
            setting["global_batch"] = 2 * unit
            estimate_row(setting, plan, out)
            found[i] = min(once, out["iter_s"] - once) / unit


@kernel
def fill_table(
    setting: Any,
    plans: Any,
    slope: Any,
    group: Any,
    extras: Any,
    low: int,
    high: int,
    most_s: float,
    out: Any,
    best: Any,
    pick: Any,
) -> None:
    """best, pick [extras, groups, samples - low]: least seconds, and whose plan, with low <= samples <= high.

    group: [N] index of each plan's number of replicas; extras: replicas of the other part. Times over most_s are left out.
    """
    for i in range(len(plans)):
        plan = plans[i]
        unit = plan["dp"] * plan["micro_batch"] * _rounds(plan)
        samples = -(-low // unit) * unit
        while samples <= high and samples * slope[i] <= most_s:
            setting["global_batch"] = samples
            for e in range(len(extras)):
                setting["extra_dp"] = extras[e]
                estimate_row(setting, plan, out)
                if out["reason"] == 0 and out["iter_s"] < best[e, group[i], samples - low]:
                    best[e, group[i], samples - low] = out["iter_s"]
                    pick[e, group[i], samples - low] = i
            samples += unit


@dataclass(frozen=True)
class _Part:
    """One kind's plans: [N] rows that can run, their slopes, replicas and the setting they are priced in."""

    setting: Any
    plans: NDArray[np.void]
    slope: NDArray[np.float64]
    replicas: NDArray[np.int64]
    reasons: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Distinct numbers of replicas."""
        return np.unique(self.replicas)


def _parts(training: Training, pools: Pair) -> tuple[_Part, _Part]:
    batch = training.global_batch
    found = []
    for pool, setting in zip(pools, slowest_links(training, pools, (batch, batch), (1, 1))):
        plans = plan_space(training, pool)
        slope, reasons = np.zeros(len(plans)), np.zeros(len(Reason), np.int64)
        slopes(setting[0], plans, np.zeros(1, ESTIMATE_ROW)[0], slope, reasons)
        keep = slope < inf
        plans = np.ascontiguousarray(plans[keep])
        found.append(_Part(setting[0], plans, slope[keep], plans["dp"] * plans["cp"], reasons))
    return found[0], found[1]


def _table(part: _Part, extras: NDArray[np.int64], low: int, high: int, most_s: float) -> tuple[Any, Any]:
    sizes = part.sizes
    best = np.full((len(extras), len(sizes), high - low + 1), inf)
    pick = np.zeros(best.shape, np.int64)
    group = np.searchsorted(sizes, part.replicas)
    out = np.zeros(1, ESTIMATE_ROW)[0]
    fill_table(part.setting, part.plans, part.slope, group, extras, low, high, most_s, out, best, pick)
    return best, pick


def _best_data(training: Training, pools: Pair, parts: tuple[_Part, _Part], top: int, known_s: float) -> list[Estimate]:
    """The `top` fastest, one per split of the batch and of the replicas; `known_s`: seconds that can be reached."""
    a, b = parts
    if not len(a.plans) or not len(b.plans):
        return []
    batch = training.global_batch
    reach = [int(min(batch - 1, known_s * (1 + 1e-9) / part.slope.min())) for part in parts]
    low, high = max(1, batch - reach[1]), min(reach[0], batch - 1)
    if low > high:
        return []
    best_a, pick_a = _table(a, b.sizes, low, high, known_s)
    best_b, pick_b = _table(b, a.sizes, batch - high, batch - low, known_s)
    seconds = np.maximum(best_a, best_b.transpose(1, 0, 2)[:, :, ::-1])
    order = np.argsort(seconds, axis=None, kind="stable")[:top]
    found = []
    for r_b, r_a, at in zip(*np.unravel_index(order, seconds.shape)):
        if seconds[r_b, r_a, at] < inf:
            plan_a = plan_of(a.plans[pick_a[r_b, r_a, at]])
            plan_b = plan_of(b.plans[pick_b[r_a, r_b, high - low - at]])
            found.append(estimate_data(training, pools, (plan_a, plan_b), (low + int(at), batch - low - int(at))))
    return found


def pipeline_space(training: Training, pools: Pair) -> NDArray[np.void]:
    """[N] PIPELINE_ROW: plans whose stages run on one kind first and on the other after it."""
    model, batch = training.model_entry, training.global_batch
    n_a, n_b = pools[0].n_gpus, pools[1].n_gpus
    rows = []
    if model.kind == "convolution" or model.n_experts:
        return np.zeros(0, PIPELINE_ROW)
    micros = [1 << k for k in range(MAX_MICRO_BATCH.bit_length())]
    for tp in range(1, min(n_a, n_b, MAX_TP) + 1):
        if n_a % tp or n_b % tp or model.heads % tp:
            continue
        for dp in range(1, min(n_a, n_b) // tp + 1):
            if (n_a // tp) % dp or (n_b // tp) % dp or (n_a + n_b) // (tp * dp) > model.layers:
                continue
            stages = n_a // (tp * dp), n_b // (tp * dp)
            for micro in (size for size in micros if batch % (dp * size) == 0):
                for mode in Recompute:
                    for zero in (0, 1) if dp > 1 else (0,):
                        plan = (dp, tp, sum(stages), 1, 1, micro, 1, zero, int(mode), int(tp > 1), 0)
                        rows += [(plan, stages, first) for first in (0, 1)]
    return np.array(rows, PIPELINE_ROW)


@kernel
def price_pipelines(a: Any, b: Any, rows: Any, out: Any, seconds: Any, memory: Any, reasons: Any) -> None:
    """seconds, memory [N] of PIPELINE_ROWs over kinds a and b, inf where illegal; reasons: counts by code."""
    for i in range(len(rows)):
        row = rows[i]
        if row["first"] == 0:
            price_stages(a, b, row["plan"], row["pp"][0], row["pp"][1], out[0], out[1])
        else:
            price_stages(b, a, row["plan"], row["pp"][1], row["pp"][0], out[0], out[1])
        reason = max(out[0]["reason"], out[1]["reason"])
        reasons[reason] += 1
        memory[i] = max(out[0]["memory_bytes"], out[1]["memory_bytes"])
        seconds[i] = out[0]["iter_s"] if reason == 0 else np.inf


def _best_pipelines(training: Training, pools: Pair, top: int, reasons: NDArray[np.int64]) -> list[Estimate]:
    rows = pipeline_space(training, pools)
    seconds, memory = np.zeros(len(rows)), np.zeros(len(rows))
    a, b = (setting_row(training, pool)[0] for pool in pools)
    price_pipelines(a, b, rows, np.zeros(2, ESTIMATE_ROW), seconds, memory, reasons)
    order = np.lexsort((memory, seconds))[:top]
    best = []
    for row in rows[order[seconds[order] < inf]]:
        plan, (pp_a, pp_b) = plan_of(row["plan"]), row["pp"]
        best.append(estimate_pipeline(training, pools, plan, (int(pp_a), int(pp_b)), int(row["first"])))
    return best


def search_pair(training: Training, pools: Pair, top: int = 5) -> SearchResult:
    """The `top` fastest legal plans over two kinds of devices together, and why the rest of the space is illegal.

    Two pools of one kind are searched as one. A kind's plan counts as illegal where one micro-batch does not fit.
    """
    if same_kind(pools):
        return search(training, merged(pools), top)
    reasons = np.zeros(len(Reason), np.int64)
    pipelines = _best_pipelines(training, pools, top, reasons)
    parts = _parts(training, pools)
    quick = sorted(one.iter_s for one in data_candidates(training, pools) if one.is_legal)
    reached = sorted([*quick, *(one.iter_s for one in pipelines)])
    known = len(reached) >= top
    data = _best_data(training, pools, parts, top, reached[top - 1]) if known else _any_data(training, pools, parts, top)
    best = sorted((one for one in [*data, *pipelines] if one.is_legal), key=lambda one: (one.iter_s, one.memory_bytes))[:top]
    counts = reasons + parts[0].reasons + parts[1].reasons
    illegal = {REASON_TEXT[Reason(code)]: int(n) for code, n in enumerate(counts) if code and n}
    return SearchResult(tuple(best), illegal, int(counts.sum()))


def _any_data(training: Training, pools: Pair, parts: tuple[_Part, _Part], top: int) -> list[Estimate]:
    """`_best_data` where no time is known to be reachable: first up to twice the whole batch on the slower kind."""
    slopes_s = [float(part.slope.min(initial=inf)) for part in parts]
    guess_s = max((2.0 * training.global_batch * slope for slope in slopes_s if slope < inf), default=0.0)
    found = _best_data(training, pools, parts, top, guess_s)
    if len(found) < top:
        return _best_data(training, pools, parts, top, inf)
    return found if found[-1].iter_s <= guess_s else _best_data(training, pools, parts, top, found[-1].iter_s)


def configurations_mixed(training: Training, pools: Pair) -> list[Estimate]:
    """What a simulator tabulates for two pools: the fastest plan of each mode, at most two, the faster first."""
    if same_kind(pools):
        best = search(training, merged(pools), 1).best
        return [estimate(training, merged(pools), one.plan) for one in best if isinstance(one.plan, Plan)]
    parts = _parts(training, pools)
    found = _any_data(training, pools, parts, 1)
    found += _best_pipelines(training, pools, 1, np.zeros(len(Reason), np.int64))
    return sorted((one for one in found if one.is_legal), key=lambda one: one.iter_s)

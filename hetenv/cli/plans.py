"""A plan search as plain data: what `hetenv plan --json` prints."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hetenv.errors import PlanError, ScenarioError
from hetenv.perf import Devices, Estimate, Plan, Training, search
from hetenv.perf.plan import split_layers
from hetenv.perf.report import mixed_stage_memory_bytes, price, stage_layers, stage_memory_bytes
from hetenv.perf.search import SearchResult
from hetenv.perf.search_mixed import search_pair
from hetenv.perf.timeline import write_timeline
from hetenv.units import GIGA


def pools_of(on: Sequence[str], gpus_per_node: int, inter_link: str) -> list[Devices]:
    """Devices of NAME:COUNT pairs, at most two kinds."""
    pools = []
    for text in on:
        name, sign, count = text.rpartition(":")
        if not (sign and name and count.isdigit() and int(count) > 0):
            raise ScenarioError(f"--on {text!r}: must be NAME:COUNT, e.g. H100-SXM-80:64")
        pools.append(Devices(name, int(count), gpus_per_node, inter_link))
    if not 1 <= len(pools) <= 2:
        raise ScenarioError(f"--on given {len(pools)} times: a plan spans one or two kinds of GPU")
    return pools


def searched(training: Training, pools: Sequence[Devices], top: int, timeline: Path | None = None) -> dict[str, Any]:
    """The fastest plans, and how many of how many plans are illegal for which reason. timeline: file for the best one's."""
    found = _search(training, pools, top)
    if timeline is not None:
        if not found.best:
            raise PlanError("no plan can run: there is no timeline to write")
        write_timeline(timeline, training, pools, found.best[0])
    return {
        "n_plans": found.n_plans,
        "illegal": found.illegal,
        "plans": [_row(training, pools, one) for one in found.best],
    }


def _search(training: Training, pools: Sequence[Devices], top: int) -> SearchResult:
    return search(training, pools[0], top) if len(pools) == 1 else search_pair(training, (pools[0], pools[1]), top)


def _row(training: Training, pools: Sequence[Devices], one: Estimate) -> dict[str, Any]:
    intra_s, inter_s, wan_s = one.comm_s
    split, memory = _stages(training, pools, one)
    cost = price(one, pools)
    plan = one.plan if isinstance(one.plan, Plan) else one.plan.whole
    return {
        "plan": str(one.plan),
        **_fields(plan),
        "split": split,
        "iter_s": one.iter_s,
        "iter_s_band": list(one.band_s),
        "samples_per_s": one.samples_per_s,
        "tokens_per_s": one.tokens_per_s,
        "mfu": one.mfu,
        "memory_bytes": memory,
        "memory_gbytes": one.memory_bytes / GIGA,
        "power_w": one.energy_j_per_sample * one.samples_per_s,
        "energy_j_per_sample": one.energy_j_per_sample,
        "usd_per_gtoken": cost.usd_per_gtoken,
        "kwh_per_gtoken": cost.kwh_per_gtoken,
        "compute_s": one.compute_s,
        "comm_intra_s": intra_s,
        "comm_inter_s": inter_s,
        "comm_wan_s": wan_s,
        "exposed_s": one.exposed_s,
        "bubble_share": one.bubble_share,
        "parts": [] if isinstance(one.plan, Plan) else [_fields(part) for part in one.plan.plans],
    }


def _fields(plan: Plan) -> dict[str, Any]:
    """Degrees and knobs; modes by name."""
    fields = asdict(plan)
    return fields | {"recompute": plan.recompute.name.lower(), "schedule": plan.schedule.name.lower()}


def _stages(training: Training, pools: Sequence[Devices], one: Estimate) -> tuple[list[dict[str, Any]], list[float]]:
    """Per kind of GPU, in the order of the stages: layers of its stages and samples of the batch; bytes per stage."""
    if isinstance(one.plan, Plan):
        pool = pools[0].with_gpus(one.n_gpus)
        layers = list(stage_layers(training, one.plan))
        return [_share(pool, layers, training.global_batch)], list(stage_memory_bytes(training, pool, one.plan))
    plan = one.plan
    if plan.mode == "data":
        split: list[dict[str, Any]] = []
        memory: list[float] = []
        for pool, part, batch in zip(pools, plan.plans, plan.batches):
            split.append(_share(pool, list(stage_layers(training, part)), batch))
            memory += stage_memory_bytes(replace(training, global_batch=batch), pool, part)
        return split, memory
    order = (plan.first, 1 - plan.first)
    split = [
        _share(pools[i], list(split_layers(plan.layers[i], plan.plans[i].pp)), training.global_batch) for i in order
    ]
    return split, list(mixed_stage_memory_bytes(training, (pools[0], pools[1]), plan))


def _share(pool: Devices, layers: list[int], batch: int) -> dict[str, Any]:
    return {"on": pool.accelerator_entry.name, "n_gpus": pool.n_gpus, "layers": layers, "batch": batch}

"""A plan search as plain data."""

from dataclasses import asdict
from typing import Any

from hetenv.perf import Devices, Estimate, Training, search
from hetenv.units import GIGA


def searched(training: Training, devices: Devices, top: int) -> dict[str, Any]:
    """The fastest plans, and how many of how many plans are illegal for which reason."""
    found = search(training, devices, top)
    return {
        "n_plans": found.n_plans,
        "illegal": found.illegal,
        "plans": [_row(estimate) for estimate in found.best],
    }


def _row(estimate: Estimate) -> dict[str, Any]:
    intra_s, inter_s, wan_s = estimate.comm_s
    return {
        "plan": str(estimate.plan),
        "iter_s": estimate.iter_s,
        "samples_per_s": estimate.samples_per_s,
        "compute_s": estimate.compute_s,
        "comm_intra_s": intra_s,
        "comm_inter_s": inter_s,
        "comm_wan_s": wan_s,
        "exposed_s": estimate.exposed_s,
        "bubble_share": estimate.bubble_share,
        "mfu": estimate.mfu,
        "memory_gbytes": estimate.memory_bytes / GIGA,
        "energy_j_per_sample": estimate.energy_j_per_sample,
        "fields": {name: getattr(value, "value", value) for name, value in asdict(estimate.plan).items()},
    }

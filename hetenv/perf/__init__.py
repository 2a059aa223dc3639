"""The performance model: time, memory, power and legality of a parallel plan. Usable alone; knows no simulator."""

from hetenv.perf.estimate import Estimate, estimate, estimate_many
from hetenv.perf.plan import MixedPlan, Plan
from hetenv.perf.rows import LinkLevel, Precision, Reason, Recompute, Schedule
from hetenv.perf.search import SearchResult, configurations, search
from hetenv.perf.training import Devices, Training

__all__ = [
    "Devices",
    "Estimate",
    "LinkLevel",
    "MixedPlan",
    "Plan",
    "Precision",
    "Reason",
    "Recompute",
    "Schedule",
    "SearchResult",
    "Training",
    "configurations",
    "estimate",
    "estimate_many",
    "search",
]

"""Ready-made and learned schedulers by name. Found through `hetenv.make_policy`; module paths in here are no public interface."""

from collections.abc import Callable
from typing import Final

from hetenv.policy import AnyPolicy

from .heuristics import queue_scores, repacking
from .heuristics.best_throughput import BestThroughput
from .heuristics.carbon_aware import CarbonAware
from .heuristics.conservative_backfill import ConservativeBackfill
from .heuristics.discretised_las import DiscretisedLas
from .heuristics.easy_backfill import EasyBackfill
from .heuristics.fifo import Fifo, FirstFit
from .heuristics.index import index, keep
from .heuristics.las import LeastAttainedService
from .heuristics.least_energy import LeastEnergy
from .heuristics.phase_aware import PhaseAware
from .heuristics.repacking import Repacking
from .heuristics.reserved_head import heads
from .heuristics.rows import FirstRow, RandomRow
from .heuristics.shortest import ShortestJobFirst
from .heuristics.srtf import ShortestRemainingTimeFirst
from .heuristics.threshold_curtailment import ThresholdCurtailment
from .heuristics.tune import tune
from .rl import load_trained

__all__ = ["POLICIES", "VARIANTS", "DiscretisedLas", "keep", "load_trained", "tune"]

POLICIES: Final[dict[str, Callable[[str | None], AnyPolicy]]] = {
    "random": lambda scenario: RandomRow(),
    "first_row": lambda scenario: FirstRow(),
    "fifo": lambda scenario: Fifo(),
    "first_fit": lambda scenario: FirstFit(),
    "easy_backfill": lambda scenario: EasyBackfill(),
    "conservative_backfill": lambda scenario: ConservativeBackfill(),
    "wfp3": lambda scenario: EasyBackfill("wfp3", queue_scores.wfp3),
    "unicep": lambda scenario: EasyBackfill("unicep", queue_scores.unicep),
    "f1": lambda scenario: EasyBackfill("f1", queue_scores.f1),
    "f2": lambda scenario: EasyBackfill("f2", queue_scores.f2),
    "f3": lambda scenario: EasyBackfill("f3", queue_scores.f3),
    "f4": lambda scenario: EasyBackfill("f4", queue_scores.f4),
    "sjf": lambda scenario: ShortestJobFirst(),
    "srtf": lambda scenario: ShortestRemainingTimeFirst(),
    "phase_aware": lambda scenario: PhaseAware(),
    "las": lambda scenario: LeastAttainedService(),
    "smallest_first": lambda scenario: Repacking("smallest_first", repacking.smallest),
    "srpt": lambda scenario: Repacking("srpt", repacking.time_left),
    "srsf": lambda scenario: Repacking("srsf", repacking.service_left),
    "dlas": lambda scenario: DiscretisedLas("dlas", by_gpus=False),
    "dlas_gpu": lambda scenario: DiscretisedLas("dlas_gpu", by_gpus=True),
    "best_throughput": lambda scenario: BestThroughput(),
    "least_energy": lambda scenario: LeastEnergy(),
    "carbon_aware": lambda scenario: CarbonAware(),
    "threshold_curtailment": lambda scenario: ThresholdCurtailment(),
    "index": index,
}
"""Name -> maker; the argument is the name of the scenario it will run on, or None."""

VARIANTS: Final[dict[str, Callable[[str | None], AnyPolicy]]] = {**heads()}
"""The same for rules as published simulators have them, oddities included: found by name, not offered for comparison."""

"""What a workload may read when it draws an episode."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hetenv.cluster import Cluster
from hetenv.workload.job_class import PlainClass


@dataclass(frozen=True)
class WorkloadContext:
    """The compiled surroundings of a workload."""

    classes: Mapping[str, PlainClass]
    """In index order: the i-th is `job_class` i of a request."""
    reference_rate: Callable[[int, int, int, int], float]
    """(job_class, min_gpus, max_gpus, pool mask) -> work/s of the fastest legal configuration, 0 where none."""
    cluster: Cluster
    horizon_s: float
    folder: Path | None
    """The scenario's own folder, one of the two roots of trace paths."""
    seed: int
    """Episode seed; a windowed trace chooses its window by it."""

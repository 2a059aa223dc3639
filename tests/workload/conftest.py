"""A workload context without a performance model: a class is as fast as its GPU count says."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hetenv.cluster import Cluster, ClusterConfig, PoolConfig, build
from hetenv.workload import FixedClass, TableClass, WorkloadContext

GPU_RATE = 2.0
"""Work/s of one GPU of the class `table`."""
LISTED = (1, 2, 4, 8)


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    pools = (
        PoolConfig(name="new", accelerator="A100-SXM-80", nodes=2, inter_link="IB-HDR"),
        PoolConfig(name="old", accelerator="V100-SXM-32", nodes=2, inter_link="IB-EDR"),
    )
    return build(ClusterConfig(pools=pools))


@pytest.fixture(scope="session")
def make_context(cluster: Cluster) -> Callable[..., WorkloadContext]:
    classes = {
        "fixed": FixedClass(gpu_counts=LISTED),
        "table": TableClass(
            gpu_counts=LISTED, steps_per_s={"new": {1: GPU_RATE}}, checkpoint_interval=50.0, pools=("new",)
        ),
    }

    def rate(job_class: int, min_gpus: int, max_gpus: int, pools: int) -> float:
        fitting = [count for count in LISTED if min_gpus <= count <= max_gpus]
        if not fitting or not pools & 1:
            return 0.0
        return 1.0 if job_class == 0 else GPU_RATE * max(fitting)

    def make(horizon_s: float = 86_400.0, seed: int = 0, folder: Path | None = None) -> WorkloadContext:
        return WorkloadContext(classes, rate, cluster, horizon_s, folder, seed)

    return make

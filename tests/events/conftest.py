"""A cluster of three sites and unlike nodes, and a few requests."""

import numpy as np
import pytest
from numpy.typing import NDArray

from hetenv.cluster import Cluster, ClusterConfig, PoolConfig, SiteConfig, build
from hetenv.workload.requests import requests as new_requests


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    sites = tuple(SiteConfig(name=name) for name in ("north", "south", "east"))
    pools = (
        PoolConfig(name="new", accelerator="H100-SXM-80", nodes=3, site="north", inter_link="IB-NDR-8x"),
        PoolConfig(name="old", accelerator="V100-SXM-32", nodes=5, gpus_per_node=4, site="south", inter_link="IB-EDR"),
        PoolConfig(name="spare", accelerator="A100-SXM-80", nodes=2, site="east", inter_link="IB-HDR"),
    )
    return build(ClusterConfig(sites=sites, pools=pools))


@pytest.fixture(scope="session")
def requests() -> NDArray[np.void]:
    rows = new_requests(7)
    rows["submit_s"] = np.arange(7) * 600.0
    rows["work"], rows["believed_work"] = 3600.0, 3000.0
    rows["max_gpus"], rows["elasticity"] = 4, np.arange(7) % 3
    return rows

"""Equal GPUs that are not equally fast: one speed per node and episode."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hetenv.events.cause import Cause
from hetenv.events.stream import Effect, EventContext, rows

SLOWEST = 0.1


class SpeedSpread(Cause):
    """Each GPU has a speed of its own, normal around 1; a node is as fast as its slowest GPU.

    Sinha et al., SC 2022 (arXiv 2208.11035): 8 % variation on average within one model of GPU, 22 % at most, single GPUs
    1.5 times slower than the median. The spread of 8 % is that between the whiskers of a box plot, 5.4 sigma of a
    normal distribution: gpu_sigma 0.015. Effect: NODE_SPEED at time 0.
    """

    kind: Literal["speed_spread"] = "speed_spread"
    gpu_sigma: float = Field(default=0.015, ge=0.0, le=0.3, description="standard deviation of a GPU's speed factor")
    slow_share: float = Field(default=0.0, ge=0.0, le=1.0, description="of GPUs that are outliers")
    slow_factor: float = Field(default=1.0 / 1.5, gt=0.0, le=1.0, description="factor on an outlier's speed")
    pools: tuple[str, ...] | None = Field(default=None, min_length=1, description="default: all")

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """One row per node."""
        cluster = context.cluster
        nodes = self.nodes_of(cluster, self.pools)
        n_gpus = cluster.gpus_per_node[cluster.node_pool[nodes]].astype(np.int64)
        speed = 1.0 + self.gpu_sigma * rng.standard_normal(int(n_gpus.sum()))
        speed[rng.random(speed.size) < self.slow_share] *= self.slow_factor
        slowest = np.minimum.reduceat(np.maximum(speed, SLOWEST), np.cumsum(n_gpus) - n_gpus)
        return rows(Effect.NODE_SPEED, 0.0, nodes, slowest)

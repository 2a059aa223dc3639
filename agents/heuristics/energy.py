"""What running a job adds to the power bill: the energy and carbon figures that the energy-minded planners share."""

import numpy as np
from numpy.typing import NDArray

from hetenv.view import View

from .sizing import ACCEPT, cost_of

NEAR = 0.5
"""Configurations that add at most this share more energy than the job's thriftiest one are near enough; speed then decides."""


def added_energy_j(view: View) -> NDArray[np.float64]:
    """[C] energy that a unit of work adds to what its GPUs would draw idle, PUE included, J."""
    rows, second = view.configs, view.configs["pool_b"] >= 0
    idle_w = view.idle_w[rows["pool_a"]] * rows["gpus_a"] + np.where(second, view.idle_w[rows["pool_b"]] * rows["gpus_b"], 0.0)
    found: NDArray[np.float64] = (rows["power_w"] - idle_w) * view.pool_pue[rows["pool_a"]] / rows["rate"]
    return found


def accepted(view: View, job: int, options: NDArray[np.int64], prices: NDArray[np.float64]) -> NDArray[np.int64]:
    """The options of a queued job that cost at most ACCEPT times its best configuration, free or not; all where nothing runs."""
    if view.n_running == 0:
        return options
    limit = ACCEPT * cost_of(view.configs[view.allowed(job)], prices).min(initial=np.inf)
    return options[cost_of(view.configs[options], prices) <= limit]


def nearly_least(options: NDArray[np.int64], values: NDArray[np.float64], near: float) -> NDArray[np.int64]:
    """The options whose value [C] is at most the least one's and the share `near` of its size."""
    chosen = values[options]
    least = chosen.min()
    return options[chosen <= least + near * abs(least)]


def quickest(view: View, options: NDArray[np.int64], prices: NDArray[np.float64]) -> int:
    """The option of least cost (`sizing`); ties go to the first."""
    return int(options[np.argmin(cost_of(view.configs[options], prices))])

"""How many GPUs, of which pool: the rule by which the queue heuristics choose a job's configuration.

A job that holds g GPUs for a time T delays each of Q waiting jobs by about T x g / G, where G is what the cluster has; so its
configuration should cost least in T x (1 + Q x g / G). GPUs of pools that serve many classes well count for more.
"""

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hetenv.view import View

ACCEPT = 2.5
"""A job rather waits than start at more than this many times the cost of its best configuration."""


_WORTH: WeakKeyDictionary[View, NDArray[np.float64]] = WeakKeyDictionary()
"""What `pool_worth` says of the configurations of each view, which never change."""


def pool_worth(configs: NDArray[np.void], n_classes: int, n_pools: int) -> NDArray[np.float64]:
    """[P] mean over classes of a GPU's best efficiency in the pool, 0 for classes that do not run there."""
    best, alone = np.zeros((n_classes, n_pools)), configs[configs["pool_b"] < 0]
    np.maximum.at(best, (alone["job_class"], alone["pool_a"]), alone["efficiency"])
    return best.mean(axis=0)


def gpu_prices(view: View, n_waiting: int) -> NDArray[np.float64]:
    """[P] what one GPU of each pool costs n_waiting other jobs, in units of a job's own time: Q x worth / (sum of worth x up GPUs)."""
    up_gpus = view.up_gpus
    worth = _WORTH.get(view)
    if worth is None:
        worth = _WORTH[view] = pool_worth(view.configs, view.classes.size, up_gpus.size)
    return n_waiting * worth / max(1.0, float(worth @ up_gpus))


def cost_of(configs: NDArray[np.void], prices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost of a unit of work in each of some CONFIG rows, as `View.first_fit` counts it: (1 + sum of price x GPUs) / rate."""
    second = np.where(configs["pool_b"] >= 0, prices[configs["pool_b"]] * configs["gpus_b"], 0.0)
    found: NDArray[np.float64] = (1.0 + prices[configs["pool_a"]] * configs["gpus_a"] + second) / configs["rate"]
    return found

"""Jobs by kind: those of one kind have the same configurations, so that one speaks for all."""

import numpy as np
from numpy.typing import NDArray

KIND = ["job_class", "min_gpus", "max_gpus", "pools"]


def kinds_of(rows: NDArray[np.void]) -> NDArray[np.int64]:
    """[n] number of the kind of each JOB_VIEW row, in order of first appearance."""
    _, first, which = np.unique(rows[KIND], return_index=True, return_inverse=True)
    place = np.empty(first.size, np.int64)
    place[np.argsort(first)] = np.arange(first.size)
    return place[which.reshape(-1)]

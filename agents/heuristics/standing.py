"""Orders of jobs that persist from one decision to the next, so that ties keep the order they had."""

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


def updated(order: Ids, present: Ids) -> Ids:
    """The members of `order` that are still present, in their order, then those that are new, by job id."""
    if not present.size:
        return present.copy()
    is_new = np.zeros(int(max(present.max(), order.max(initial=-1))) + 1, bool)
    is_new[present] = True
    kept = order[is_new[order]]
    is_new[kept] = False
    return np.concatenate([kept, np.flatnonzero(is_new)])

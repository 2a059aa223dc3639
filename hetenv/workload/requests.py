"""Requests: one row per job, fixed before the episode. Truth and belief stand side by side; policies see belief."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

NEVER = np.inf


class Elasticity(IntEnum):
    """What may change about a job's GPU count."""

    RIGID = 0
    """min_gpus = max_gpus, chosen by the user."""
    MOLDABLE = 1
    """Any listed count in [min_gpus, max_gpus], chosen at each start; no resize while running."""
    MALLEABLE = 2
    """May also be resized while running."""


REQUEST = np.dtype(
    [
        ("submit_s", "f8"),  # since the scenario's start; negative: present before it
        ("work", "f8"),  # truth: units of the class until completion, >= 0
        ("believed_work", "f8"),  # belief: the same, as the scenario's `knowledge` lets a policy know it
        ("believed_s", "f8"),  # belief: run time at the request's fastest configuration, s
        ("checkpoint_interval", "f8"),  # work between durable checkpoints (inf: none)
        ("deadline_s", "f8"),  # since the scenario's start (inf: none)
        ("weight", "f8"),  # > 0
        ("pools", "i8"),  # bit p set: pool p is allowed
        ("job_class", "i4"),  # index into the scenario's classes
        ("tenant", "i4"),
        ("min_gpus", "i4"),
        ("max_gpus", "i4"),
        ("cpus_per_gpu", "i4"),
        ("host_mbytes_per_gpu", "i4"),
        ("first_event", "i4"),  # JOB_WORK rows of this job: [first_event, last_event) of the world's events
        ("last_event", "i4"),
        ("backlog_bin", "i4"),  # bin of the backlog histogram
        ("data_site", "i2"),  # where its data set lies (-1: everywhere)
        ("elasticity", "i1"),  # Elasticity
        ("preemptible", "i1"),  # 1: may be preempted, resized, migrated
        ("rejected", "i1"),  # 1: fits nowhere; rejected when it is submitted
    ],
    align=True,
)
"""Rows are sorted by (submit_s, order of generation); a request's index is its job id."""


def requests(n: int) -> NDArray[np.void]:
    """n requests with the defaults: rigid, one GPU, weight 1, all pools, preemptible, no deadline, no checkpoints."""
    rows = np.zeros(n, REQUEST)
    rows["checkpoint_interval"] = rows["deadline_s"] = NEVER
    rows["weight"] = 1.0
    rows["pools"] = (1 << 62) - 1
    rows["min_gpus"] = rows["max_gpus"] = 1
    rows["preemptible"] = 1
    rows["data_site"] = -1
    return rows


def by_submit(rows: NDArray[np.void]) -> NDArray[np.void]:
    """Rows in job-id order: by submit time, ties in the given order."""
    return rows[np.argsort(rows["submit_s"], kind="stable")]

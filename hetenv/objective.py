"""The ledger: what the simulator accounts between two decisions, and the objective as weights over it.

Every reward term is one column of the ledger times a weight; nothing else is a reward. All integrals are exact, since
everything is piecewise constant between instants. `objective` is minimised; the return of an episode is its negative.
"""

from enum import IntEnum
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from hetenv.errors import unknown


class Account(IntEnum):
    """Columns of the ledger. Sums over the time (or the instants) that a row covers; unit in the name."""

    ELAPSED_S = 0
    JOB_S = 1
    """Integral of the summed weight of all jobs in the system (queued or running)."""
    QUEUED_JOB_S = 2
    """The part of JOB_S spent in the queue."""
    AVAILABLE_GPU_S = 3
    """GPUs of nodes that are up."""
    HELD_GPU_S = 4
    """GPUs allocated to jobs = USEFUL + OVERHEAD + LOST (+ the part that is not yet durable, until it is)."""
    OVERHEAD_GPU_S = 5
    """Held while starting, restoring or saving."""
    PRODUCTIVE_GPU_S = 6
    """Held while computing, later lost or not."""
    LOST_GPU_S = 7
    """Productive time whose work was rolled back."""
    ENERGY_J = 8
    """Drawn by the sites: IT power times PUE."""
    RENEWABLE_J = 9
    """The part of ENERGY_J covered by the sites' own renewable power."""
    CURTAILED_J = 10
    """Renewable energy that was available and neither used, stored nor exported."""
    CARBON_KG = 11
    """Grid energy times average carbon intensity."""
    GRID_COST_USD = 12
    RENT_USD = 13
    """GPU-hours of held GPUs times the pool's rent."""
    N_FINISHED = 14
    N_DEADLINE_MISSES = 15
    N_STARTED = 16
    """First starts and restarts."""
    N_PREEMPTED = 17
    N_RECONFIGURED = 18
    N_EVICTED = 19
    """Jobs that a capacity event stopped."""
    N_CRASHED = 20
    N_CANCELLED = 21
    N_REJECTED = 22
    N_ILLEGAL = 23
    LATENESS_S = 24
    """Weighted time beyond the deadline, accounted when the job ends."""
    GRID_J = 25
    """ENERGY_J = RENEWABLE_J + BATTERY_J + GRID_J."""
    BATTERY_J = 26
    """The part of ENERGY_J that batteries gave."""
    CHARGED_J = 27
    """Renewable energy that went into batteries."""
    EXPORTED_J = 28
    """Renewable energy sold to the grid."""
    EXPORT_USD = 29
    """Income from it."""
    DEMAND_USD = 30
    """Charge for each site's highest grid power, accounted as the peak rises."""
    MARGINAL_CARBON_KG = 31
    """Grid energy times marginal carbon intensity."""
    N_DEGRADED = 32
    """Jobs that went on smaller after a failure."""
    WAN_BYTES = 33
    """Checkpoints and data sets moved between sites."""
    WAN_USD = 34


N_ACCOUNTS: Final = len(Account)

REWARD_TERMS: Final[dict[str, Account]] = {account.name.lower(): account for account in Account}
"""Name in a scenario's `objective` -> ledger column."""


def _known_terms(weights: dict[str, float]) -> dict[str, float]:
    for name in weights:
        if name not in REWARD_TERMS:
            raise ValueError(unknown("objective term", name, REWARD_TERMS))
    return weights


class Objective(BaseModel):
    """What a scenario minimises: the sum of weight x term over the episode.

    `weights` maps a term (a name in REWARD_TERMS) to its weight per unit of that term.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights: Annotated[dict[str, float], AfterValidator(_known_terms)] = Field(
        default={"job_s": 1.0 / 3600.0}, min_length=1
    )
    discount_per_s: float = Field(default=0.0, ge=0.0, description="rate of the discount exp(-rate x elapsed)")

    def vector(self) -> NDArray[np.float64]:
        """weights: [N_ACCOUNTS], in ledger order; objective = sum(vector * ledger)."""
        vector = np.zeros(N_ACCOUNTS)
        for name, weight in self.weights.items():
            vector[REWARD_TERMS[name]] = weight
        return vector

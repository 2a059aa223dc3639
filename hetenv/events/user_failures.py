"""How users end their own jobs: failures of the program, cancellations, lost patience, exceeded time limits."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hetenv.errors import ScenarioError, unknown
from hetenv.events.cause import PublishedCause
from hetenv.events.stream import Effect, EventClock, EventContext, rows
from hetenv.units import HOUR_S


class UserFailures(PublishedCause):
    """A share of the jobs fails or is cancelled before its work is done.

    15 to 43 % of jobs in published traces end so (Philly: Jeon et al., ATC 2019; Helios: Hu et al., SC 2021; Acme: Hu
    et al., NSDI 2024; presets). A job that fails (JOB_CRASH) or is cancelled (JOB_CANCEL) does so at a share of its work,
    Beta(2m, 2 - 2m) of mean m, however it is scheduled. Of all jobs, `impatient_share` are withdrawn (JOB_CANCEL) a time
    after their submit, exponential of mean `patience_h`, unless they have ended by then. A job of more true work than
    `limit_factor` times what is believed of it meets its time limit there (JOB_CRASH), as if its time were counted at
    the speed of its fastest configuration.
    """

    kind: Literal["user_failures"] = "user_failures"
    failed_share: float = Field(default=0.0, ge=0.0, le=1.0)
    cancelled_share: float = Field(default=0.0, ge=0.0, le=1.0)
    failed_at: float = Field(default=0.3, gt=0.0, lt=1.0, description="mean share of the work done when a job fails")
    cancelled_at: float = Field(default=0.5, gt=0.0, lt=1.0, description="the same when a job is cancelled")
    impatient_share: float = Field(default=0.0, ge=0.0, le=1.0)
    patience_h: float = Field(default=24.0, gt=0.0, allow_inf_nan=False)
    limit_factor: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    classes: tuple[str, ...] | None = Field(default=None, min_length=1, description="whose jobs; default: all")

    @model_validator(mode="after")
    def _consistent(self) -> "UserFailures":
        if self.failed_share + self.cancelled_share > 1.0:
            raise ValueError("failed_share and cancelled_share together are above 1")
        if not (self.failed_share or self.cancelled_share or self.impatient_share or self.limit_factor):
            raise ValueError("failed_share: nothing ever happens; state a share, limit_factor or a preset")
        return self

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """Rows by kind of end. The draws of a job are the same whatever the shares are."""
        requests = context.requests
        n = requests.size
        fate, patience_s = rng.random(n), self.patience_h * HOUR_S * rng.standard_exponential(n)
        is_impatient = rng.random(n) < self.impatient_share
        failed_at = rng.beta(2.0 * self.failed_at, 2.0 * (1.0 - self.failed_at), n)
        cancelled_at = rng.beta(2.0 * self.cancelled_at, 2.0 * (1.0 - self.cancelled_at), n)
        job, work = np.arange(n), requests["work"]
        meant = self._meant(context) & (work > 0)
        fails = meant & (fate < self.failed_share)
        cancels = meant & (fate >= 1.0 - self.cancelled_share) & ~fails
        leave_s = np.maximum(requests["submit_s"], 0.0) + patience_s
        leaves = meant & is_impatient & (leave_s < context.horizon_s)
        drawn = [
            rows(Effect.JOB_CRASH, _within(failed_at, work)[fails], job[fails], 0.0, EventClock.JOB_WORK),
            rows(Effect.JOB_CANCEL, _within(cancelled_at, work)[cancels], job[cancels], 0.0, EventClock.JOB_WORK),
            rows(Effect.JOB_CANCEL, leave_s[leaves], job[leaves], 0.0),
        ]
        if self.limit_factor is not None:
            limit = self.limit_factor * requests["believed_work"]
            meets = meant & (limit < work) & (limit > 0)
            drawn.append(rows(Effect.JOB_CRASH, limit[meets], job[meets], 0.0, EventClock.JOB_WORK))
        return np.concatenate(drawn)

    def _meant(self, context: EventContext) -> NDArray[np.bool_]:
        """[J] jobs of the named classes."""
        if self.classes is None:
            return np.ones(context.requests.size, bool)
        for name in self.classes:
            if name not in context.class_names:
                where = f"events.{self.source_name}.classes"
                raise ScenarioError(f"{where}: {unknown('job class', name, context.class_names)}")
        return np.isin(context.requests["job_class"], [context.class_names.index(name) for name in self.classes])


def _within(share: NDArray[np.float64], work: NDArray[np.float64]) -> NDArray[np.float64]:
    """Thresholds strictly between 0 and the whole work."""
    found: NDArray[np.float64] = work * np.clip(share, 1e-9, 1.0 - 1e-9)
    return found

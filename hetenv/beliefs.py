"""What policies may believe about a job's work: the scenario's `knowledge` applied to the truth, once, before the episode."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from hetenv.configurations import Configurations

BELIEF_GPU_EDGES = (2, 4, 8)
"""Lower edges of the backlog histogram's GPU bins after the first."""
BELIEF_HOUR_EDGES = (1.0 / 6.0, 1.0, 6.0)
"""Lower edges of its believed-run-time bins after the first, h."""
N_BACKLOG_BINS = (len(BELIEF_GPU_EDGES) + 1) * (len(BELIEF_HOUR_EDGES) + 1)
UNKNOWN_S = 3600.0
"""Believed run time of every job where nothing is known of its work, s."""


class Knowledge(BaseModel):
    """What is known of a job's work (its attained service always is).

    work: `oracle` the truth; `estimate` what its user declared: the truth times a log-normal error of median
    `estimate_bias` and spread `estimate_sigma`; `none` the same hour for every job.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    work: Literal["oracle", "estimate", "none"] = "estimate"
    estimate_sigma: float = Field(default=0.5, ge=0.0, description="standard deviation of ln(estimate/truth)")
    estimate_bias: float = Field(default=1.0, gt=0.0, description="median of estimate/truth")


def fill(
    requests: NDArray[np.void], knowledge: Knowledge, configurations: Configurations, rng: np.random.Generator
) -> None:
    """Write believed_work, believed_s and backlog_bin of `requests` in place.

    A request whose `believed_work` is already positive (declared by its trace) keeps it under `estimate`.
    """
    rate = _reference_rates(requests, configurations)
    error = knowledge.estimate_bias * np.exp(knowledge.estimate_sigma * rng.standard_normal(requests.size))
    if knowledge.work == "oracle":
        requests["believed_work"] = requests["work"]
    elif knowledge.work == "none":
        requests["believed_work"] = UNKNOWN_S * rate
    else:
        declared = requests["believed_work"] > 0
        requests["believed_work"] = np.where(declared, requests["believed_work"], requests["work"] * error)
    requests["believed_s"] = requests["believed_work"] / np.where(rate > 0, rate, 1.0)
    gpu_bin = np.searchsorted(BELIEF_GPU_EDGES, requests["min_gpus"], "right")
    hour_bin = np.searchsorted(BELIEF_HOUR_EDGES, requests["believed_s"] / 3600.0, "right")
    requests["backlog_bin"] = gpu_bin * (len(BELIEF_HOUR_EDGES) + 1) + hour_bin


def _reference_rates(requests: NDArray[np.void], configurations: Configurations) -> NDArray[np.float64]:
    """[J] work/s of each request's fastest configuration; 0 where it has none."""
    columns = ("job_class", "min_gpus", "max_gpus", "pools")
    kinds = zip(*(requests[column].tolist() for column in columns))
    return np.array([configurations.reference_rate(*kind) for kind in kinds], np.float64)

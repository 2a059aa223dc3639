"""What policies may believe about a job's work: the scenario's `knowledge` applied to the truth, once, before the episode."""

from typing import Final, Literal

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
_ODD: Final = {
    "job_class": 0x9E3779B97F4A7C15,
    "tenant": 0xC2B2AE3D27D4EB4F,
    "min_gpus": 0x165667B19E3779F9,
    "max_gpus": 0xD6E8FEB86659FD93,
}
"""A factor for each whole number in a job's identity."""


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

    A request whose `believed_work` is already positive (declared by its trace) keeps it under `estimate`. A job's
    error depends on the generator's state and on the job itself, never on those around it.
    """
    rate = _reference_rates(requests, configurations)
    error = knowledge.estimate_bias * np.exp(knowledge.estimate_sigma * _normal(_keys(requests), rng))
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


def _keys(requests: NDArray[np.void]) -> NDArray[np.uint64]:
    """[J] a hash of what each job's user submits; equal jobs are told apart by their order."""
    keys = np.zeros(requests.size, np.uint64)
    for column, factor in _ODD.items():
        keys += requests[column].astype(np.uint64) * np.uint64(factor)
    for column in ("submit_s", "work"):
        keys = _mixed(keys ^ (requests[column] + 0.0).view(np.uint64))  # + 0.0: no negative zero
    order = np.argsort(keys, kind="stable")
    places = np.arange(requests.size)
    is_first = np.diff(keys[order], prepend=~keys[order[:1]]) != 0
    twins = np.empty(requests.size, np.uint64)
    twins[order] = places - np.maximum.accumulate(places * is_first)
    return keys + twins


def _normal(keys: NDArray[np.uint64], rng: np.random.Generator) -> NDArray[np.float64]:
    """A standard normal draw for each key (Box and Muller 1958); one draw of the generator salts them all."""
    bits = _mixed(keys ^ rng.integers(2**64, dtype=np.uint64))
    radius, angle = ((word >> np.uint64(11)) * 2.0**-53 for word in (bits, _mixed(bits)))  # in [0, 1)
    return np.asarray(np.sqrt(-2.0 * np.log(1.0 - radius)) * np.cos(2.0 * np.pi * angle))


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit of a key moves half of the result's."""
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))

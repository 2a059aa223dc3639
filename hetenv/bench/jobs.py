"""The jobs that the metrics of an episode count: those submitted in the measured window, as arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hetenv.configurations import NO_POOL, legal_rows
from hetenv.scenario import Compiled
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import JobState

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class MeasuredJobs:
    """Axis: the counted jobs, in job-id order. Times are seconds since the scenario's start."""

    state: NDArray[np.int8]
    """JobState."""
    submit_s: Floats
    first_start_s: Floats
    """inf: never started."""
    end_s: Floats
    """inf: still in the system."""
    left_s: Floats
    """When it left the system; jobs that are still there: the end of the episode."""
    deadline_s: Floats
    """inf: none."""
    ideal_s: Floats
    """Run time on the fastest configuration that the request allows, undisturbed; 0 where it fits nowhere."""
    fair_s: Floats
    """Run time on an equal share of each pool (`fair_run_s`); inf where it fits nowhere."""
    now_s: float
    """End of the episode."""

    @property
    def is_finished(self) -> Flags:
        return np.equal(self.state, JobState.FINISHED)

    @property
    def is_rejected(self) -> Flags:
        return np.equal(self.state, JobState.REJECTED)

    @property
    def is_open(self) -> Flags:
        """Queued or running at the end of the episode."""
        return np.isin(self.state, (JobState.QUEUED, JobState.RUNNING))

    @property
    def jct_s(self) -> Floats:
        """Time in the system so far: end - submit, or the age of a job that is still there."""
        return self.left_s - self.submit_s


def measured_jobs(simulator: Simulator, b: int = 0) -> MeasuredJobs:
    """The counted jobs of simulation b as it stands (normally at the end of its episode)."""
    clock, rules = simulator.state.clock[b], simulator.facts.rules[0]
    n, now_s = int(clock["n_requests"]), float(clock["now"])
    jobs, requests = simulator.state.jobs[b, :n], simulator.facts.requests[b, :n]
    from_s = float(rules["measure_from_s"]) if rules["measure_from_s"] > 0 else -np.inf
    in_window = (requests["submit_s"] >= from_s) & (requests["submit_s"] < rules["measure_to_s"])
    in_system = jobs["state"] != JobState.FUTURE
    left_s = np.where(np.isfinite(jobs["end_s"]), jobs["end_s"], now_s)
    counted = in_window & in_system
    contention = mean_contention(requests["submit_s"], np.where(in_system, left_s, requests["submit_s"]))[counted]
    requests, jobs = requests[counted], jobs[counted]
    ideal_s, fair_s = _run_times(simulator.compiled, requests, contention)
    return MeasuredJobs(
        state=jobs["state"].copy(),
        submit_s=requests["submit_s"].copy(),
        first_start_s=jobs["first_start_s"].copy(),
        end_s=jobs["end_s"].copy(),
        left_s=left_s[counted],
        deadline_s=requests["deadline_s"].copy(),
        ideal_s=ideal_s,
        fair_s=fair_s,
        now_s=now_s,
    )


def mean_contention(submit_s: Floats, left_s: Floats) -> Floats:
    """[J] mean number of jobs in the system over each job's stay, itself included, >= 1 (1 for a stay of no time)."""
    if not submit_s.size:
        return np.zeros(0)
    times, place = np.unique(np.concatenate([submit_s, left_s]), return_inverse=True)
    change = np.zeros(times.size)
    np.add.at(change, place[: submit_s.size], 1.0)
    np.add.at(change, place[submit_s.size :], -1.0)
    job_s = np.concatenate([[0.0], np.cumsum(np.cumsum(change)[:-1] * np.diff(times))])
    stay_s = left_s - submit_s
    shared = job_s[place[submit_s.size :]] - job_s[place[: submit_s.size]]
    mean = np.divide(shared, stay_s, out=np.ones(submit_s.size), where=stay_s > 0)
    return np.asarray(np.maximum(mean, 1.0))


def _run_times(compiled: Compiled, requests: NDArray[np.void], contention: Floats) -> tuple[Floats, Floats]:
    """[J] run time of each request alone on its fastest configuration, and on its fair share."""
    ideal_s, fair_s = np.zeros(requests.size), np.full(requests.size, np.inf)
    if not requests.size:
        return ideal_s, fair_s
    kinds, which = np.unique(requests[["job_class", "min_gpus", "max_gpus", "pools"]], return_inverse=True)
    which = which.reshape(-1)
    for index, kind in enumerate(kinds):
        members = np.flatnonzero(which == index)
        work = requests["work"][members]
        parts = [
            (share, _pool_rates(compiled, phase, kind, contention[members]))
            for phase, share in compiled.configurations.phases_of(int(kind["job_class"]))
        ]
        if all(rates is not None for _, rates in parts):
            ideal_s[members] = sum(share * work / rates[0] for share, rates in parts if rates is not None)
            fair_s[members] = sum(share * work / rates[1] for share, rates in parts if rates is not None)
    return ideal_s, fair_s


def _pool_rates(compiled: Compiled, job_class: int, kind: np.void, contention: Floats) -> tuple[float, Floats] | None:
    """Fastest rate of a kind of request in a class, and its rates [J] on a share of 1/contention of every pool; None: fits nowhere.

    Finish-time fairness (Themis, NSDI 2020) compares with an exclusive 1/N of the cluster. In a pool of G GPUs a job has G/N of
    them, as a larger configuration for part of the time if that is more; the pools' shares add up, at most to the fastest rate.
    """
    rows = compiled.configurations.rows_of(job_class)
    rows = rows[legal_rows(rows, int(kind["min_gpus"]), int(kind["max_gpus"]), int(kind["pools"]))]
    if not rows.size:
        return None
    best, fair = float(rows["rate"].max()), np.zeros(contention.size)
    pool_gpus = compiled.cluster.pool_nodes * compiled.cluster.gpus_per_node
    one_pool = rows[rows["pool_b"] == NO_POOL]
    for pool in np.unique(one_pool["pool_a"]):
        there = one_pool[one_pool["pool_a"] == pool]
        share = np.minimum(1.0, pool_gpus[pool] / contention[:, None] / there["n_gpus"])
        fair += (there["rate"] * share).max(axis=1)
    return best, np.minimum(fair, best) if one_pool.size else np.full(contention.size, best)

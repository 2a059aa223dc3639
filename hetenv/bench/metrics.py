"""Metrics of a finished episode, from the state tables and the TOTAL ledger. Only jobs submitted in the measured window count.

A metric that is undefined (a mean over no job, a share of nothing) is None. Units stand in the names.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from hetenv.bench.jobs import Floats, MeasuredJobs, measured_jobs
from hetenv.objective import Account
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import TOTAL, JobState
from hetenv.units import GIGA, JOULE_PER_KWH

SLOWDOWN_FLOOR_S: Final = 10.0
"""Run times below this count as this in the bounded slowdown."""
Value = float | int | None


@dataclass(frozen=True)
class Metric:
    """What a metric is, and which way is better: -1 less, +1 more, 0 neither."""

    meaning: str
    better: int = -1


METRICS: Final[dict[str, Metric]] = {
    "objective": Metric("the scenario's objective: minus the return of the measured window"),
    "n_jobs": Metric("jobs submitted, rejected ones included", 0),
    "n_finished": Metric("of these, completed", 1),
    "n_unfinished": Metric("queued or running at the end"),
    "n_rejected": Metric("fit nowhere in this cluster", 0),
    "n_crashed": Metric("ended by a crash of their own", 0),
    "n_cancelled": Metric("withdrawn by their users", 0),
    "finished_share": Metric("finished over jobs not rejected", 1),
    "jct_mean_s": Metric("completion time, end - submit, over finished jobs"),
    "jct_p50_s": Metric("median of the same"),
    "jct_p99_s": Metric("99th percentile of the same"),
    "jct_lower_bound_mean_s": Metric(
        "time in the system so far over all jobs not rejected: ages of unfinished ones count"
    ),
    "makespan_s": Metric("first submit to last end; none while a job is unfinished"),
    "wait_mean_s": Metric("first start - submit over jobs that started"),
    "wait_p99_s": Metric("99th percentile of the same"),
    "wait_lower_bound_mean_s": Metric(
        "the same over all jobs not rejected: time so far of those that never started counts"
    ),
    "bounded_slowdown_mean": Metric(
        "max(1, completion time / max(10 s, run time on the fastest configuration)), finished jobs"
    ),
    "bounded_slowdown_p99": Metric("99th percentile of the same"),
    "finish_time_fairness_mean": Metric(
        "completion time over run time on an equal share of the cluster, finished jobs"
    ),
    "finish_time_fairness_p99": Metric("99th percentile of the same"),
    "unfair_share": Metric("finished jobs slower than on an equal share"),
    "n_deadline_misses": Metric("jobs finished after their deadline, or past it and unfinished"),
    "deadline_miss_share": Metric("the same over jobs with a deadline that finished or are past it"),
    "utilisation_available": Metric("held GPU seconds over those of nodes that were up", 1),
    "utilisation_nominal": Metric("held GPU seconds over those of all nodes, up or not", 1),
    "goodput_available": Metric("productive GPU seconds whose work was not lost, over those of nodes that were up", 1),
    "available_gpu_s": Metric("GPU seconds of nodes that were up", 0),
    "held_gpu_s": Metric("GPU seconds allocated to jobs", 0),
    "overhead_gpu_s": Metric("GPU seconds held while starting, restoring or saving"),
    "lost_gpu_s": Metric("productive GPU seconds whose work was rolled back"),
    "n_started": Metric("starts from the queue", 0),
    "n_preempted": Metric("preemptions by command", 0),
    "n_reconfigured": Metric("resizes, migrations and replans of running jobs", 0),
    "n_evicted": Metric("jobs stopped by a capacity event"),
    "n_degraded": Metric("jobs that went on smaller after a failure", 0),
    "energy_kwh": Metric("drawn by the sites, PUE included"),
    "renewable_kwh": Metric("the part covered by the sites' own renewable power", 1),
    "renewable_share": Metric("renewable over all energy", 1),
    "battery_kwh": Metric("energy that batteries gave", 0),
    "grid_kwh": Metric("energy from the grid: energy - renewable - battery"),
    "exported_kwh": Metric("renewable energy sold", 0),
    "curtailed_kwh": Metric("renewable energy that nobody used, stored or bought"),
    "carbon_kg": Metric("grid energy times average carbon intensity"),
    "marginal_carbon_kg": Metric("grid energy times marginal carbon intensity"),
    "grid_cost_usd": Metric("grid energy times price"),
    "rent_usd": Metric("rent of held GPUs, where pools have one"),
    "cost_usd": Metric("grid cost, demand charge, rent and wide-area traffic less export income"),
    "wan_gbytes": Metric("checkpoints and data sets moved between sites", 0),
    "n_illegal": Metric("commands that were illegal"),
    "elapsed_s": Metric("simulated time in the measured window", 0),
}


def metrics(simulator: Simulator, b: int = 0) -> dict[str, Value]:
    """All METRICS of simulation b as it stands, normally at the end of its episode."""
    jobs, ledger = measured_jobs(simulator, b), simulator.state.ledger[b, TOTAL]
    weights = simulator.compiled.scenario.objective.vector()
    found: dict[str, Value] = {"objective": float(np.dot(weights, ledger))}
    found |= _counts(jobs) | _times(jobs) | _deadlines(jobs)
    found |= _capacity(ledger, simulator.compiled.cluster.n_gpus) | _energy(ledger)
    for account in (
        Account.N_STARTED,
        Account.N_PREEMPTED,
        Account.N_RECONFIGURED,
        Account.N_EVICTED,
        Account.N_DEGRADED,
        Account.N_ILLEGAL,
    ):
        found[account.name.lower()] = int(ledger[account])
    return {name: found[name] for name in METRICS}


def _counts(jobs: MeasuredJobs) -> dict[str, Value]:
    n_jobs, n_rejected, n_finished = jobs.state.size, int(jobs.is_rejected.sum()), int(jobs.is_finished.sum())
    return {
        "n_jobs": n_jobs,
        "n_finished": n_finished,
        "n_unfinished": int(jobs.is_open.sum()),
        "n_rejected": n_rejected,
        "n_crashed": int((jobs.state == JobState.CRASHED).sum()),
        "n_cancelled": int((jobs.state == JobState.CANCELLED).sum()),
        "finished_share": _ratio(n_finished, n_jobs - n_rejected),
    }


def _times(jobs: MeasuredJobs) -> dict[str, Value]:
    finished, accepted = jobs.is_finished, ~jobs.is_rejected
    jct_s = jobs.jct_s[finished]
    started = np.isfinite(jobs.first_start_s)
    wait_s = np.where(started, jobs.first_start_s, jobs.left_s) - jobs.submit_s
    slowdown = np.maximum(1.0, jct_s / np.maximum(jobs.ideal_s[finished], SLOWDOWN_FLOOR_S))
    fair_s = jobs.fair_s[finished]
    fairness = jct_s[fair_s > 0] / fair_s[fair_s > 0]
    has_makespan = accepted.any() and not jobs.is_open.any()
    return {
        "jct_mean_s": _mean(jct_s),
        "jct_p50_s": _percentile(jct_s, 50),
        "jct_p99_s": _percentile(jct_s, 99),
        "jct_lower_bound_mean_s": _mean(jobs.jct_s[accepted]),
        "makespan_s": float(jobs.left_s[accepted].max() - jobs.submit_s[accepted].min()) if has_makespan else None,
        "wait_mean_s": _mean(wait_s[started]),
        "wait_p99_s": _percentile(wait_s[started], 99),
        "wait_lower_bound_mean_s": _mean(wait_s[accepted]),
        "bounded_slowdown_mean": _mean(slowdown),
        "bounded_slowdown_p99": _percentile(slowdown, 99),
        "finish_time_fairness_mean": _mean(fairness),
        "finish_time_fairness_p99": _percentile(fairness, 99),
        "unfair_share": _mean((fairness > 1.0).astype(np.float64)),
    }


def _deadlines(jobs: MeasuredJobs) -> dict[str, Value]:
    has_deadline = np.isfinite(jobs.deadline_s)
    is_past = (jobs.left_s > jobs.deadline_s) & (jobs.is_finished | jobs.is_open)
    is_decided = has_deadline & (jobs.is_finished | is_past)
    n_misses = int((has_deadline & is_past).sum())
    return {"n_deadline_misses": n_misses, "deadline_miss_share": _ratio(n_misses, int(is_decided.sum()))}


def _capacity(ledger: Floats, n_gpus: int) -> dict[str, Value]:
    held, available = float(ledger[Account.HELD_GPU_S]), float(ledger[Account.AVAILABLE_GPU_S])
    elapsed_s, lost = float(ledger[Account.ELAPSED_S]), float(ledger[Account.LOST_GPU_S])
    useful = max(0.0, float(ledger[Account.PRODUCTIVE_GPU_S]) - lost)
    return {
        "utilisation_available": _share(held, available),
        "utilisation_nominal": _share(held, n_gpus * elapsed_s),
        "goodput_available": _share(useful, available),
        "available_gpu_s": available,
        "held_gpu_s": held,
        "overhead_gpu_s": float(ledger[Account.OVERHEAD_GPU_S]),
        "lost_gpu_s": lost,
        "elapsed_s": elapsed_s,
    }


def _energy(ledger: Floats) -> dict[str, Value]:
    energy_j, renewable_j = float(ledger[Account.ENERGY_J]), float(ledger[Account.RENEWABLE_J])
    grid_cost_usd, rent_usd = float(ledger[Account.GRID_COST_USD]), float(ledger[Account.RENT_USD])
    others_usd = float(ledger[Account.DEMAND_USD] + ledger[Account.WAN_USD] - ledger[Account.EXPORT_USD])
    return {
        "energy_kwh": energy_j / JOULE_PER_KWH,
        "renewable_kwh": renewable_j / JOULE_PER_KWH,
        "renewable_share": _share(renewable_j, energy_j),
        "battery_kwh": float(ledger[Account.BATTERY_J]) / JOULE_PER_KWH,
        "grid_kwh": float(ledger[Account.GRID_J]) / JOULE_PER_KWH,
        "exported_kwh": float(ledger[Account.EXPORTED_J]) / JOULE_PER_KWH,
        "curtailed_kwh": float(ledger[Account.CURTAILED_J]) / JOULE_PER_KWH,
        "carbon_kg": float(ledger[Account.CARBON_KG]),
        "marginal_carbon_kg": float(ledger[Account.MARGINAL_CARBON_KG]),
        "grid_cost_usd": grid_cost_usd,
        "rent_usd": rent_usd,
        "cost_usd": grid_cost_usd + rent_usd + others_usd,
        "wan_gbytes": float(ledger[Account.WAN_BYTES]) / GIGA,
    }


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None


def _percentile(values: Floats, percent: float) -> float | None:
    return float(np.percentile(values, percent)) if values.size else None


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _share(part: float, whole: float) -> float | None:
    """part/whole, at most 1 (sums of equal things in another order may differ in the last bit)."""
    return min(1.0, part / whole) if whole > 0 else None

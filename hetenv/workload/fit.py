"""Synthetic workloads fitted to traces: what may be shared of a trace whose rows may not.

Arrivals: the `bursty` process. Its rate is the trace's mean; amplitude and peak hour are the first harmonic of the mean
counts by hour of the day (none for less than two days); dispersion and burst span are those, of a grid, whose draws come
nearest to the trace's gaps (KS distance; in whole seconds where the trace's are) and hourly index of dispersion. Run
times: for each range of GPU counts a mixture of up to three log-normals (expectation-maximisation, number by BIC), cut at
the observed extremes, besides the share of zero run times. Count series have no run times: their mean follows from
Little's law (jobs started and not ended over the rate of starts), GPU counts are the two of 1 and 8 that have their mean.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import TraceError
from hetenv.traces import CountSeries, Outcome, SideTable, Trace
from hetenv.units import DAY_S, HOUR_S
from hetenv.workload import choices
from hetenv.workload.arrivals import BurstyArrivals
from hetenv.workload.synthetic import SyntheticWorkload

GPU_EDGES: Final = (1, 4, 8)
"""Upper ends of the ranges of GPU counts; the last range has none."""
BURST_SPANS_S: Final = (1.0, 10.0, 60.0, 300.0, 1800.0)
MAX_DISPERSION: Final = 1e4
COMPONENTS: Final = 3
MIN_JOBS: Final = 20
"""For each component of a mixture."""
EM_STEPS: Final = 200
AT_THE_END: Final = 0.999
"""Share of its work at which a failed job fails: recorded run times end where the job did."""
CLASS: Final = "traced"
DISPERSION_WEIGHT: Final = 0.1
"""Of the log ratio of hourly dispersions against a KS distance."""
Array = NDArray[np.float64]


def fit(found: Trace | SideTable, seed: int = 0) -> dict[str, Any]:
    """Sections of a scenario, and how far their draws are from the trace.

    Returns:
        {"scenario": {"classes", "workload", "events"}, "fit": distances and what was measured}. Equal seeds, equal results.

    Raises:
        TraceError: no jobs with run times and no counts of submitted jobs, or fewer than two submits.
    """
    rng = np.random.default_rng(seed)
    if isinstance(found, Trace):
        return _of_trace(found, rng)
    if isinstance(found, CountSeries) and "submit_gpu_job" in found.columns:
        return _of_counts(found, rng)
    raise TraceError(f"{', '.join(found.report.files)}: neither jobs nor counts of submitted jobs; there is nothing to fit")


def ks_distance(one: Array, other: Array) -> float:
    """Largest difference of two samples' distribution functions (Kolmogorov-Smirnov), 0..1."""
    one, other = np.sort(one), np.sort(other)
    at = np.concatenate([one, other])
    below = np.searchsorted(one, at, "right") / one.size - np.searchsorted(other, at, "right") / other.size
    return float(np.abs(below).max())


def _of_trace(trace: Trace, rng: np.random.Generator) -> dict[str, Any]:
    rows = trace.rows[np.isfinite(trace.rows["duration_s"])]
    if rows.size < 2:
        raise TraceError(f"{', '.join(trace.report.files)}: {rows.size} jobs with a run time; two are needed")
    submit_s = rows["submit_s"]
    gaps_s = np.diff(submit_s)
    if not gaps_s.any():
        raise TraceError(f"{', '.join(trace.report.files)}: all jobs were submitted at once; there are no arrivals to fit")
    arrivals, measured = _arrivals(submit_s, np.ones(rows.size), gaps_s, rng)
    jobs = _jobs(rows["gpus"], rows["duration_s"])
    made = SyntheticWorkload.model_validate({"arrivals": arrivals, "jobs": jobs})
    gpus, duration_s = _sample(made, rows.size, rng)
    failed, cancelled = _failures(rows["outcome"])
    goodness = {
        **measured,
        "ks_duration": ks_distance(rows["duration_s"], duration_s),
        "gpu_mix_error": _mix_error(rows["gpus"], gpus),
        "gpu_hours_per_job": float((rows["gpus"] * rows["duration_s"]).mean() / HOUR_S),
        "gpu_hours_per_job_of_the_fit": float((gpus * duration_s).mean() / HOUR_S),
    }
    return {"scenario": _sections(arrivals, jobs, failed, cancelled), "fit": _rounded(goodness)}


def _of_counts(series: CountSeries, rng: np.random.Generator) -> dict[str, Any]:
    submitted, started, ended = (series.columns[f"{verb}_gpu_job"] for verb in ("submit", "start", "end"))
    at_s = (series.when - series.when.min().astype("datetime64[D]")) / np.timedelta64(1, "s")
    if at_s.size < 2 or not submitted.any():
        raise TraceError(f"{', '.join(series.report.files)}: no counts of submitted jobs; there is nothing to fit")
    arrivals, measured = _arrivals(at_s, submitted, None, rng)
    running = np.cumsum(started - ended)
    mean_running, step_s = float((running - running.min()).mean()), float(np.median(np.diff(at_s)))
    duration_s = max(mean_running / max(float(started.mean()), 1e-12) * step_s, 1.0)
    mean_gpus = float(np.clip(series.columns["submit_gpu_num"].sum() / submitted.sum(), 1.0, 8.0))
    counts = {1: round((8.0 - mean_gpus) / 7.0, 6), 8: round((mean_gpus - 1.0) / 7.0, 6)}
    duration = {"kind": "exponential", "mean_s": round(duration_s, 3)}
    jobs = [{"job_class": CLASS, "duration": duration, "gpus": {"kind": "rigid", "counts": counts}}]
    return {"scenario": _sections(arrivals, jobs, 0.0, 0.0), "fit": _rounded({**measured, "mean_gpus": mean_gpus})}


def _arrivals(
    at_s: Array, jobs: Array, gaps_s: Array | None, rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, float]]:
    """The arrival section and its distances.

    Args:
        at_s: [R] ascending, s since a midnight.
        jobs: [R] submitted at (or in the step from) each.
        gaps_s: between submits; None where only counts are known: then counts per step are compared.
    """
    first_h = int(at_s[0] // HOUR_S)
    hour = (at_s // HOUR_S).astype(np.int64) - first_h
    hourly = np.bincount(hour, jobs).astype(np.float64)
    horizon_s = max(float(at_s[-1] - at_s[0]), HOUR_S)
    amplitude, peak_hour, expected = _profile(hourly, first_h)
    wanted = min(max(float(((hourly - expected) ** 2).mean() / expected.mean()), 1.0), MAX_DISPERSION)
    section = {
        "kind": "bursty",
        "rate_per_h": round(float(jobs.sum()) / horizon_s * HOUR_S, 6),
        "amplitude": round(amplitude, 4),
        "peak_hour": round(peak_hour, 3) % 24.0,
        "start_hour": round(float(at_s[0] / HOUR_S % 24.0), 3) % 24.0,
    }
    is_whole = bool(np.all(at_s == np.floor(at_s)))
    best = (np.inf, 1.0, 1.0)
    for dispersion in sorted({wanted**power for power in (0.0, 0.25, 0.5, 0.75, 1.0)}):
        for span_s in BURST_SPANS_S:
            trial = BurstyArrivals.model_validate({**section, "dispersion": dispersion, "burst_span_s": span_s})
            drawn = trial.draw(np.random.default_rng(rng.integers(2**32)), horizon_s)
            if drawn.size < 2:
                continue
            found = _dispersion(drawn, HOUR_S, horizon_s)
            if gaps_s is None:
                step_s = float(np.median(np.diff(at_s)))
                distance = ks_distance(jobs, np.bincount((drawn // step_s).astype(np.int64)).astype(np.float64))
            else:
                distance = ks_distance(gaps_s, np.diff(np.floor(drawn) if is_whole else drawn))
            off = distance + DISPERSION_WEIGHT * abs(np.log(max(found, 1e-3) / wanted))
            if off < best[0]:
                best, measured = (off, dispersion, span_s), (distance, found)
    if not np.isfinite(best[0]):
        raise TraceError("the trace holds too few jobs to fit arrivals")
    section |= {"dispersion": round(best[1], 3), "burst_span_s": best[2]}
    name = "ks_jobs_per_step" if gaps_s is None else "ks_interarrival"
    return section, {name: measured[0], "dispersion_hourly": wanted, "dispersion_hourly_of_the_fit": measured[1]}


def _profile(hourly: Array, first_h: int) -> tuple[float, float, Array]:
    """Amplitude and peak hour of the first harmonic of counts by hour of the day, and the counts that they expect."""
    clock = (first_h + np.arange(hourly.size)) % 24
    if hourly.size < 2 * DAY_S / HOUR_S:
        return 0.0, 0.0, np.full(hourly.size, hourly.mean())
    by_hour = np.bincount(clock, hourly, 24) / np.bincount(clock, minlength=24)
    angle = 2.0 * np.pi * (np.arange(24) + 0.5) / 24.0
    wave = complex((by_hour * np.exp(1j * angle)).sum())
    amplitude = min(2.0 * abs(wave) / float(by_hour.sum()), 1.0)
    peak = float(np.angle(wave))
    return amplitude, peak / (2.0 * np.pi) * 24.0 % 24.0, hourly.mean() * (1.0 + amplitude * np.cos(angle[clock] - peak))


def _dispersion(times_s: Array, window_s: float, horizon_s: float) -> float:
    counts = np.bincount((times_s // window_s).astype(np.int64), minlength=int(horizon_s // window_s) + 1)
    return float(counts.var() / counts.mean())


def _jobs(gpus: NDArray[np.int32], duration_s: Array) -> list[dict[str, Any]]:
    """A mix entry for each range of GPU counts and component of its run times."""
    found = []
    for low, high in zip((0, *GPU_EDGES), (*GPU_EDGES, np.inf)):
        mine = (gpus > low) & (gpus <= high)
        if not mine.any():
            continue
        sizes, counts = np.unique(gpus[mine], return_counts=True)
        for weight, duration in _durations(duration_s[mine]):
            asked = {"kind": "rigid", "counts": {int(size): int(count) for size, count in zip(sizes, counts)}}
            share = round(float(mine.mean()) * weight, 8)
            if share > 0.0:
                found.append({"job_class": CLASS, "share": share, "duration": duration, "gpus": asked})
    return found


def _durations(duration_s: Array) -> list[tuple[float, dict[str, Any]]]:
    """Weights and sections of a mixture."""
    positive = duration_s[duration_s > 0]
    parts: list[tuple[float, dict[str, Any]]] = []
    if positive.size < duration_s.size:
        parts.append((1.0 - positive.size / duration_s.size, {"kind": "fixed", "value_s": 0.0}))
    if positive.size:
        bounds = {"min_s": float(positive.min()), "max_s": float(positive.max())}
        for weight, mean, sigma in _lognormals(np.log(positive)):
            section = {"kind": "lognormal", "median_s": round(float(np.exp(mean)), 6), "sigma": round(min(sigma, 5.0), 6), **bounds}
            parts.append((weight * positive.size / duration_s.size, section))
    return parts


def _lognormals(logs: Array) -> list[tuple[float, float, float]]:
    """(weight, mean, deviation) of a normal mixture of the logarithms; the number of components has the least BIC."""
    best, least = [(1.0, float(logs.mean()), float(logs.std()))], np.inf
    for n in range(1, min(COMPONENTS, max(logs.size // MIN_JOBS, 1)) + 1):
        weight, mean, sigma, likelihood = _expect(logs, n)
        bic = (3 * n - 1) * np.log(logs.size) - 2.0 * likelihood
        if bic < least:
            least, best = bic, [(float(w), float(m), float(s)) for w, m, s in zip(weight, mean, sigma)]
    return best


def _expect(logs: Array, n: int) -> tuple[Array, Array, Array, float]:
    """Expectation-maximisation from quantile starts: weights, means, deviations, log likelihood."""
    floor = max(1e-3, 0.02 * float(logs.std()))
    mean = np.quantile(logs, (np.arange(n) + 0.5) / n)
    sigma, weight = np.full(n, max(float(logs.std()) / n, floor)), np.full(n, 1.0 / n)
    likelihood = -np.inf
    for _ in range(EM_STEPS):
        density = weight * np.exp(-0.5 * ((logs[:, None] - mean) / sigma) ** 2) / (sigma * np.sqrt(2.0 * np.pi)) + 1e-300
        total = density.sum(axis=1, keepdims=True)
        part = density / total
        before, likelihood = likelihood, float(np.log(total).sum())
        size = np.maximum(part.sum(axis=0), 1e-12)
        weight, mean = size / logs.size, (part * logs[:, None]).sum(axis=0) / size
        sigma = np.maximum(np.sqrt((part * (logs[:, None] - mean) ** 2).sum(axis=0) / size), floor)
        if likelihood - before < 1e-6 * logs.size:
            break
    return weight, mean, sigma, likelihood


def _sample(workload: SyntheticWorkload, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """GPU counts and run times of n jobs of a mix."""
    kinds = choices.pick(rng, np.array([mix.share for mix in workload.jobs]), n)
    gpus, duration_s = np.zeros(n), np.zeros(n)
    for index, mix in enumerate(workload.jobs):
        mine = kinds == index
        gpus[mine] = choices.draw(rng, mix.gpus.reference, int(mine.sum()))
        duration_s[mine] = mix.duration.draw(rng, int(mine.sum()))
    return gpus, duration_s


def _mix_error(one: NDArray[np.int32], other: Array) -> float:
    """Half the summed difference of shares by GPU count (total variation), 0..1."""
    sizes = np.union1d(one, other)
    return 0.5 * float(sum(abs((one == size).mean() - (other == size).mean()) for size in sizes))


def _failures(outcome: NDArray[np.int8]) -> tuple[float, float]:
    """Shares of failed and cancelled jobs among those of known end."""
    known = (outcome != Outcome.UNKNOWN) & (outcome != Outcome.RUNNING)
    if not known.any():
        return 0.0, 0.0
    ended = outcome[known]
    return float(np.isin(ended, (Outcome.FAILED, Outcome.TIMEOUT)).mean()), float((ended == Outcome.CANCELLED).mean())


def _sections(arrivals: dict[str, Any], jobs: list[dict[str, Any]], failed: float, cancelled: float) -> dict[str, Any]:
    sizes = sorted({size for mix in jobs for size in mix["gpus"]["counts"]})
    events = []
    if failed or cancelled:
        shares = {"failed_share": round(failed, 6), "cancelled_share": round(cancelled, 6)}
        events.append({"kind": "user_failures", **shares, "failed_at": AT_THE_END, "cancelled_at": AT_THE_END})
    return {
        "classes": {CLASS: {"kind": "fixed", "gpu_counts": sizes}},
        "workload": {"kind": "synthetic", "arrivals": arrivals, "jobs": jobs},
        "events": events,
    }


def _rounded(numbers: dict[str, float]) -> dict[str, float]:
    return {name: round(float(value), 6) for name, value in numbers.items()}

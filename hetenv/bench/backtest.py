"""Backtests: a recorded queue run again under a stated policy, and how far waits and utilisation are from what was recorded."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hetenv.bench.reference_case import pool_of, scenario_of, starts_and_ends
from hetenv.bench.run import simulated
from hetenv.errors import ScenarioError, TraceError
from hetenv.objective import Account
from hetenv.perf.scores import spearman
from hetenv.policy import make_policy
from hetenv.sim.tables import TOTAL
from hetenv.traces import Trace, trace_format

Floats = NDArray[np.float64]

SHOWN: Final = (50, 90, 99)
"""Percentiles of waits."""
HEADER_SIZES: Final = ("MaxProcs", "MaxNodes")
"""Of a log's header, where it has one: the machine."""
LIMIT_FACTOR: Final = 1000.0
"""The simulation may last this many times as long as the record."""


def backtest(path: Path, format: str, policy: str, gpus: int | None = None) -> dict[str, Any]:
    """Run a log's jobs under a policy on one pool of equal GPUs, from an empty cluster; waits and utilisation, with errors.

    The policy believes declared run times (the true one where a job declares none). Jobs without a run time or a wait, and jobs
    larger than the pool, are left out of both sides and counted. Error = simulated - recorded.

    Args:
        gpus: size of the pool; default: what the log's header states, else the most that were held at once.

    Returns:
        n_jobs, left_out (reason -> jobs), n_gpus and where from, wait_s (recorded, simulated: mean and percentiles; error: bias,
        mean absolute, root mean square, rank correlation), utilisation (recorded, simulated, error) from the first submit to the
        last recorded end, and makespan_s.

    Raises:
        TraceError: the log cannot be read, or records no waits.
        ScenarioError: an unknown policy, or one that leaves jobs waiting for good.
    """
    trace = trace_format(format).load(path)
    if not isinstance(trace, Trace):
        raise TraceError(f"{path}: as {format} it lists no jobs, so that there are no waits to compare with")
    n_gpus, source = _size(trace, gpus)
    rows, left_out = _usable(trace, n_gpus, path)
    submit_s, run_s, wait_s = rows["submit_s"] - rows["submit_s"][0], rows["duration_s"], rows["wait_s"]
    last_s = float((submit_s + wait_s + run_s).max())
    limits = rows["limit_s"]
    rules = {
        "estimate_s": [None if not known > 0 else known for known in limits.tolist()],
        "knowledge": {"work": "estimate", "estimate_sigma": 0.0},
        "measure": {"to_s": max(last_s, 1e-9)},
        "end": {"kind": "drain", "limit_s": LIMIT_FACTOR * max(last_s, 1.0)},
        "horizon_s": float(submit_s[-1]) + 1.0,
    }
    compiled = scenario_of("backtest", rows["gpus"], submit_s, run_s, pool_of(n_gpus), rules).compile()
    planner = make_policy(policy, "backtest")
    planner.reset(0)
    simulator = simulated(compiled, planner, 0)
    start_s, end_s = starts_and_ends(simulator, np.arange(rows.size))
    if not np.isfinite(end_s).all():
        raise ScenarioError(f"{path}: under {policy} {int((~np.isfinite(end_s)).sum())} jobs never ended")
    held, available = simulator.state.ledger[0, TOTAL, [Account.HELD_GPU_S, Account.AVAILABLE_GPU_S]].tolist()
    recorded = float((run_s * rows["gpus"]).sum()) / (n_gpus * max(last_s, 1e-9))
    return {
        "format": format,
        "policy": policy,
        "n_jobs": int(rows.size),
        "left_out": left_out,
        "n_gpus": n_gpus,
        "n_gpus_from": source,
        "n_with_declared_run_time": int((limits > 0).sum()),
        "wait_s": _waits(start_s - submit_s, wait_s),
        "utilisation": {"recorded": recorded, "simulated": held / available, "error": held / available - recorded},
        "makespan_s": {"recorded": last_s, "simulated": float(end_s.max())},
    }


def _size(trace: Trace, gpus: int | None) -> tuple[int, str]:
    if gpus is not None:
        return gpus, "stated"
    header = trace.statistics.get("header", {})
    for key in HEADER_SIZES:
        if str(header.get(key, "")).isdigit() and int(header[key]) > 0:
            return int(header[key]), f"{key} of the log's header"
    return _peak(trace.rows), "the most held at once in the log"


def _peak(rows: NDArray[np.void]) -> int:
    """Most GPUs held at once, as recorded; ends come before starts of the same time."""
    known = rows[np.isfinite(rows["duration_s"]) & np.isfinite(rows["wait_s"])]
    start_s = known["submit_s"] + known["wait_s"]
    when = np.concatenate([start_s + known["duration_s"], start_s])
    change = np.concatenate([-known["gpus"], known["gpus"]]).astype(np.int64)
    held = np.cumsum(change[np.argsort(when, kind="stable")])
    return int(max(held.max(initial=1), known["gpus"].max(initial=1)))


def _usable(trace: Trace, n_gpus: int, path: Path) -> tuple[NDArray[np.void], dict[str, int]]:
    """The rows that both sides count, by submit time, and how many were left out why."""
    rows = trace.rows
    left_out = dict(trace.report.dropped)
    kept = np.ones(rows.size, bool)
    for reason, bad in (
        ("no run time", ~np.isfinite(rows["duration_s"])),
        ("no recorded wait", ~np.isfinite(rows["wait_s"])),
        (f"more GPUs than the pool has ({n_gpus})", rows["gpus"] > n_gpus),
    ):
        if (bad & kept).any():
            left_out[reason] = int((bad & kept).sum())
        kept &= ~bad
    if not np.isfinite(rows["wait_s"]).any():
        raise TraceError(f"{path}: the log records no waits, so that there is nothing to compare with")
    if not kept.any():
        raise TraceError(f"{path}: no job is left to run ({', '.join(f'{reason}: {n}' for reason, n in left_out.items())})")
    return rows[kept], {reason: n for reason, n in left_out.items() if n}


def _waits(simulated_s: Floats, recorded_s: Floats) -> dict[str, Any]:
    error = simulated_s - recorded_s
    return {
        "recorded": _summary(recorded_s),
        "simulated": _summary(simulated_s),
        "error": {
            "bias_s": float(error.mean()),
            "relative_bias": float(error.mean() / recorded_s.mean()) if recorded_s.mean() > 0 else None,
            "mean_absolute_s": float(np.abs(error).mean()),
            "median_absolute_s": float(np.median(np.abs(error))),
            "root_mean_square_s": float(np.sqrt(np.square(error).mean())),
            "rank_correlation": spearman(simulated_s, recorded_s),
        },
    }


def _summary(wait_s: Floats) -> dict[str, float]:
    return {"mean_s": float(wait_s.mean())} | {f"p{share}_s": float(np.percentile(wait_s, share)) for share in SHOWN}

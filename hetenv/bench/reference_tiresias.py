"""Form `tiresias`: seven schedules of Tiresias' simulator (SymbioticLab/Tiresias, `--scheme=count`), by each job's completion time.

The folder holds cluster.json (total_gpus, dlas_queue_limits_gpu_s), trace.csv (job_id, arrival_s, gpus, duration_s) and
expected_jct.csv (policy, job_id, jct_s). Settings: clock `event`, one pool without placement, no overheads, run times known.
"""

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.bench.reference_case import (
    Floats,
    chosen,
    column,
    compared,
    finished,
    pool_of,
    refuse_replay,
    scenario_of,
    starts_and_ends,
    submit_order,
)
from hetenv.errors import TraceError
from hetenv.policy import AnyPolicy, agents_package, make_policy
from hetenv.traces import csv_file

NAME: Final = "tiresias"
LIMITS: Final = "dlas_queue_limits_gpu_s"
COLUMNS: Final = ("job_id", "arrival_s", "gpus", "duration_s")
REGISTERED: Final = {
    "fifo": "fifo",
    "fjf": "first_fit",
    "sjf": "smallest_first",
    "shortest": "srpt",
    "shortest-gpu": "srsf",
}
"""Schedule -> policy. (Its `sjf` is smallest first, with preemption.)"""
POLICIES: Final = (*REGISTERED, "dlas", "dlas-gpu")


def recognises(folder: Path) -> bool:
    """Whether the cluster has queue limits, and the trace stated run times."""
    return LIMITS in cluster_of(folder) and (folder / "trace.csv").is_file() and (folder / "expected_jct.csv").is_file()


def cluster_of(folder: Path) -> dict[str, Any]:
    """cluster.json; empty where there is none.

    Raises:
        TraceError: it is no JSON object.
    """
    path = folder / "cluster.json"
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TraceError(f"{path}: cannot be read as JSON: {error}") from None
    if not isinstance(found, dict):
        raise TraceError(f"{path}: must be an object with keys such as total_gpus")
    return found


def run(folder: Path, policy: str | None, replay: bool) -> list[dict[str, Any]]:
    """One row per policy: n_jobs, max_abs_diff_s, mean_jct_s, expected_mean_jct_s, makespan_s (first arrival to last end)."""
    refuse_replay(folder, replay, NAME)
    cluster, path = cluster_of(folder), folder / "trace.csv"
    trace = csv_file.read(path, COLUMNS)
    submit_s, gpus, duration_s = (column(path, trace, name) for name in COLUMNS[1:])
    expected = expected_jct_s(folder, trace.cells["job_id"])
    pool = pool_of(positive(folder, cluster, "total_gpus"))
    scenario = scenario_of(NAME, gpus, submit_s, duration_s, pool, {"knowledge": {"work": "oracle"}})
    rows = []
    for name in chosen(policy, [name for name in POLICIES if name in expected], NAME):
        simulator = finished(scenario, _planner(name, cluster[LIMITS]))
        _, end_s = starts_and_ends(simulator, submit_order(submit_s))
        rows.append(compared(name, end_s - submit_s, expected[name], float(end_s.max() - submit_s.min())))
    return rows


def _planner(name: str, limits: list[float]) -> AnyPolicy:
    if name in REGISTERED:
        return make_policy(REGISTERED[name])
    by_gpus = name == "dlas-gpu"
    planner: AnyPolicy = agents_package().DiscretisedLas(name, by_gpus, tuple(limits), mixed_units=by_gpus)
    return planner


def positive(folder: Path, cluster: dict[str, Any], key: str) -> int:
    """A whole number > 0 of cluster.json."""
    value = cluster.get(key)
    if not isinstance(value, int) or value <= 0:
        raise TraceError(f"{folder / 'cluster.json'}: {key} must be a whole number > 0 (got {value!r})")
    return value


def expected_jct_s(folder: Path, job_ids: list[str]) -> dict[str, Floats]:
    """Policy -> [J] completion times of expected_jct.csv, in the order of the trace.

    Raises:
        TraceError: a policy lacks a job of the trace, or has one that is not in it.
    """
    path = folder / "expected_jct.csv"
    table = csv_file.read(path, ("policy", "job_id", "jct_s"))
    place = {job: index for index, job in enumerate(job_ids)}
    if len(place) < len(job_ids):
        raise TraceError(f"{folder / 'trace.csv'}: a job_id stands in two rows; give each job its own")
    found: dict[str, Floats] = {}
    for policy, job, jct_s in zip(table.cells["policy"], table.cells["job_id"], column(path, table, "jct_s").tolist()):
        if job not in place:
            raise TraceError(f"{path}: job {job!r} is not in trace.csv")
        found.setdefault(policy, np.full(len(job_ids), np.nan))[place[job]] = jct_s
    for policy, times in found.items():
        if np.isnan(times).any():
            raise TraceError(f"{path}: {policy} lacks job {job_ids[int(np.flatnonzero(np.isnan(times))[0])]!r}")
    return found

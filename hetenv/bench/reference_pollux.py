"""Form `pollux`: Tiresias' policy in the simulator of Pollux (petuum/adaptdl, branch osdi21-artifact), by completion times.

The folder holds cluster.json (nodes, gpus_per_node, round_s, restart_delay_s), trace.csv (job_id, arrival_s, gpus,
isolated_duration_s) and expected_jct.csv (policy, job_id, jct_s). Settings: clock `round`, with no decision at time 0; a pause of
restart_delay_s at each start; run times known. The original steps through epochs at measured speeds that depend on the placement;
here a job runs for its isolated duration wherever it is, so that the mean agrees to about 0.05 % and single jobs to a few per cent.
Its policies that choose sizes (Optimus, Pollux) are not run.
"""

from pathlib import Path
from typing import Any, Final

from hetenv.bench.reference_case import (
    chosen,
    column,
    compared,
    finished,
    refuse_replay,
    scenario_of,
    starts_and_ends,
    submit_order,
)
from hetenv.bench.reference_tiresias import cluster_of, expected_jct_s, positive
from hetenv.policy import agents_package
from hetenv.traces import csv_file

NAME: Final = "pollux"
COLUMNS: Final = ("job_id", "arrival_s", "gpus", "isolated_duration_s")
KEYS: Final = ("nodes", "gpus_per_node", "round_s", "restart_delay_s")
LIMIT_GPU_S: Final = 57_600.0
"""Attained service at which the original's Tiresias moves a job to its second queue: 16 GPU hours."""
POLICIES: Final = ("tiresias",)


def recognises(folder: Path) -> bool:
    """Whether the cluster has rounds and restart delays, and the trace isolated run times."""
    if not all(key in cluster_of(folder) for key in KEYS) or not (folder / "expected_jct.csv").is_file():
        return False
    path = folder / "trace.csv"
    return path.is_file() and COLUMNS[-1] in csv_file.read(path, ()).columns


def run(folder: Path, policy: str | None, replay: bool) -> list[dict[str, Any]]:
    """One row per policy: n_jobs, max_abs_diff_s, mean_jct_s, expected_mean_jct_s, makespan_s (time 0 to last end)."""
    refuse_replay(folder, replay, NAME)
    cluster, path = cluster_of(folder), folder / "trace.csv"
    nodes, gpus_per_node, round_s, delay_s = (positive(folder, cluster, key) for key in KEYS)
    trace = csv_file.read(path, COLUMNS)
    submit_s, gpus, duration_s = (column(path, trace, name) for name in COLUMNS[1:])
    expected = expected_jct_s(folder, trace.cells["job_id"])
    pool = {"nodes": nodes, "gpus_per_node": gpus_per_node}
    rules = {"knowledge": {"work": "oracle"}, "clock": {"kind": "round", "round_s": round_s}}
    scenario = scenario_of(NAME, gpus, submit_s, duration_s, pool, rules, first_start_s=delay_s, restart_s=delay_s)
    rows = []
    for name in chosen(policy, [name for name in POLICIES if name in expected], NAME):
        planner = agents_package().DiscretisedLas(name, by_gpus=True, limits=(LIMIT_GPU_S,), running_first=False)
        _, end_s = starts_and_ends(finished(scenario, planner, n_waits=1), submit_order(submit_s))
        rows.append(compared(name, end_s - submit_s, expected[name], float(end_s.max())))
    return rows

"""Form `swf`: sequences of a workload log on one pool, by mean bounded slowdown, in the manner of RLScheduler's simulator.

The folder holds one log in the Standard Workload Format and expected_bounded_slowdown.csv with sequence, first_row_index, n_jobs,
backfill, policy, mean_bounded_slowdown. Settings: clock `one_by_one`; believed run time = requested time (the run time where the
log has none); the policies `*_head` (`ReservedHead`), WFP3 and UNICEP with the original's wait of unscheduled jobs.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.bench import swf_log
from hetenv.bench.reference_case import (
    chosen,
    column,
    finished,
    pool_of,
    refuse_replay,
    scenario_of,
    starts_and_ends,
    submit_order,
)
from hetenv.bench.swf_log import SwfLog
from hetenv.errors import TraceError, unknown
from hetenv.scenario import Scenario
from hetenv.sim.simulator import Simulator
from hetenv.traces import csv_file

NAME: Final = "swf"
EXPECTED: Final = "expected_bounded_slowdown.csv"
COLUMNS: Final = ("sequence", "first_row_index", "n_jobs", "backfill", "policy", "mean_bounded_slowdown")
SUFFIXES: Final = (".swf", ".swf.gz")
SLOWDOWN_FLOOR_S: Final = 10.0
UNSCHEDULED_WAIT: Final = ("wfp3", "unicep")
POLICIES: Final = ("f1", "unicep", "wfp3", "sjf", "fcfs")


def recognises(folder: Path) -> bool:
    """Whether the folder holds a log and expected bounded slowdowns."""
    return (folder / EXPECTED).is_file() and any(path.name.endswith(SUFFIXES) for path in folder.iterdir())


def run(folder: Path, policy: str | None, replay: bool) -> list[dict[str, Any]]:
    """One row per expected cell: sequence, backfill, policy, value, expected (mean bounded slowdowns), rel_diff.

    Raises:
        TraceError: a sequence with jobs that have no run time or no processors, or one that leaves the log.
    """
    refuse_replay(folder, replay, NAME)
    path = folder / EXPECTED
    table = csv_file.read(path, COLUMNS)
    log = swf_log.read(_log(folder))
    names = table.cells["policy"]
    unlike = sorted(set(names) - set(POLICIES))
    if unlike:
        raise TraceError(f"{path}: {unknown('policy', unlike[0], POLICIES)}")
    wanted = set(chosen(policy, sorted(set(names)), NAME))
    numbers = {name: column(path, table, name) for name in COLUMNS if name != "policy"}
    cells = zip(names, *(numbers[name].tolist() for name in COLUMNS if name != "policy"))
    return [_cell(log, *cell) for cell in cells if cell[0] in wanted]


def _log(folder: Path) -> Path:
    found = sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIXES))
    if len(found) > 1:
        raise TraceError(f"{folder}: holds {len(found)} logs ({', '.join(path.name for path in found)}); leave one")
    return found[0]


def _cell(
    log: SwfLog, policy: str, sequence: float, first: float, n_jobs: float, backfill: float, expected: float
) -> dict[str, Any]:
    scenario = sequence_scenario(log, int(first), int(n_jobs))
    simulator = finished(scenario, rule_of(policy, bool(backfill)))
    value = _mean_bounded_slowdown(log, int(first), int(n_jobs), simulator)
    difference = abs(value - expected) / expected
    found = {"sequence": int(sequence), "backfill": int(backfill), "policy": policy}
    return {**found, "value": value, "expected": expected, "rel_diff": difference}


def rule_of(policy: str, backfill: bool) -> str:
    """The registered policy that stands for one of the case's."""
    return f"{policy}_head" + ("_backfill" if backfill else "") + ("_unscheduled_wait" if policy in UNSCHEDULED_WAIT else "")


def sequence_scenario(log: SwfLog, first: int, n_jobs: int) -> Scenario:
    """The scenario of a sequence; time 0 is the log's."""
    if n_jobs < 1 or first < 0 or first + n_jobs > log.lines.size:
        raise TraceError(f"{log.path}: no jobs {first} to {first + n_jobs - 1}; the log has {log.lines.size}")
    rows = slice(first, first + n_jobs)
    submit_s, run_s, procs, asked_s = log["submit_s"][rows], log["run_s"][rows], log.procs[rows], log["asked_s"][rows]
    bad = np.flatnonzero((run_s < 0) | (procs < 1))
    if bad.size:
        raise TraceError(f"{log.path} line {log.lines[first + bad[0]]}: a job without run time or processors")
    estimate_s = [known if known > 0 else None for known in np.where(asked_s < 0, run_s, asked_s).tolist()]
    rules = {
        "estimate_s": estimate_s,
        "clock": {"kind": "one_by_one"},
        "knowledge": {"work": "estimate", "estimate_sigma": 0.0},
    }
    return scenario_of("swf", procs, submit_s, run_s, pool_of(log.machine_procs), rules)


def _mean_bounded_slowdown(log: SwfLog, first: int, n_jobs: int, simulator: Simulator) -> float:
    """Mean of max(1, (wait + run time) / max(run time, 10 s))."""
    rows = slice(first, first + n_jobs)
    submit_s, run_s = log["submit_s"][rows], log["run_s"][rows]
    start_s, _ = starts_and_ends(simulator, submit_order(submit_s))
    return float(np.maximum(1.0, (start_s - submit_s + run_s) / np.maximum(run_s, SLOWDOWN_FLOOR_S)).mean())

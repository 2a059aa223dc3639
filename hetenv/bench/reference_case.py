"""What the forms of reference cases share: a scenario of listed jobs on one pool, its run to the end, the comparison."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import ScenarioError, TraceError, unknown
from hetenv.policy import AnyPolicy, Planner, make_policy
from hetenv.scenario import Scenario, parse
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import JobState, Status
from hetenv.traces import csv_file
from hetenv.view import View, drive

Floats = NDArray[np.float64]

ACCELERATOR: Final = "V100-SXM-32"
"""Of all reference pools: run times are stated, so it only names them."""
MOST_GPUS_PER_NODE: Final = 1024
NEVER_S: Final = 1e12
"""Horizon of cases that run until all jobs have ended."""


def scenario_of(
    name: str, gpus: Floats, submit_s: Floats, duration_s: Floats, pool: Mapping[str, int], rules: Mapping[str, Any], **costs: float
) -> Scenario:
    """Rigid jobs of stated run times on one pool where any free GPUs do; one job class per size.

    Args:
        gpus, submit_s, duration_s: [J].
        pool: nodes and gpus_per_node.
        rules: further keys of the scenario (clock, knowledge ...); `estimate_s` [J] goes to the jobs.
        costs: first_start_s and restart_s of every class.
    """
    rest = dict(rules)
    estimate_s = rest.pop("estimate_s", [None] * gpus.size)
    columns = zip(submit_s.tolist(), gpus.astype(int).tolist(), duration_s.tolist(), estimate_s)
    keys = ("submit_s", "gpus", "duration_s", "estimate_s")
    jobs = [{**dict(zip(keys, job)), "job_class": f"on_{job[1]}"} for job in columns]
    data = {
        "name": name,
        "summary": "a reference case",
        "horizon_s": rest.pop("horizon_s", NEVER_S),
        "cluster": {"pools": [{"name": "pool", "accelerator": ACCELERATOR, **pool}]},
        "classes": {f"on_{n}": {"kind": "fixed", "gpu_counts": [n], **costs} for n in np.unique(gpus).astype(int).tolist()},
        "workload": {"kind": "listed", "jobs": jobs},
        "candidates": {"max_commands_per_instant": max(1, gpus.size)},
        **rest,
    }
    return parse(data)


def pool_of(n_gpus: int) -> dict[str, int]:
    """A pool of so many GPUs whose nodes do not matter: one node where it can be."""
    return {"nodes": 1, "gpus_per_node": n_gpus} if n_gpus <= MOST_GPUS_PER_NODE else {"nodes": n_gpus, "gpus_per_node": 1}


def finished(scenario: Scenario, policy: str | AnyPolicy, n_waits: int = 0) -> Simulator:
    """The simulator after a planner has run the scenario until all jobs have ended.

    Args:
        n_waits: first decisions at which the planner is not asked.

    Raises:
        ScenarioError: a job is rejected, or the planner leaves jobs waiting for good.
    """
    compiled = scenario.compile()
    simulator = Simulator(compiled)
    simulator.reset(compiled.sample(0))
    view, planner = View(simulator), make_policy(policy, scenario.name)
    assert isinstance(planner, Planner), planner.name
    planner.reset(0)
    for _ in range(n_waits):
        simulator.wait()
    while simulator.status() == Status.OPEN:
        drive(planner, view)
    n = int(simulator.state.clock["n_requests"][0])
    unfinished = np.flatnonzero(simulator.state.jobs["state"][0, :n] != JobState.FINISHED)
    if unfinished.size:
        raise ScenarioError(f"{scenario.name}: {unfinished.size} jobs did not finish under {planner.name}; does each fit the cluster?")
    return simulator


def starts_and_ends(simulator: Simulator, order: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """[J] first start and end of each job, in the order of the case; order: [J] case index of each job id."""
    found = []
    for column in ("first_start_s", "end_s"):
        values = np.empty(order.size)
        values[order] = simulator.state.jobs[column][0, : order.size]
        found.append(values)
    return found[0], found[1]


def submit_order(submit_s: Floats) -> NDArray[np.int64]:
    """[J] case index of each job id: by submit time, ties as listed."""
    return np.argsort(submit_s, kind="stable")


def column(path: Path, table: csv_file.CsvFile, name: str) -> Floats:
    """A column that must hold numbers throughout."""
    found = csv_file.numbers(table.cells[name])
    bad = np.flatnonzero(~np.isfinite(found))
    if bad.size:
        line = int(table.lines[bad[0]])
        raise TraceError(f"{path} line {line}: {name} must be a number (got {table.cells[name][bad[0]]!r})")
    return found


def chosen(policy: str | None, known: Sequence[str], form: str) -> list[str]:
    """The policies to run: the one asked for, or all."""
    if policy is None:
        return list(known)
    if policy not in known:
        raise ScenarioError(unknown(f"policy of a {form} case", policy, known))
    return [policy]


def refuse_replay(folder: Path, replay: bool, form: str) -> None:
    """Error where there is nothing to replay."""
    if replay:
        raise ScenarioError(f"{folder}: a {form} case stores no allocations, so that there is nothing to replay; leave --replay out")


def compared(policy: str, jct_s: Floats, expected_s: Floats, makespan_s: float) -> dict[str, Any]:
    """The row of one policy. Times in s; max_abs_diff_s over jobs."""
    return {
        "policy": policy,
        "n_jobs": int(jct_s.size),
        "max_abs_diff_s": float(np.abs(jct_s - expected_s).max()),
        "mean_jct_s": float(jct_s.mean()),
        "expected_mean_jct_s": float(expected_s.mean()),
        "makespan_s": makespan_s,
    }

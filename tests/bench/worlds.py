"""Tiny worlds for the benchmark's tests: a scenario of fixed run times, jobs as (submit_s, gpus, seconds), first-fit FIFO."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetenv.events.stream import Effect, merge, rows
from hetenv.scenario import Compiled, World, make_world, parse
from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import JobState, Status
from hetenv.workload.requests import by_submit, requests

Job = tuple[float, int, float]


def compiled(nodes: int = 1, gpus: int = 1, horizon_s: float = 1000.0, **fields: Any) -> Compiled:
    """A scenario of one pool of A100s without power of their own, and one class `script` of fixed run times."""
    pool = {"name": "a", "accelerator": "A100-SXM-80", "nodes": nodes, "gpus_per_node": gpus, "idle_w": 0.0, "node_overhead_w": 0.0}
    data = {
        "name": "tiny",
        "summary": "tests",
        "horizon_s": horizon_s,
        "cluster": {"pools": [pool]},
        "classes": {"script": {"kind": "fixed", "gpu_counts": [1, 2, 4, 8, 16]}},
        "workload": {
            "kind": "synthetic",
            "arrivals": {"kind": "poisson", "rate_per_h": 60.0},
            "jobs": [
                {
                    "job_class": "script",
                    "share": 1.0,
                    "duration": {"kind": "lognormal", "median_s": 60, "sigma": 1.0, "min_s": 10, "max_s": 600},
                    "gpus": {"kind": "rigid", "counts": {1: 1.0}},
                }
            ],
        },
    }
    return parse({**data, **fields}).compile()


def world(scenario: Compiled, jobs: Sequence[Job], events: Sequence[tuple[Effect, int, float, float]] = (), **columns: Any) -> World:
    """A world of jobs and of events (effect, target, at_s, value) by wall time; `columns` are set on all requests."""
    table = requests(len(jobs))
    for row, (submit_s, gpus, work_s) in zip(table, jobs):
        row["submit_s"], row["work"] = submit_s, work_s
        row["min_gpus"] = row["max_gpus"] = gpus
        row["believed_work"] = row["believed_s"] = work_s
    for name, values in columns.items():
        table[name] = values
    drawn = {
        str(index): rows(effect, at_s, target, value)
        for index, (effect, target, at_s, value) in enumerate(events)
    }
    return make_world(scenario, by_submit(table), merge(drawn))


def first_fit(scenario: Compiled, episode: World) -> Simulator:
    """The simulator after first-fit FIFO has run the episode."""
    simulator = Simulator(scenario)
    simulator.reset(episode)
    while simulator.status() == Status.OPEN:
        if not _start_one(simulator, episode):
            simulator.wait()
    return simulator


def _start_one(simulator: Simulator, episode: World) -> bool:
    for job in np.flatnonzero(simulator.state.jobs["state"][0, : episode.requests.size] == JobState.QUEUED):
        for config in range(simulator.facts.configs.size):
            if simulator.is_legal(Command.START, int(job), config):
                return simulator.give(Command.START, int(job), config)
    return False

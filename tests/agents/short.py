"""Shipped scenarios in short form: their clusters, classes and rules, with few jobs that come all at once."""

from functools import cache

import numpy as np
import pytest

from hetenv import scenario as scenarios
from hetenv.errors import TraceError
from hetenv.events.stream import EventClock
from hetenv.scenario import Compiled, World, make_world

N_JOBS = 40
HASTE = 10.0
"""Jobs come this many times faster than in the scenario."""
NAMES = tuple(scenarios.names())


@cache
def compiled(name: str) -> Compiled:
    return scenarios.load(name).compile()


def short_world(name: str, seed: int = 0, n_jobs: int = N_JOBS) -> World:
    """The first jobs of the scenario's world, in haste, among its events on the wall and of nodes; skips without its data."""
    try:
        world = compiled(name).sample(seed)
    except TraceError as error:
        pytest.skip(str(error))
    requests = world.requests[:n_jobs].copy()
    requests["submit_s"] = np.maximum(requests["submit_s"], 0.0) / HASTE
    return make_world(compiled(name), requests, world.events[world.events["clock"] != EventClock.JOB_WORK].copy())

"""Compiles every kernel that an environment, a vector environment, a benchmark or a plan search calls."""

import time

import numpy as np

from hetenv.bench.compiled import compiled_scenario
from hetenv.env.core import EnvCore
from hetenv.perf import Devices, Training, search
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import Status


def warm_up(scenario: str = "smoke") -> float:
    """Run a little of everything; returns the seconds it took, some tens in an empty cache."""
    began_s = time.perf_counter()
    compiled = compiled_scenario(scenario)
    search(Training("gpt2-small", 8), Devices("A100-SXM-80", 2))
    world = compiled.sample(0)
    core = EnvCore(compiled)
    core.reset(world)
    core.step(np.zeros(1, np.int64))
    simulator = Simulator(compiled)
    simulator.reset(world)
    while simulator.status() == Status.OPEN:
        simulator.wait()
    return time.perf_counter() - began_s

"""Compiles every kernel that an environment, a benchmark of the registered policies or a plan search calls."""

import time
from typing import Final

import gymnasium as gym

from hetenv.bench.run import run
from hetenv.perf import Devices, Training, search
from hetenv.policy import policy_names

SCENARIO: Final = "smoke"


def warm_up() -> float:
    """Run a little of everything; returns the seconds it took, a minute or more in an empty cache."""
    began_s = time.perf_counter()
    search(Training("gpt2-small", 8), Devices("A100-SXM-80", 2))
    gym.make("hetenv/HetCluster-v0", scenario=SCENARIO).reset(seed=0)
    gym.make_vec("hetenv/HetCluster-v0", num_envs=2, vectorization_mode="vector_entry_point", scenario=SCENARIO).reset(
        seed=0
    )
    for name in policy_names():
        run(SCENARIO, name, 0)
    return time.perf_counter() - began_s

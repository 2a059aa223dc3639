"""Random legal steps over every shipped scenario with all invariants checked after each one; memory stays flat.

`make soak` runs a million steps (HETENV_SOAK_STEPS) in some 20 minutes; the slow suite a small part of them.
"""

import os
import resource

import numpy as np
import pytest

from hetenv import scenario as scenarios
from hetenv.env.core import EnvCore
from hetenv.errors import TraceError
from hetenv.sim.tables import Status

N_STEPS = int(os.environ.get("HETENV_SOAK_STEPS", "20000"))
N_ENVS = 8
GROWTH_MBYTES = 30.0

pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.compiled]


def max_rss_mbytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


@pytest.mark.parametrize("name", scenarios.names())
def test_a_long_random_walk_breaks_no_invariant_and_keeps_memory_flat(name: str) -> None:
    compiled = scenarios.load(name).compile()
    try:
        worlds = [compiled.sample(seed) for seed in range(N_ENVS)]
    except TraceError as error:
        pytest.skip(str(error))
    core = EnvCore(compiled, N_ENVS)
    _, mask = core.reset_many(dict(enumerate(worlds)))
    rng = np.random.default_rng(0)
    n_steps, episode, settled_mbytes = max(1, N_STEPS // len(scenarios.names()) // N_ENVS), 0, 0.0
    last_s = np.array([core.simulator.now(b) for b in range(N_ENVS)])
    for step in range(n_steps):
        flat, mask, rewards = core.step((rng.random(mask.shape) * mask).argmax(axis=1))
        assert np.isfinite(flat).all() and np.isfinite(rewards).all()
        assert (mask[:, 0] == 1).all(), "wait is always legal"
        core.simulator.check_invariants()
        now_s = np.array([core.simulator.now(b) for b in range(N_ENVS)])
        assert (now_s >= last_s).all(), "the clock ran backwards"
        over = [b for b in range(N_ENVS) if core.simulator.status(b) != Status.OPEN]
        if over:
            episode += 1
            _, mask = core.reset_many({b: compiled.sample(1_000_000 + b, episode) for b in over})
            now_s[over] = [core.simulator.now(b) for b in over]
        last_s = now_s
        if step == n_steps // 3:
            settled_mbytes = max_rss_mbytes()
    assert max_rss_mbytes() - settled_mbytes < GROWTH_MBYTES, "memory grows"

"""Queueing theory: mean waits of M/M/1, M/M/c and M/G/1 under first-come first-served, within 1 %."""

from math import exp, factorial, log

import numpy as np
import pytest

from hetenv.cluster import ClusterConfig, PoolConfig
from hetenv.events.stream import empty_rows
from hetenv.scenario import WarmStart, make_world
from hetenv.sim.simulator import Simulator
from hetenv.workload.job_class import FixedClass
from hetenv.workload.requests import requests
from tests.random_worlds import assemble

N_JOBS = 400_000
N_EPISODES = 6


def mean_wait_s(servers: int, rate: float, draw: object) -> float:
    """Mean wait over N_EPISODES runs of N_JOBS jobs, antithetic nowhere: plain averages. `draw(rng, n)` gives service times."""
    pool = PoolConfig(name="a", accelerator="A100-SXM-80", nodes=1, gpus_per_node=servers)
    limit_s = 1.1 * N_JOBS / rate
    compiled = assemble(
        ClusterConfig(pools=(pool,)),
        classes={"fixed": FixedClass(gpu_counts=(1,))},
        horizon_s=limit_s,
        start=WarmStart(until_s=limit_s),
    )
    simulator, waits = Simulator(compiled), []
    for seed in range(N_EPISODES):
        rng = np.random.default_rng(seed)
        jobs = requests(N_JOBS)
        jobs["submit_s"] = np.cumsum(rng.exponential(1.0 / rate, N_JOBS))
        jobs["work"] = jobs["believed_work"] = jobs["believed_s"] = draw(rng, N_JOBS)  # type: ignore[operator]
        simulator.reset(make_world(compiled, jobs, empty_rows()))
        waits.append((simulator.state.jobs["first_start_s"][0, :N_JOBS] - jobs["submit_s"]).mean())
    return float(np.mean(waits))


def erlang_c(servers: int, load: float) -> float:
    """Probability that a job waits in M/M/c with offered load `load` (erlangs)."""
    last = load**servers / factorial(servers) * servers / (servers - load)
    return last / (sum(load**k / factorial(k) for k in range(servers)) + last)


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.3, 0.5])
def test_m_m_1(load: float) -> None:
    wait_s = mean_wait_s(1, load, lambda rng, n: rng.exponential(1.0, n))
    assert wait_s == pytest.approx(load / (1 - load), rel=0.01)


@pytest.mark.slow
def test_m_m_c() -> None:
    servers, load = 4, 2.4
    wait_s = mean_wait_s(servers, load, lambda rng, n: rng.exponential(1.0, n))
    assert wait_s == pytest.approx(erlang_c(servers, load) / (servers - load), rel=0.01)


@pytest.mark.slow
def test_m_g_1_pollaczek_khinchine() -> None:
    sigma, load = 0.8, 0.4
    wait_s = mean_wait_s(1, load, lambda rng, n: rng.lognormal(-(sigma**2) / 2, sigma, n))
    second_moment = exp(sigma**2)
    assert log(second_moment) == pytest.approx(sigma**2)
    assert wait_s == pytest.approx(load * second_moment / (2 * (1 - load)), rel=0.01)

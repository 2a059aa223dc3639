"""P01, P04, P14, P15, P19, P21 through the environment, where it adds something to the simulator."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hetenv.env.single import HetEnv
from hetenv.errors import ScenarioError
from hetenv.events.stream import Effect
from hetenv.objective import Account
from hetenv.scenario import Scenario, World, parse
from hetenv.sim.commands import Command
from hetenv.sim.tables import TOTAL
from tests.bench.worlds import compiled, world
from tests.env.play import at_random, first_legal, play

ROOT = Path(__file__).parents[1]
FAILED = (Effect.NODE_DOWN, 0, 1450.0, 10_000.0)


def opened(scenario: Scenario, episode: World) -> HetEnv:
    env = HetEnv(scenario)
    env.reset(options={"world": episode})
    return env


def order(env: HetEnv, command: Command, job: int = -1) -> dict[str, Any]:
    """Take the first legal row of a command (on a job); returns info."""
    rows = env.core.candidates[0]
    fitting = (rows["is_legal"] == 1) & (rows["command"] == command) & ((rows["job"] == job) | (job < 0))
    return env.step(int(np.flatnonzero(fitting)[0]))[4]


def test_p01_only_jobs_that_fit_nowhere_leave_wait() -> None:
    made = compiled(gpus=4)
    episode = world(made, [(0.0, 16, 10.0), (100.0, 16, 10.0), (200.0, 1, 10.0)], rejected=[1, 1, 0])
    env = opened(made.scenario, episode)
    assert env.core.simulator.now() == 200.0, "nothing to decide before"
    assert np.flatnonzero(env.action_masks()).size > 1 and set(env.core.candidates[0]["job"][env.action_masks()]) <= {-1, 2}
    alone = opened(made.scenario, world(made, [(0.0, 16, 10.0)], rejected=1))
    assert np.flatnonzero(alone.action_masks()).tolist() == [0]
    assert alone.step(0)[2:4] == (True, False)


GLOBAL = """
import random
import numpy as np
random.seed(1), np.random.seed(1)
before = random.getstate(), np.random.get_state()[1].tolist()
import hetenv
env = hetenv.HetEnv("smoke", seed=3)
env.reset()
env.step(0)
assert (random.getstate(), np.random.get_state()[1].tolist()) == before
"""


def test_p04_import_and_play_leave_the_global_generators() -> None:
    subprocess.run([sys.executable, "-c", GLOBAL], check=True, cwd=ROOT)


@pytest.mark.parametrize("factor", [1 / 60, 3600.0])
def test_p14_the_unit_of_time_does_not_matter(factor: float) -> None:
    """All times and work times a factor, the price of a job second over it: the same decisions and the same rewards."""
    jobs = [(0.0, 1, 100.0), (5.0, 2, 60.0), (5.0, 1, 30.0), (40.0, 2, 200.0), (70.0, 1, 10.0)]
    played = []
    for unit in (1.0, factor):
        made = compiled(nodes=1, gpus=2, horizon_s=300.0 * unit, objective={"weights": {"job_s": 1.0 / unit}})
        env = opened(made.scenario, world(made, [(at * unit, gpus, work * unit) for at, gpus, work in jobs]))
        played.append([(action, step[1]) for action, step in play(env, at_random(3))])
    assert [action for action, _ in played[0]] == [action for action, _ in played[1]]
    assert [reward for _, reward in played[0]] == pytest.approx([reward for _, reward in played[1]], rel=1e-9)
    assert sum(reward for _, reward in played[0]) < 0


def tiny(classes: dict[str, Any], **mix: Any) -> dict[str, Any]:
    job = {"job_class": next(iter(classes)), "duration": {"kind": "fixed", "value_s": 60}, **mix}
    return {
        "name": "tiny",
        "summary": "tests",
        "horizon_s": 3600.0,
        "cluster": {"pools": [{"name": "a", "accelerator": "V100-SXM-32", "nodes": 2, "gpus_per_node": 8, "cpus_per_node": 16}]},
        "classes": classes,
        "workload": {"kind": "synthetic", "arrivals": {"kind": "poisson", "rate_per_h": 20.0}, "jobs": [job]},
    }


@pytest.mark.parametrize(
    ("job_class", "message"),
    [
        ({"kind": "fixed", "gpu_counts": [32]}, "classes.big: fits nowhere"),
        (
            {"kind": "analytic", "model": "gpt3-175b", "global_batch": 64, "seq_len": 2048, "precision": "fp16", "gpu_counts": [1, 2]},
            "classes.big: fits nowhere",
        ),
        ({"kind": "fixed", "gpu_counts": [1], "pools": ["h100"]}, "unknown pool 'h100'"),
    ],
    ids=["gpus", "memory", "pool"],
)
def test_p15_a_class_that_can_never_run_is_refused(job_class: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        parse(tiny({"big": job_class})).compile()


def test_p15_jobs_that_ask_for_more_than_a_node_has_are_rejected_and_counted() -> None:
    """Of 16 CPUs a node, 9 per GPU leave room for one GPU on each of two nodes; 17 for none."""
    script = {"script": {"kind": "fixed", "gpu_counts": [2, 4]}}
    gpus = {"kind": "rigid", "counts": {2: 0.5, 4: 0.5}}
    for cpus, rejected_sizes in ((4, set()), (9, {4}), (17, {2, 4})):
        env = HetEnv(parse(tiny(script, gpus=gpus, cpus_per_gpu=cpus)))
        env.reset(seed=0)
        simulator = env.core.simulator
        requests = simulator.facts.requests[0, : simulator.state.clock["n_requests"][0]]
        assert set(requests["min_gpus"][requests["rejected"] == 1].tolist()) == rejected_sizes
        for _ in play(env, first_legal):
            pass
        total = simulator.state.ledger[0, TOTAL]
        assert total[Account.N_REJECTED] == requests["rejected"].sum()
        assert total[Account.N_FINISHED] > 0 or rejected_sizes == {2, 4}


def test_p19_a_preemption_pays_one_restart() -> None:
    made = compiled(horizon_s=5000.0, classes={"script": {"kind": "fixed", "gpu_counts": [1], "first_start_s": 60.0, "restart_s": 60.0}})
    ticks = [(Effect.SITE_PRICE, 0, at_s, 0.0) for at_s in (400.0, 600.0)]
    env = opened(made.scenario, world(made, [(0.0, 1, 1000.0)], ticks))
    order(env, Command.START)
    assert env.core.simulator.now() == 400.0
    order(env, Command.PREEMPT)
    assert env.core.simulator.now() == 600.0
    assert order(env, Command.START)["elapsed_s"] == 720.0
    assert env._is_over and env.core.simulator.state.jobs["end_s"][0, 0] == 1320.0


def test_p21_a_failure_loses_what_is_not_saved() -> None:
    made = compiled(nodes=2, horizon_s=5000.0, classes={"script": {"kind": "fixed", "gpu_counts": [1], "restart_s": 120.0}})
    env = opened(made.scenario, world(made, [(0.0, 1, 3000.0)], [FAILED], checkpoint_interval=600.0))
    assert order(env, Command.START)["elapsed_s"] == 1450.0
    assert order(env, Command.START)["elapsed_s"] == 1920.0
    simulator = env.core.simulator
    assert simulator.state.jobs["end_s"][0, 0] == 3370.0
    assert simulator.state.ledger[0, TOTAL, Account.LOST_GPU_S] == 250.0

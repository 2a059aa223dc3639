"""The CONFIG table where a job may use two unlike pools together."""

import numpy as np
import pytest

from hetenv.configurations import NO_POOL
from hetenv.errors import ScenarioError
from hetenv.scenario import Compiled, World
from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import JobState
from tests.bench.worlds import compiled, world

WORK = 6400.0
"""Samples of the one job: 100 steps."""


def pairs_scenario(pairs: list[list[str]]) -> Compiled:
    """One class of llama3-8b over three pools of one node each, at one site."""
    accelerators = {"h100": "H100-SXM-80", "a100": "A100-SXM-80", "more": "A100-SXM-80"}
    pools = [{"name": name, "accelerator": accelerator, "nodes": 1} for name, accelerator in accelerators.items()]
    script = {
        "kind": "analytic",
        "model": "llama3-8b",
        "seq_len": 2048,
        "global_batch": 64,
        "gpu_counts": [8, 16],
        "pool_pairs": pairs,
    }
    return compiled(horizon_s=86400.0, cluster={"pools": pools}, classes={"script": script}, knowledge={"work": "oracle"})


def finish_s(made: Compiled, episode: World, config: int) -> float:
    """When the job ends if it starts in a configuration."""
    simulator = Simulator(made)
    simulator.reset(episode)
    assert simulator.give(Command.START, 0, config), "with no command left, time moves to the job's end"
    assert simulator.state.jobs["state"][0, 0] == JobState.FINISHED
    return float(simulator.state.jobs["end_s"][0, 0])


def test_a_job_runs_faster_on_eight_and_eight_than_on_either_eight() -> None:
    made = pairs_scenario([["h100", "a100"]])
    episode = world(made, [(0.0, 8, WORK)], max_gpus=16)
    table = made.configurations.table
    both = table["pool_b"] != NO_POOL
    assert set(table["gpus_a"][both]) == set(table["gpus_b"][both]) == {4, 8}
    alone = [int(np.argmax(np.where(~both & (table["pool_a"] == pool), table["rate"], 0.0))) for pool in (0, 1)]
    pair = int(np.argmax(np.where(both, table["rate"], 0.0)))
    end_s = finish_s(made, episode, pair)
    assert end_s < min(finish_s(made, episode, config) for config in alone)
    assert end_s == pytest.approx(made.configurations.classes["first_start_s"][0] + WORK / table["rate"][pair], rel=1e-9)


def test_without_pairs_every_row_stays_in_one_pool() -> None:
    assert (pairs_scenario([]).configurations.table["pool_b"] == NO_POOL).all()


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([["h100", "b100"]], "classes.script.pool_pairs.0: .*'b100'.*a100"),
        ([["h100", "a100"], ["a100", "more"]], "classes.script.pool_pairs.1: .*same accelerator"),
        ([["h100", "h100"]], "same accelerator"),
    ],
)
def test_pairs_that_make_no_sense_are_named(pairs: list[list[str]], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        pairs_scenario(pairs)

"""What causes draw, played: kernel and oracle agree on every cause alone and on all together, invariants hold."""

from typing import Any

import numpy as np
import pytest

from hetenv.events.stream import Effect
from hetenv.scenario import Compiled, parse
from tests.sim.test_differential import play

HORIZON_S = 7200.0
CAUSES: list[dict[str, Any]] = [
    {"kind": "failures", "mtbf_h": 1, "repair_median_h": 0.1, "detection": {"hang_share": 0.3, "slow_share": 0.3, "slow_s": 300}},
    {"kind": "failures", "name": "busy", "mtbf_h": 0.5, "clock": "busy", "repair": "exponential"},
    {"kind": "failures", "name": "racks", "domains": [{"label": "rack", "nodes": 2, "mtbf_h": 1, "repair_median_h": 0.2}]},
    {"kind": "spot", "pools": ["b"], "notice_s": 60, "market": {"kind": "capacity", "up_mean_h": 0.3, "down_mean_h": 0.1}},
    {"kind": "spot", "name": "auction", "pools": ["a"], "notice_s": 30, "market": {"kind": "price", "reversion_h": 0.5, "step_s": 60}},
    {"kind": "user_failures", "failed_share": 0.2, "cancelled_share": 0.2, "impatient_share": 0.3, "patience_h": 0.3, "limit_factor": 1.2},
    {"kind": "speed_spread", "gpu_sigma": 0.1},
    {"kind": "slow_nodes", "apart_mean_h": 0.3, "lasting_mean_h": 0.1, "group_nodes": 2},
    {"kind": "thermal", "sites": {"s": {"mean_c": 32}}, "step_s": 300, "start_hour_utc": 14},
    {"kind": "congestion", "process": {"kind": "hash", "rehash_mean_h": 0.1}},
    {"kind": "lending", "pools": ["a"], "notice_s": 60, "random": {"home_mean_h": 0.5, "lent_mean_h": 0.2},
     "calendar": [{"from_hour": 1, "to_hour": 1.5, "nodes": 1}]},
    {"kind": "maintenance", "pools": ["b"], "first_h": 0.5, "every_h": 1, "lasting_h": 0.1, "notice_h": 0.1},
    {"kind": "power_caps", "sites": {"s": {"calls": {"apart_mean_h": 0.3, "lasting_mean_h": 0.2, "cap_w": 3000}}}},
    {"kind": "job_ranges", "apart_mean_h": 0.2, "lasting_mean_h": 0.1, "gpus_share": 0.5},
]  # fmt: skip


def compiled(events: list[dict[str, Any]]) -> Compiled:
    pools = [
        {"name": "a", "accelerator": "A100-SXM-80", "nodes": 3, "gpus_per_node": 4},
        {"name": "b", "accelerator": "V100-SXM-32", "nodes": 4, "gpus_per_node": 2},
    ]
    job = {"job_class": "script", "share": 0.7, "duration": {"kind": "lognormal", "median_s": 600}}
    return parse(
        {
            "name": "moving",
            "summary": "tests",
            "horizon_s": HORIZON_S,
            "cluster": {"sites": [{"name": "s", "pue_per_c": 0.01}], "pools": pools},
            "classes": {
                "script": {"kind": "fixed", "gpu_counts": [1, 2, 4], "restart_s": 30, "checkpoint_interval": 100, "power_w": 300},
                "bert": {"kind": "analytic", "model": "bert-large", "seq_len": 128, "global_batch": 64, "precision": "fp16",
                         "gpu_counts": [1, 2, 4, 8]},
            },
            "workload": {
                "kind": "synthetic",
                "arrivals": {"kind": "poisson", "rate_per_h": 12},
                "jobs": [
                    {**job, "gpus": {"kind": "rigid", "counts": {1: 0.5, 2: 0.5}}},
                    {**job, "job_class": "bert", "share": 0.3, "gpus": {"kind": "malleable", "min": 1, "max": 8}},
                ],
            },
            "events": events,
        }
    ).compile()  # fmt: skip


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.get("name", cause["kind"]))
def test_kernel_and_oracle_agree_on_a_cause_alone(cause: dict[str, Any]) -> None:
    scenario = compiled([cause])
    world = scenario.sample(0)
    assert world.events.size > 0
    play(scenario, world, seed=1)


@pytest.mark.parametrize("seed", range(3))
def test_kernel_and_oracle_agree_on_all_causes_together(seed: int) -> None:
    scenario = compiled(CAUSES)
    world = scenario.sample(seed)
    if seed == 0:
        drawn = set(np.unique(world.events["effect"]))
        assert drawn >= set(Effect) - {
            Effect.NODE_UP, Effect.JOB_PHASE, Effect.SITE_RENEWABLE, Effect.SITE_CARBON, Effect.SITE_MARGINAL_CARBON, Effect.SITE_PRICE,
        }  # fmt: skip
    play(scenario, world, seed)


def test_an_undetected_crash_costs_its_delay_and_the_work_since_the_checkpoint() -> None:
    """A dead node is held until it is seen: work up to the checkpoint stays, the time in between is lost."""
    from hetenv.sim.simulator import Simulator
    from tests.bench.worlds import compiled as tiny
    from tests.bench.worlds import first_fit, world

    events = [
        (Effect.NODE_SPEED, 0, 250.0, 1e-9),
        (Effect.NODE_SPEED, 0, 310.0, 1.0),
        (Effect.NODE_DOWN, 0, 310.0, 40.0),
    ]
    scenario = tiny(horizon_s=2000.0)
    episode = world(scenario, [(0.0, 1, 500.0)], events, checkpoint_interval=100.0)
    simulator: Simulator = first_fit(scenario, episode)
    # work 250 at the crash, durable 200; seen at 310, back at 350, 300 s of work are left: done at 650
    assert simulator.state.jobs["end_s"][0, 0] == pytest.approx(650.0)

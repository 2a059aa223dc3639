"""phase_aware on a tiny world with a hand-computed answer."""

from hetenv import phases
from hetenv import scenario as scenarios
from hetenv.events.stream import merge
from hetenv.policy import make_policy
from hetenv.scenario import Compiled, make_world
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import Status
from hetenv.view import View
from hetenv.view.drive import drive
from hetenv.workload.requests import Elasticity, requests


def _compiled(without: list[str]) -> Compiled:
    """Two phases of 1,000 units each: the first twice as fast on 1 GPU as on 8, the second eight times as fast on 8."""
    speeds = ({1: 1.0, 8: 0.5}, {1: 1.0, 8: 8.0})
    runs = [{"kind": "table", "gpu_counts": [1, 8], "steps_per_s": {"a": speed}} for speed in speeds]
    return scenarios.parse(
        {
            "name": "phased",
            "summary": "by hand",
            "horizon_s": 20_000,
            "knowledge": {"work": "oracle"},
            "without": without,
            "cluster": {"pools": [{"name": "a", "accelerator": "A100-SXM-80", "nodes": 1}]},
            "classes": {
                "job": {
                    "kind": "phased",
                    "cycle_work": 2000.0,
                    "phases": [{"name": "generate", "runs": runs[0]}, {"name": "train", "runs": runs[1]}],
                }
            },
            "workload": {"kind": "listed", "jobs": [{"job_class": "job", "submit_s": 0.0, "gpus": 1, "duration_s": 1.0}]},
        }
    ).compile()


def _end_s(compiled: Compiled) -> float:
    """When a malleable job of 2,000 units ends under phase_aware."""
    jobs = requests(1)
    jobs["work"] = jobs["believed_work"] = 2000.0
    jobs["believed_s"], jobs["max_gpus"], jobs["elasticity"] = 2000.0, 8, Elasticity.MALLEABLE
    borders = phases.borders(jobs, compiled.configurations, compiled.scenario.classes)
    simulator = Simulator(compiled)
    simulator.reset(make_world(compiled, jobs, merge({"phases": borders})))
    planner, view = make_policy("phase_aware"), View(simulator)
    planner.reset(0)
    while simulator.status() == Status.OPEN:
        drive(planner, view)
    return float(simulator.state.jobs["end_s"][0, 0])


def test_a_running_job_is_resized_at_the_border_of_a_phase() -> None:
    # 1,000 s on one GPU, then 1,000 units at 8 a second; a job that may not be resized stays on one GPU.
    assert _end_s(_compiled([])) == 1000.0 + 125.0
    assert _end_s(_compiled(["resize"])) == 2000.0

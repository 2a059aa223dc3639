"""Which running jobs are visible, and what their `preempt` rows say of those that wait."""

import numpy as np

from hetenv.env.core import EnvCore
from hetenv.sim.commands import Command
from hetenv.sim.tables import NONE
from tests.bench.worlds import compiled, world


def core_of(jobs: list[tuple[float, int, float]], **columns: object) -> EnvCore:
    """Two nodes of 4 GPUs; every job that fits has been started, in order of submit, at its own submit."""
    scenario = compiled(2, 4, candidates={"queued": 4, "running": 2, "configurations": 2})
    core = EnvCore(scenario)
    core.reset(world(scenario, jobs, **columns))
    last_s = jobs[-1][0]
    while core.simulator.now() < last_s or (core.candidates["command"][0] == Command.START)[core.candidates["is_legal"][0] == 1].any():
        starts = (core.candidates["is_legal"][0] == 1) & (core.candidates["command"][0] == Command.START)
        core.step(np.array([int(np.argmax(starts)) if starts.any() else 0]))
    return core


def preempts(core: EnvCore) -> np.ndarray:
    rows = core.candidates[0]
    return rows[(rows["is_legal"] == 1) & (rows["command"] == Command.PREEMPT)]


def test_the_longest_running_jobs_over_weight_are_visible() -> None:
    core = core_of([(0, 2, 300.0), (0, 2, 900.0), (0, 2, 600.0), (1, 2, 10.0), (1, 2, 10.0)], weight=[1.0, 4.0, 1.0, 1.0, 1.0])
    assert core.windows[0, 4:].tolist() == [2, 0], "600, 300 and 900 / 4 = 225 s"


def test_jobs_that_may_have_no_command_are_not_visible() -> None:
    core = core_of([(0, 4, 300.0), (0, 4, 900.0), (1, 2, 10.0)], preemptible=[1, 0, 1])
    assert core.windows[0, 4:].tolist() == [0, NONE]


def test_preempt_rows_say_how_soon_a_waiting_job_would_end() -> None:
    core = core_of([(0, 4, 300.0), (0, 2, 900.0), (0, 2, 800.0), (1, 4, 60.0), (1, 2, 100.0)], weight=[1.0, 1.0, 1.0, 1.0, 5.0])
    rows = preempts(core)
    assert rows["job"].tolist() == [1, 2]
    assert rows["waiting_s"].tolist() == [20.0, 20.0], "the 4-GPU job does not fit in two GPUs; the other needs 100 / 5 s"


def test_nobody_waits() -> None:
    core = core_of([(0, 4, 300.0), (0, 2, 900.0), (1, 1, 5.0)])
    assert preempts(core)["waiting_s"].tolist() == [0.0, 0.0]

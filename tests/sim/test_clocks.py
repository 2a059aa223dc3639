"""The clock `one_by_one` and wake-ups on tiny worlds with schedules by hand."""

import pytest

from hetenv.errors import CommandError
from hetenv.events.stream import empty_rows
from hetenv.policy import Order
from hetenv.scenario import Compiled, EventClockConfig, OneByOneClockConfig, RoundClockConfig, make_world
from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.view import View, drive
from tests.sim.test_simulator import one_pool, rigid_jobs


def begun(compiled: Compiled, *jobs: tuple[float, int, float]) -> Simulator:
    simulator = Simulator(compiled)
    simulator.reset(make_world(compiled, rigid_jobs(*jobs), empty_rows()))
    return simulator


def seen(simulator: Simulator) -> tuple[float, int, int]:
    """Time, queued and running jobs."""
    clock = simulator.state.clock[0]
    return float(clock["now"]), int(clock["n_queued"]), int(clock["n_running"])


def test_one_by_one_shows_each_submit_and_completion_of_a_time_submits_first() -> None:
    simulator = begun(one_pool(4, clock=OneByOneClockConfig()), (5.0, 1, 10.0), (5.0, 1, 10.0), (15.0, 1, 1.0), (15.0, 1, 1.0))
    found = [seen(simulator)]
    for command in (("wait",), ("start", 0), ("start", 1), *([("wait",)] * 5)):
        if command[0] == "wait":
            simulator.wait()
        else:
            assert simulator.give(Command.START, command[1], 0)
        found.append(seen(simulator))
    assert found == [
        (0.0, 0, 0),  # nothing yet
        (5.0, 1, 0),  # job 0 alone
        (5.0, 1, 1),  # job 0 started, its command was the instant's only one: job 1 comes
        (5.0, 0, 2),  # job 1 started; two jobs, so one command is left
        (15.0, 1, 2),  # both end at 15, but the submits come first
        (15.0, 2, 2),
        (15.0, 2, 1),
        (15.0, 2, 0),
        (1e6, 2, 0),
    ]


def test_one_by_one_completes_jobs_of_one_time_in_the_order_of_their_starts() -> None:
    simulator = begun(one_pool(4, clock=OneByOneClockConfig()), (0.0, 1, 20.0), (10.0, 1, 10.0), (10.0, 1, 10.0), (15.0, 1, 50.0))
    assert simulator.give(Command.START, 0, 0)
    simulator.wait()
    assert seen(simulator) == (10.0, 2, 1)
    assert simulator.give(Command.START, 2, 0) and simulator.give(Command.START, 1, 0)
    ended: list[int] = []
    while simulator.state.clock["n_running"][0]:
        simulator.wait()
        ended += [job for job in range(3) if simulator.state.jobs["end_s"][0, job] == 20.0 and job not in ended]
    assert ended == [0, 2, 1]


def test_one_by_one_lets_a_job_of_no_work_end_in_an_instant_of_its_own() -> None:
    simulator = begun(one_pool(1, clock=OneByOneClockConfig()), (0.0, 1, 0.0), (0.0, 1, 3.0))
    assert seen(simulator) == (0.0, 1, 0)
    simulator.wait()
    assert simulator.give(Command.START, 0, 0)
    assert seen(simulator) == (0.0, 1, 1) and not simulator.is_legal(Command.START, 1, 0)
    simulator.wait()
    assert seen(simulator) == (0.0, 1, 0) and simulator.give(Command.START, 1, 0)


@pytest.mark.parametrize("clock", [EventClockConfig(), OneByOneClockConfig(), EventClockConfig(max_interval_s=70.0)], ids=str)
def test_a_wake_up_makes_one_decision(clock: object) -> None:
    simulator = begun(one_pool(1, clock=clock), (0.0, 1, 100.0), (50.0, 1, 1.0))
    simulator.wake(40.0)
    simulator.wake(30.0)
    simulator.wake(45.0)
    assert simulator.give(Command.START, 0, 0)
    times = [simulator.now()]
    while times[-1] < 100.0:
        simulator.wait()
        times.append(simulator.now())
    assert times == [30.0, 50.0, 100.0]


def test_a_wake_up_is_forgotten_at_the_next_decision_and_rounds_keep_to_themselves() -> None:
    simulator = begun(one_pool(1), (0.0, 1, 100.0), (50.0, 1, 1.0))
    simulator.wake(70.0)
    assert simulator.give(Command.START, 0, 0) and simulator.now() == 50.0
    simulator.wait()
    assert simulator.now() == 100.0
    with pytest.raises(CommandError, match="must lie after now, 100 s"):
        simulator.wake(100.0)
    rounds = begun(one_pool(1, clock=RoundClockConfig(round_s=60.0)), (0.0, 1, 100.0))
    rounds.wake(30.0)
    assert rounds.give(Command.START, 0, 0) and rounds.now() == 60.0


def test_a_planner_wakes_with_its_last_command() -> None:
    class Waker:
        name = "waker"

        def reset(self, seed: int) -> None:
            pass

        def plan(self, view: View) -> list[Order]:
            if view.n_queued:
                return [Order(Command.START, 0, 0, wake_s=view.now_s + 7.0)]
            return [Order(Command.WAIT, wake_s=view.now_s + 83.0)]

    simulator = begun(one_pool(1), (0.0, 1, 100.0))
    times = []
    for _ in range(3):
        drive(Waker(), View(simulator))
        times.append(simulator.now())
    assert times == [7.0, 90.0, 100.0]

"""A view is a live, read-only picture in beliefs: figures by hand on tiny worlds."""

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hetenv.errors import ScenarioError
from hetenv.events.stream import Effect
from hetenv.objective import Account
from hetenv.policy import Order
from hetenv.scenario import Compiled, make_world
from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import TOTAL, Status
from hetenv.view import View, drive
from tests.agents.short import compiled as shipped
from tests.bench.worlds import compiled, world

JOBS = [(0.0, 1, 100.0), (0.0, 2, 60.0), (10.0, 1, 40.0)]


def viewed(made: Compiled, *arguments: Any, **columns: Any) -> tuple[Simulator, View]:
    simulator = Simulator(made)
    simulator.reset(world(made, *arguments, **columns))
    return simulator, View(simulator)


def test_jobs_by_hand() -> None:
    """Job 0 takes 5 s to start and then runs; job 1 waits for two GPUs; job 2 is submitted at 10 s."""
    made = compiled(gpus=2, classes={"script": {"kind": "fixed", "gpu_counts": [1, 2], "first_start_s": 5.0}})
    simulator, view = viewed(made, JOBS, weight=[1.0, 2.0, 1.0], deadline_s=[np.inf, 300.0, np.inf])
    assert view.queue().tolist() == [0, 1] and view.now_s == 0.0
    simulator.give(Command.START, 0, int(view.options(0)[0]))
    assert view.jobs([0])["had_command"][0] == 1 and view.jobs([0])["present_left_s"][0] == 105.0
    simulator.wait()
    assert view.now_s == 10.0 and view.queue().tolist() == [1, 2] and view.running().tolist() == [0]
    running, waiting = view.jobs([0, 1])
    assert (running["believed_left_work"], running["present_left_s"], running["attained_gpu_s"]) == (95.0, 95.0, 10.0)
    assert (running["n_gpus"], running["is_running"], running["ready_s"], running["n_starts"]) == (1, 1, 5.0, 1)
    assert (waiting["believed_left_s"], waiting["weight"], waiting["deadline_s"], waiting["config"]) == (60.0, 2.0, 300.0, -1)
    assert waiting["present_left_s"] == waiting["ready_s"] == np.inf and waiting["attained_gpu_s"] == 0.0
    assert view.free_gpus.tolist() == [1] and view.up_gpus.tolist() == [2]


def test_queue_orders() -> None:
    made = compiled(gpus=4)
    jobs = [(0.0, 1, 90.0), (0.0, 1, 30.0), (0.0, 1, 60.0)]
    _, view = viewed(made, jobs, weight=[9.0, 1.0, 1.0], deadline_s=[200.0, 300.0, 100.0])
    assert view.queue().tolist() == [0, 1, 2]
    assert view.queue("estimate_per_weight").tolist() == [0, 1, 2]  # 10, 30 and 60 s
    assert view.queue("deadline").tolist() == [2, 0, 1]
    with pytest.raises(ScenarioError, match="unknown queue order 'dedline'; did you mean 'deadline'"):
        view.queue("dedline")


def test_jobs_to_come_are_not_shown() -> None:
    _, view = viewed(compiled(), [(0.0, 1, 10.0), (50.0, 1, 10.0)])
    assert view.queue().tolist() == [0]
    for ids in ([1], [-1], [0, 7]):
        with pytest.raises(ValueError, match=r"ids must lie in 0\.\.0"):
            view.jobs(ids)
    assert view.jobs([]).size == 0


def test_signals_of_sites() -> None:
    site = {"name": "site", "pue": 1.5, "carbon_g_per_kwh": 360.0, "price_usd_per_mwh": 36.0}
    pool = {"name": "a", "accelerator": "A100-SXM-80", "nodes": 1, "gpus_per_node": 4, "idle_w": 50.0, "node_overhead_w": 100.0}
    made = compiled(cluster={"pools": [pool], "sites": [site]})
    simulator, view = viewed(made, [(0.0, 1, 500.0)], [(Effect.SITE_RENEWABLE, 0, 100.0, 250.0)])
    assert view.site_power_w.tolist() == [450.0] and view.renewable_w.tolist() == [0.0]
    assert view.carbon_kg_per_j == pytest.approx([0.36 / 3.6e6]) and view.price_usd_per_j == pytest.approx([36.0 / 3.6e9])
    assert (view.pool_pue.tolist(), view.idle_w.tolist(), view.pool_site.tolist()) == ([1.5], [50.0], [0])
    simulator.wait()
    assert view.now_s == 100.0 and view.renewable_w.tolist() == [250.0]
    assert view.objective == {Account.JOB_S: pytest.approx(1 / 3600)}


def test_nothing_can_be_written() -> None:
    simulator, view = viewed(compiled(gpus=4), JOBS)
    before = simulator.snapshot()
    for name in ("configs", "classes", "pool_site", "pool_pue", "idle_w"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(view, name)[...] = 0
    for returned in (
        view.free_gpus, view.up_gpus, view.site_power_w, view.renewable_w, view.carbon_kg_per_j, view.price_usd_per_j,
        view.queue(), view.running(), view.jobs([0, 1]), view.options(0), view.allowed(0),
    ):  # fmt: skip
        returned[...] = 0
    assert all(np.array_equal(*tables) for tables in zip(simulator.state, before))
    assert view.queue().tolist() == [0, 1] and view.jobs([1])["min_gpus"][0] == 2
    for name in ("now_s", "n_queued", "free_gpus", "objective"):
        with pytest.raises(AttributeError):
            setattr(view, name, 0)


def shown(view: View) -> list[Any]:
    """All that a view says at an instant."""
    jobs = [*view.queue(), *view.running()]
    properties = [value for name, value in sorted(vars(View).items()) if isinstance(value, property)]
    per_job = [(view.options(job).tolist(), view.allowed(job).tolist()) for job in jobs]
    orders = [view.queue(order).tolist() for order in ("submit", "estimate_per_weight", "deadline")]
    overheads = [view.start_overhead_s(job, config) for job, (_, allowed) in zip(jobs, per_job) for config in allowed]
    figures = [np.asarray(each.fget(view)).tolist() for each in properties if each.fget]
    return [view.jobs(jobs).tobytes(), per_job, orders, overheads, figures, view.first_fit(view.queue(), until_s=view.now_s + 600.0)]


@pytest.mark.compiled
def test_a_view_holds_beliefs_only() -> None:
    """Two worlds that differ in what is not known (work left, events to come) look alike until it shows."""
    smoke = shipped("smoke")
    sampled, pictures, until_s = smoke.sample(3), [], 10_800.0
    for factor in (1000.0, 5000.0):
        requests = sampled.requests.copy()
        requests["work"] *= factor
        events = sampled.events[sampled.events["at"] < until_s] if factor > 1000.0 else sampled.events
        simulator = Simulator(smoke)
        simulator.reset(make_world(smoke, requests, events.copy()))
        view, seen = View(simulator), []
        while simulator.now() < until_s and simulator.status() == Status.OPEN:
            seen.append(shown(view))
            start = view.first_fit(view.queue())
            simulator.give(Command.WAIT if start is None else Command.START, *(start or ()))
        pictures.append(seen)
    assert len(pictures[0]) > 10
    assert pictures[0] == pictures[1]


def test_a_job_that_outlives_its_estimate_keeps_a_positive_time_left() -> None:
    made = compiled(gpus=1)
    simulator, view = viewed(made, [(0.0, 1, 500.0), (300.0, 1, 1.0)], believed_work=[100.0, 1.0], believed_s=[100.0, 1.0])
    simulator.give(Command.START, 0, int(view.options(0)[0]))
    assert view.now_s == 300.0
    assert 0.0 < view.jobs([0])["present_left_s"][0] < 500.0


class Script:
    """A planner that reads its orders from a list."""

    name = "script"

    def __init__(self, *orders: Order) -> None:
        self.orders = orders

    def reset(self, seed: int) -> None:
        pass

    def plan(self, view: View) -> Iterator[Order]:
        yield from self.orders


def test_drive_counts_illegal_orders_and_goes_on() -> None:
    made = compiled(gpus=2)
    simulator, view = viewed(made, [(0.0, 1, 100.0), (0.0, 2, 50.0), (0.0, 1, 40.0)])
    one = int(view.allowed(0)[0])
    illegal = [Order(Command.PREEMPT, 0), Order(Command.START, 0, int(view.allowed(1)[0]))]
    assert drive(Script(*illegal, Order(Command.START, 0, one)), view) == 2
    assert simulator.state.ledger[0, TOTAL, Account.N_ILLEGAL] == 2
    assert view.now_s == 100.0 and view.queue().tolist() == [1, 2]


def test_drive_ends_a_plan_at_wait() -> None:
    made = compiled(gpus=2)
    _, view = viewed(made, [(0.0, 1, 100.0), (0.0, 1, 50.0), (30.0, 1, 40.0)])
    one = int(view.allowed(0)[0])
    assert drive(Script(Order(Command.START, 0, one), Order(Command.WAIT, -1), Order(Command.START, 1, one)), view) == 0
    assert view.now_s == 30.0 and view.running().tolist() == [0] and view.queue().tolist() == [1, 2]


def test_a_pickled_view_goes_on() -> None:
    _, view = viewed(compiled(gpus=2), JOBS)
    twin = pickle.loads(pickle.dumps(view))
    assert twin.queue().tolist() == view.queue().tolist() and twin.options(0).tolist() == view.options(0).tolist()

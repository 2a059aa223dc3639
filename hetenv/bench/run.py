"""One episode of one policy: the simulator is driven to the end, and what came out is one plain dict.

The dict is the same in Python (`hetenv.run`), on the command line (`hetenv run --json`) and in the benchmark's CSV.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from hetenv.bench.compiled import compiled_scenario
from hetenv.bench.golden import golden_hash
from hetenv.bench.metrics import METRICS, Value, metrics
from hetenv.env.core import EnvCore
from hetenv.errors import ScenarioError
from hetenv.policy import AnyPolicy, Decision, Order, Planner, Policy, make_policy
from hetenv.scenario import Compiled, Scenario
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import Status
from hetenv.view import View, drive

Result = dict[str, Value | str]

IDENTITY: Final = ("scenario", "scenario_version", "golden", "policy", "seed", "status")
TIMES: Final = ("decision_mean_s", "decision_max_s", "wall_s")
"""Keys of a result that differ from one run to the next; all others are reproducible."""
RESULT_KEYS: Final = (*IDENTITY, *METRICS, "decisions", *TIMES)


class _Stopwatch:
    """How often a policy was asked, and how long it thought."""

    def __init__(self) -> None:
        self.decisions, self.total_s, self.max_s = 0, 0.0, 0.0

    def note(self, spent_s: float) -> None:
        """One decision."""
        self.decisions += 1
        self.total_s += spent_s
        self.max_s = max(self.max_s, spent_s)


class _TimedPlanner:
    """A planner whose thinking is timed, and nothing that happens between two of its orders."""

    def __init__(self, planner: Planner, watch: _Stopwatch) -> None:
        self.name, self._planner, self._watch = planner.name, planner, watch

    def reset(self, seed: int) -> None:
        self._planner.reset(seed)

    def plan(self, view: View) -> Iterator[Order]:
        began_s, spent_s = time.perf_counter(), 0.0
        try:
            for order in self._planner.plan(view):
                spent_s += time.perf_counter() - began_s
                yield order
                began_s = time.perf_counter()
            spent_s += time.perf_counter() - began_s
        finally:
            self._watch.note(spent_s)


def run(scenario: str | Path | Scenario, policy: str | AnyPolicy, seed: int = 0) -> Result:
    """Run one episode and measure it.

    Args:
        scenario: a shipped name, a YAML file or an object.
        policy: a registered name, `rl:...`, or an object that is a Policy or a Planner.
        seed: the world; every policy meets the same one. It also seeds the policy's own randomness.

    Returns:
        RESULT_KEYS: what ran, its METRICS, `decisions` (times the policy was asked) and the times it took.

    Raises:
        ScenarioError: an unknown scenario or policy, or a scenario that cannot be used.
    """
    compiled = compiled_scenario(scenario)
    return run_compiled(compiled, make_policy(policy, compiled.scenario.name), seed)


def run_compiled(compiled: Compiled, policy: AnyPolicy, seed: int) -> Result:
    """As `run`, for a scenario that is compiled and a policy that is made."""
    if seed < 0:
        raise ScenarioError(f"seed: must be at least 0 (got {seed})")
    golden = golden_hash(compiled)
    began_s = time.perf_counter()
    policy.reset(seed)
    watch = _Stopwatch()
    simulator = simulated(compiled, policy, seed, watch)
    found = metrics(simulator)
    wall_s = time.perf_counter() - began_s
    scenario = compiled.scenario
    return {
        "scenario": scenario.name,
        "scenario_version": scenario.version,
        "golden": golden,
        "policy": policy.name,
        "seed": seed,
        "status": simulator.status().name.lower(),
        **found,
        "decisions": watch.decisions,
        "decision_mean_s": watch.total_s / watch.decisions if watch.decisions else None,
        "decision_max_s": watch.max_s if watch.decisions else None,
        "wall_s": wall_s,
    }


def simulated(compiled: Compiled, policy: AnyPolicy, seed: int, watch: _Stopwatch | None = None) -> Simulator:
    """The simulator at the end of an episode. The policy is to be reset before."""
    drive_with = _run_planner if isinstance(policy, Planner) else _run_policy
    return drive_with(compiled, policy, seed, watch or _Stopwatch())  # type: ignore[arg-type]


def _run_policy(compiled: Compiled, policy: Policy, seed: int, watch: _Stopwatch) -> Simulator:
    """Drive candidate rows: the policy is asked wherever something other than `wait` is legal."""
    core = EnvCore(compiled)
    flat, _ = core.reset_many({0: compiled.sample(seed)})
    clock = core.simulator.state.clock
    while core.simulator.status() == Status.OPEN:
        shown = flat
        decision = Decision(core.candidates, lambda shown=shown: core.layout.views(shown), clock["now"].copy())  # type: ignore[misc]
        began_s = time.perf_counter()
        actions = np.asarray(policy.act(decision), np.int64)
        watch.note(time.perf_counter() - began_s)
        flat, _, _ = core.step(actions.reshape(1))
    return core.simulator


def _run_planner(compiled: Compiled, planner: Planner, seed: int, watch: _Stopwatch) -> Simulator:
    """Drive a planner: it is asked at every decision instant."""
    simulator = Simulator(compiled)
    simulator.reset(compiled.sample(seed))
    view, timed = View(simulator), _TimedPlanner(planner, watch)
    while simulator.status() == Status.OPEN:
        drive(timed, view)
    return simulator

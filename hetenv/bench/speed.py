"""How fast this machine is. CPU times are `time.process_time` of this process; fresh processes are timed by the clock.

A decision is one `env.step` with a legal action, resets included. Actions are uniform over the legal rows; they are drawn in a
first pass from the same seed and replayed under the clock REPLAYS times, so that drawing them costs nothing. The fastest replay
counts, as what else the machine does can only slow one down; `noise` is the slowest replay's time over the fastest one's, the
largest of all measurements: a difference below it means nothing.

Estimates of the performance model are counted three ways: closed form (`perf_estimates`: plans on one kind of device, from arrays),
pipelines over two kinds of devices with the best layer split (`mixed_estimates`), and exact block by block (`recurrence_estimates`).
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from hetenv.bench.compiled import compiled_scenario
from hetenv.env.core import EnvCore
from hetenv.perf import Devices, Training, estimate_many
from hetenv.perf.rows import ESTIMATE_ROW, Reason
from hetenv.perf.schedule import makespan_s
from hetenv.perf.search import plan_space, search
from hetenv.perf.search_mixed import pipeline_space, price_pipelines, search_pair
from hetenv.perf.training import setting_row
from hetenv.scenario import Scenario, load
from hetenv.sim.tables import Status
from hetenv.workload import SyntheticWorkload

Mask = NDArray[np.int8]
LLAMA: Final = Training("llama3-70b", 1024)
TIMED: Final[dict[str, Callable[[], object]]] = {
    "search_one_kind_s": lambda: search(LLAMA, Devices("H100-SXM-80", 1024)),
    "search_two_kinds_s": lambda: search_pair(LLAMA, (Devices("H100-SXM-80", 512), Devices("A100-SXM-80", 512))),
    "compile_mixed_gpus_s": lambda: load(SCENARIO).compile(),
    "sample_mixed_gpus_s": lambda: compiled_scenario(SCENARIO).sample(0),
}
"""CPU seconds of the complete plan searches for Llama-3-70B on 1,024 GPUs, of compiling a scenario and of drawing a world."""
SCENARIO: Final = "mixed_gpus"
ENV_ID: Final = "hetenv/HetCluster-v0"
WARM_UP_DECISIONS: Final = 10_000
BATCHES: Final = (64, 256)
INITIAL_JOBS: Final = 200
ARRIVALS_FACTOR: Final = 2.0
FRESH_RUNS: Final = 3
REPLAYS: Final = 3
LINE_BYTES: Final = 64
"""Of a processor's cache."""
_FIRST_STEP: Final = """
import time
began = time.perf_counter()
import hetenv
imported = time.perf_counter()
import gymnasium
env = gymnasium.make("hetenv/HetCluster-v0", scenario="mixed_gpus")
env.reset(seed=0)
ready = time.perf_counter()
env.step(0)
print(imported - began, ready - imported, time.perf_counter() - imported)
"""


def measure(n_decisions: int) -> dict[str, float]:
    """All figures of `hetenv speed`, with about `n_decisions` timed decisions per measurement."""
    scenario = busy_scenario()
    rates = {"gym_make_decisions_per_cpu_s": _single(scenario).rates(n_decisions, WARM_UP_DECISIONS)}
    for size in BATCHES:
        n_steps = max(100, n_decisions // size)
        found = _vector(scenario, size).rates(n_steps, -(-WARM_UP_DECISIONS // size))
        rates[f"batch{size}_decisions_per_cpu_s"] = [size * rate for rate in found]
    rates["kernel_decisions_per_cpu_s"] = _core(scenario).rates(n_decisions, WARM_UP_DECISIONS)
    rates["perf_estimates_per_cpu_s"] = _estimates_per_s(10 * n_decisions)
    rates["mixed_estimates_per_cpu_s"] = _mixed_estimates_per_s(n_decisions)
    rates["recurrence_estimates_per_cpu_s"] = _recurrences_per_s(-(-n_decisions // 20))
    timed = {name: _seconds(work) for name, work in TIMED.items()}
    best = {name: max(found) for name, found in rates.items()}
    best |= {name: min(found) for name, found in timed.items()}
    noise = {"noise": max(max(found) / min(found) for found in [*rates.values(), *timed.values()])}
    return best | _fresh_processes() | _footprint(scenario) | noise


def busy_scenario() -> Scenario:
    """`mixed_gpus` with so many jobs, from the start and later, that the queue is never empty."""
    scenario = load(SCENARIO)
    workload = scenario.workload
    assert isinstance(workload, SyntheticWorkload)
    arrivals = workload.arrivals
    faster = arrivals.model_copy(update={"rate_per_h": ARRIVALS_FACTOR * arrivals.rate_per_h})
    busier = workload.model_copy(update={"initial_jobs": INITIAL_JOBS, "arrivals": faster})
    return scenario.model_copy(update={"workload": busier})


@dataclass(frozen=True)
class _Replay:
    """A first pass draws actions, a second one repeats them under the clock.

    Both begin with `reset`, which must lead to the same episodes. `reset` and `step` return the action mask [A] or [B, A]; a step
    after which an episode is over begins the next one. `queued` gives the least number of queued jobs.
    """

    reset: Callable[[], Mask]
    step: Callable[[Any], Mask]
    queued: Callable[[], int]

    def rates(self, n_steps: int, n_warm_up: int) -> list[float]:
        """[REPLAYS] steps per CPU second."""
        actions = self._drawn(n_warm_up + n_steps)
        timed, step, found = actions[n_warm_up:], self.step, []
        for _ in range(REPLAYS):
            self.reset()
            for action in actions[:n_warm_up]:
                step(action)
            began_s = time.process_time()
            for action in timed:
                step(action)
            found.append(n_steps / (time.process_time() - began_s))
        return found

    def _drawn(self, n_steps: int) -> list[Any]:
        rng, actions = np.random.default_rng(0), []
        mask = self.reset()
        for _ in range(n_steps):
            assert self.queued() > 0, "the queue is empty"
            action = (rng.random(mask.shape) * mask).argmax(axis=-1)
            actions.append(action if action.ndim else int(action))
            mask = self.step(actions[-1])
        return actions


def _single(scenario: Scenario) -> _Replay:
    env = gym.make(ENV_ID, scenario=scenario)

    def reset() -> Mask:
        mask: Mask = env.reset(seed=0)[1]["action_mask"]
        return mask

    def step(action: int) -> Mask:
        _, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            _, info = env.reset()
        mask: Mask = info["action_mask"]
        return mask

    return _Replay(reset, step, lambda: _least_queued(env.unwrapped))


def _vector(scenario: Scenario, n_envs: int) -> _Replay:
    how: dict[str, Any] = {
        "vectorization_mode": "vector_entry_point",
        "autoreset_mode": "SAME_STEP",
    }  # every step is a decision
    envs = gym.make_vec(ENV_ID, num_envs=n_envs, scenario=scenario, **how)

    def reset() -> Mask:
        mask: Mask = envs.reset(seed=0)[1]["action_mask"]
        return mask

    def step(actions: NDArray[np.int64]) -> Mask:
        mask: Mask = envs.step(actions)[4]["action_mask"]
        return mask

    return _Replay(reset, step, lambda: _least_queued(envs.unwrapped))


def _least_queued(env: Any) -> int:
    clock = env.core.simulator.state.clock
    return int(np.where(clock["status"] == Status.OPEN, clock["n_queued"], 1).min())


def _core(scenario: Scenario) -> _Replay:
    """The compiled step alone, without Gymnasium; worlds are drawn before."""
    compiled = scenario.compile()
    core, worlds = EnvCore(compiled), [compiled.sample(0, episode) for episode in range(4)]
    n_begun = 0

    def begin() -> Mask:
        nonlocal n_begun
        n_begun += 1
        mask: Mask = core.reset_many({0: worlds[n_begun % len(worlds)]})[1][0]
        return mask

    def reset() -> Mask:
        nonlocal n_begun
        n_begun = 0
        return begin()

    def step(action: int) -> Mask:
        _, masks, _ = core.step(np.array([action]))
        mask: Mask = masks[0]
        return mask if core.simulator.status() == Status.OPEN else begin()

    return _Replay(reset, step, lambda: int(core.simulator.state.clock["n_queued"][0]))


def _estimates_per_s(n_estimates: int) -> list[float]:
    """[REPLAYS] estimates per CPU second from arrays of plans."""
    training, devices = Training("llama3-8b", 64), Devices("H100-SXM-80", 32)
    space = plan_space(training, devices)
    plans = space[np.arange(max(n_estimates, space.size)) % space.size]
    return _per_s(lambda: estimate_many(training, devices, plans), plans.size)


def _mixed_estimates_per_s(n_estimates: int) -> list[float]:
    """[REPLAYS] plans per CPU second of pipelines over two kinds of devices, each with its best layer split."""
    training, pools = Training("llama3-8b", 64), (Devices("H100-SXM-80", 16), Devices("A100-SXM-80", 16))
    space = pipeline_space(training, pools)
    plans = space[np.arange(max(n_estimates, space.size)) % space.size]
    a, b = (setting_row(training, pool)[0] for pool in pools)
    out, found = np.zeros(2, ESTIMATE_ROW), np.zeros((2, plans.size))
    reasons = np.zeros(len(Reason), np.int64)
    return _per_s(lambda: price_pipelines(a, b, plans, out, found[0], found[1], reasons), plans.size)


def _recurrences_per_s(n_estimates: int) -> list[float]:
    """[REPLAYS] exact makespans per CPU second of 1F1B over 8 unequal stages with 32 micro-batches (512 blocks)."""
    forward_s, link_s = np.linspace(1.0, 2.0, 8), np.full(8, 0.1)

    def work() -> None:
        for _ in range(n_estimates):
            makespan_s(forward_s, 2.0 * forward_s, link_s, 32)

    return _per_s(work, n_estimates)


def _per_s(work: Callable[[], object], n: int) -> list[float]:
    """[REPLAYS] rates of `work`, which does n things."""
    return [n / seconds for seconds in _seconds(work)]


def _seconds(work: Callable[[], object]) -> list[float]:
    """[REPLAYS] CPU seconds, after a first run that compiles kernels."""
    work()
    found = []
    for _ in range(REPLAYS):
        began_s = time.process_time()
        work()
        found.append(time.process_time() - began_s)
    return found


def _fresh_processes() -> dict[str, float]:
    """Best of FRESH_RUNS: import, and make and reset after it. In an empty cache: all that precedes the end of the first step."""
    runs = [_printed_by(_FIRST_STEP) for _ in range(FRESH_RUNS)]
    with tempfile.TemporaryDirectory() as folder:
        _, _, cold_s = _printed_by(_FIRST_STEP, NUMBA_CACHE_DIR=folder)
    return {
        "import_s": min(import_s for import_s, _, _ in runs),
        "first_reset_s": min(reset_s for _, reset_s, _ in runs),
        "cold_compile_s": cold_s,
    }


def _printed_by(code: str, **variables: str) -> list[float]:
    """The numbers that a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables}
    )
    return [float(number) for number in done.stdout.split()]


def _footprint(scenario: Scenario, n_steps: int = 2000) -> dict[str, float]:
    """Size of an environment's state, and what a step writes: changed cache lines of the state, candidates, observation, mask."""
    compiled = scenario.compile()
    core = EnvCore(compiled)
    _, mask = core.reset_many({0: compiled.sample(0)})
    rng, changed, taken = np.random.default_rng(0), 0, 0
    before = core.simulator.snapshot()
    for _ in range(n_steps):
        flat, mask, _ = core.step((rng.random(mask.shape) * mask).argmax(axis=1))
        if core.simulator.status() != Status.OPEN:
            break
        after = core.simulator.snapshot()
        changed += sum(_changed_bytes(old, new) for old, new in zip(list(before), list(after)))
        before, taken = after, taken + 1
    written = core.choices.nbytes + flat.nbytes + mask.nbytes
    return {
        "state_bytes_per_env": float(sum(table.nbytes for table in core.simulator.state)),
        "touched_bytes_per_step": changed / max(1, taken) + written,
    }


def _changed_bytes(old: NDArray[Any], new: NDArray[Any]) -> int:
    """Bytes in the cache lines in which two tables differ."""
    differ = np.frombuffer(old.tobytes(), np.uint8) != np.frombuffer(new.tobytes(), np.uint8)
    starts = np.arange(0, differ.size, LINE_BYTES)
    return LINE_BYTES * int(np.add.reduceat(differ, starts).astype(bool).sum()) if differ.size else 0

"""A benchmark: scenarios x policies x seeds on common worlds, in parallel processes, finished episodes kept at once."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from hetenv.bench.compare import ComparisonRow, compare, write_csv
from hetenv.bench.compiled import compiled_scenario
from hetenv.bench.episodes import EpisodeFile
from hetenv.bench.golden import golden_hash
from hetenv.bench.report import markdown
from hetenv.bench.run import Result, run_compiled
from hetenv.errors import HetenvError, ScenarioError
from hetenv.policy import AnyPolicy, make_policy
from hetenv.scenario import Compiled, Scenario

_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_TASKS_A_PROCESS: Final = 4
"""Tasks in flight per process: enough to keep it busy, few enough to stop soon."""


@dataclass(frozen=True)
class Benchmark:
    """What a benchmark found.

    Attributes:
        episodes: one result of `run` each, in order of scenario, policy, seed.
        rows: comparison with the baseline.
        table: Markdown, one table per scenario.
    """

    episodes: list[Result]
    rows: list[ComparisonRow]
    table: str


@dataclass(frozen=True)
class _Work:
    """What a worker needs for any task: compiled scenarios, and policies by name or as objects."""

    compileds: tuple[Compiled, ...]
    policies: tuple[str | AnyPolicy, ...]


Task = tuple[int, int, int]
"""Index of the scenario, index of the policy, seed."""


def bench(
    scenarios: Sequence[str | Path | Scenario],
    policies: Sequence[str | AnyPolicy],
    seeds: Iterable[int] | Callable[[Scenario], Iterable[int]],
    *,
    baseline: str | None = None,
    processes: int | None = None,
    folder: Path | None = None,
    on_episode: Callable[[Result, int, int], None] | None = None,
) -> Benchmark:
    """Run every policy on every scenario with the same seeds and compare them with a baseline.

    Args:
        seeds: numbers, or a function that gives each scenario's.
        baseline: name of one of the policies; default: the first.
        processes: worker processes; default: one per core; 1: run here. A script that starts workers needs the usual
            `if __name__ == "__main__"`.
        folder: gets episodes.csv (row by row), comparison.csv and table.md; episodes that are there already are not run again.
        on_episode: called with each finished result, how many are finished and how many there will be.

    Raises:
        ScenarioError: an unknown scenario, policy or baseline, a policy or scenario named twice, or no seed.
    """
    work = _Work(tuple(compiled_scenario(scenario) for scenario in scenarios), tuple(policies))
    names = _policy_names(work)
    fixed = None if callable(seeds) else tuple(seeds)
    numbers = [sorted(set(seeds(c.scenario) if callable(seeds) else fixed or ())) for c in work.compileds]
    _check(work, names, numbers)
    if baseline is not None and baseline not in names:
        raise ScenarioError(f"baseline {baseline!r} is not among the policies ({', '.join(names)})")
    baseline = baseline or names[0]
    tasks = [(i, j, seed) for i in range(len(work.compileds)) for j in range(len(names)) for seed in numbers[i]]
    key_of = {_key(work, names, task): task for task in tasks}
    with _episodes(folder) as file:
        finished = (
            {} if file is None else {key_of[key]: row for row in file.finished if (key := _row_key(row)) in key_of}
        )
        open_tasks = [task for task in tasks if task not in finished]
        for task, result in _results(work, open_tasks, processes):
            finished[task] = result
            if file is not None:
                file.append(result)
            if on_episode is not None:
                on_episode(result, len(finished), len(tasks))
    episodes = [finished[task] for task in tasks]
    rows = compare(episodes, baseline)
    goldens = {compiled.scenario.name: golden_hash(compiled) for compiled in work.compileds}
    table = markdown(rows, [compiled.scenario for compiled in work.compileds], baseline, goldens)
    if folder is not None:
        write_csv(rows, folder / "comparison.csv")
        (folder / "table.md").write_text(table + "\n", encoding="utf-8")
    return Benchmark(episodes, rows, table)


def _policy_names(work: _Work) -> list[str]:
    """Names under which the policies report, which also tries each on each scenario's name."""
    made = [
        [make_policy(policy, compiled.scenario.name).name for policy in work.policies] for compiled in work.compileds
    ]
    return made[0] if made else []


def _check(work: _Work, names: Sequence[str], seeds: Sequence[Sequence[int]]) -> None:
    scenario_names = [compiled.scenario.name for compiled in work.compileds]
    for kind, given in (("scenario", scenario_names), ("policy", names)):
        if not given:
            raise ScenarioError(f"{kind}: none given; name at least one")
        doubled = sorted({name for name in given if list(given).count(name) > 1})
        if doubled:
            raise ScenarioError(f"{kind} {doubled[0]!r} is given twice; name each once")
    if not all(seeds):
        raise ScenarioError("seeds: none given; name at least one")


def _key(work: _Work, names: Sequence[str], task: Task) -> tuple[str, str, str, int]:
    compiled = work.compileds[task[0]]
    return compiled.scenario.name, golden_hash(compiled), names[task[1]], task[2]


def _row_key(row: Result) -> tuple[str, str, str, int]:
    return str(row["scenario"]), str(row["golden"]), str(row["policy"]), int(row["seed"] or 0)


@contextmanager
def _episodes(folder: Path | None) -> Iterator[EpisodeFile | None]:
    if folder is None:
        yield None
    else:
        with EpisodeFile(folder / "episodes.csv") as file:
            yield file


def _results(work: _Work, tasks: Sequence[Task], processes: int | None) -> Iterator[tuple[Task, Result]]:
    """Results as they come; on an error or an interrupt nothing new is started."""
    workers = min(os.cpu_count() or 1 if processes is None else processes, len(tasks))
    if workers <= 1:
        runner = _Runner(work)
        for task in tasks:
            yield task, runner.run(task)
        return
    with _one_thread_each():
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (work,))
        try:
            waiting = iter(tasks)
            pending = {pool.submit(_run, task): task for task in islice(waiting, workers * _TASKS_A_PROCESS)}
            while pending:
                done = next(as_completed(pending))
                yield pending.pop(done), done.result()
                pending.update({pool.submit(_run, task): task for task in islice(waiting, 1)})
        except BrokenProcessPool:
            raise HetenvError(
                "a worker process died: out of memory, or a script without `if __name__ == '__main__'`; try processes=1"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Workers are processes, so each computes with one thread."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update({name: "1" for name, value in before.items() if value is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]


class _Runner:
    """Runs tasks; each policy is made once per scenario and reset for each episode."""

    def __init__(self, work: _Work) -> None:
        self._work = work
        self._made: dict[tuple[int, int], AnyPolicy] = {}

    def run(self, task: Task) -> Result:
        i, j, seed = task
        compiled = self._work.compileds[i]
        if (i, j) not in self._made:
            self._made[i, j] = make_policy(self._work.policies[j], compiled.scenario.name)
        return run_compiled(compiled, self._made[i, j], seed)


_runner: _Runner | None = None
"""Of a worker process."""


def _begin(work: _Work) -> None:
    global _runner
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    _runner = _Runner(work)


def _run(task: Task) -> Result:
    assert _runner is not None
    return _runner.run(task)

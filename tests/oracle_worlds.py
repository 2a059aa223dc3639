"""Tiny worlds for the oracle's tests, and what is read from them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hetenv.cluster import ClusterConfig, PoolConfig, SiteConfig
from hetenv.configurations import Configurations
from hetenv.events.stream import Effect, merge, rows
from hetenv.scenario import MeasureConfig, make_world
from hetenv.workload.requests import by_submit, requests
from tests.oracle import Oracle
from tests.random_worlds import assemble, config_row, tabulate

WATTLESS = {"accelerator": "A100-SXM-80", "node_overhead_w": 0.0, "idle_w": 0.0}
ONE_GPU = tabulate((0.0, 0.0, [config_row(0, 1)]))


def pool(nodes: int = 1, gpus: int = 1, name: str = "a", **fields: Any) -> PoolConfig:
    return PoolConfig(name=name, nodes=nodes, gpus_per_node=gpus, **{**WATTLESS, **fields})


def oracle(
    jobs: list[dict[str, Any]],
    configurations: Configurations = ONE_GPU,
    pools: tuple[PoolConfig, ...] = (pool(),),
    events: tuple[np.ndarray, ...] = (),
    site: SiteConfig | None = None,
    window: MeasureConfig | None = None,
    **rules: Any,
) -> Oracle:
    """A world of jobs given as the REQUEST columns that differ from the defaults."""
    table = requests(len(jobs))
    for row, job in zip(table, jobs):
        for name, value in job.items():
            row[name] = value
    cluster = ClusterConfig(pools=pools, sites=(site or SiteConfig(name="site"),))
    compiled = assemble(cluster, configurations=configurations, measure=window or MeasureConfig(), **rules)
    drawn = merge({str(i): event for i, event in enumerate(events)})
    return Oracle(compiled, make_world(compiled, by_submit(table), drawn), measure=window is not None)


def greedy(it: Oracle, until: Callable[[], bool] = lambda: False) -> Oracle:
    """First-fit FIFO: start what can start, by job id, then wait; until the end or until `until`."""
    while not it.done and not until():
        starts = [command for command in it.legal_commands() if command[0] == "start"]
        it.apply(*(starts[0] if starts else ("wait",)))
    return it


def ends(it: Oracle) -> list[float]:
    return [job.end_s for job in it.jobs]


def states(it: Oracle) -> list[str]:
    return [job.state for job in it.jobs]


def tick(*at_s: float) -> np.ndarray:
    """Rows that change nothing but make instants."""
    return rows(Effect.SITE_PRICE, at_s, 0, 0.0)


def down(node: int, at_s: float, for_s: float = 1.0) -> np.ndarray:
    return rows(Effect.NODE_DOWN, at_s, node, for_s)


def allocation(it: Oracle, job: int, config: int) -> dict[int, int]:
    assert it.apply("start", job, config)
    return it.jobs[job].allocation


def sized(*sizes: int, **more: Any) -> list[dict[str, Any]]:
    return [{"work": 100, "min_gpus": n, "max_gpus": n, **more} for n in sizes]

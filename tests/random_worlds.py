"""Small random worlds for comparing the kernels with the oracle, and the parts to build tiny worlds by hand.

A world is *exact* or *rough*. In an exact one every time lies on a grid and every rate is a power of two, so that all
sums are exact and ties between jobs, nodes and events are frequent. In a rough one jobs' quantities are arbitrary reals
and no instant of a job ties with anything by rounding; events still tie with each other and with submits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from hetenv import beliefs, cluster
from hetenv.cluster import ClusterConfig, PoolConfig, SiteConfig
from hetenv.configurations import CLASS, NO_POOL, Configurations, class_row, empty_configs
from hetenv.events.stream import JOB_EFFECTS, SIGNAL_EFFECTS, Effect, EventClock, empty_rows, merge, rows
from hetenv.scenario import (
    CandidateConfig,
    Capability,
    Compiled,
    DrainEnd,
    EventClockConfig,
    MeasureConfig,
    OneByOneClockConfig,
    RoundClockConfig,
    Scenario,
    TruncateEnd,
    World,
    make_world,
)
from hetenv.units import quantise_power
from hetenv.workload.job_class import FixedClass, PlainClass, TableClass
from hetenv.workload.requests import NEVER, Elasticity, by_submit, requests
from tests.random_extras import class_extras, config_extras, connect, extra_value, pool_extras, site_extras, wan_extras

T = TypeVar("T")
GRID_S = 60
COUNTS = (1, 2, 3, 4, 6, 8, 12)
ACCELERATORS = ("V100-SXM-32", "A100-SXM-80", "H100-SXM-80")


def assemble(
    pools: ClusterConfig,
    classes: Mapping[str, PlainClass] | None = None,
    configurations: Configurations | None = None,
    horizon_s: float = 1e6,
    **rules: Any,
) -> Compiled:
    """A compiled scenario without a workload, from job classes or from hand-made configurations."""
    parts = {"cluster": pools, "classes": classes or {}, "workload": None}
    scenario = Scenario.model_construct(name="by_hand", summary="by hand", horizon_s=horizon_s, **parts, **rules)
    if configurations is None:
        return scenario.compile()
    return Compiled(scenario, cluster.build(pools), configurations)


def config_row(pool: int, gpus: int, pool_b: int = NO_POOL, gpus_b: int = 0, **columns: Any) -> NDArray[np.void]:
    """[1] a CONFIG row: steps of one second and one unit of work, on its footprint only, unless `columns` differ."""
    row = empty_configs(1)
    row["pool_a"], row["gpus_a"], row["pool_b"], row["gpus_b"] = pool, gpus, pool_b, gpus_b
    row["n_gpus"] = gpus + gpus_b
    row["work_per_step"] = row["compute_s"] = row["spread_penalty"] = row["memory_margin"] = 1.0
    for name, value in columns.items():
        row[name] = value
    intra_s = np.maximum(0.0, row["intra_s"] - row["intra_hideable_s"])
    inter_s = np.maximum(0.0, row["inter_s"] - row["inter_hideable_s"])
    row["rate"] = row["work_per_step"] / (row["compute_s"] + intra_s + inter_s)
    row["power_w"] = quantise_power(float(row["power_w"][0]))
    row["energy_per_work_j"] = row["power_w"] / row["rate"]
    return row


def tabulate(*classes: tuple[float, float, Sequence[NDArray[np.void]]]) -> Configurations:
    """Configurations of classes given as (first_start_s, restart_s, CONFIG rows)."""
    return tabulate_classes(
        *((FixedClass(first_start_s=first_s, restart_s=restart_s), rows) for first_s, restart_s, rows in classes)
    )


def tabulate_classes(*classes: tuple[PlainClass, Sequence[NDArray[np.void]]]) -> Configurations:
    """Configurations of classes, their CONFIG rows made by hand."""
    table, class_rows, first = [], np.zeros(len(classes), CLASS), 0
    for index, (job_class, class_table) in enumerate(classes):
        joined = np.concatenate(class_table)
        joined["job_class"] = index
        class_rows[index] = class_row(job_class, joined, first)
        first += joined.size
        table.append(joined)
    joined = np.concatenate(table)
    return Configurations(joined, class_rows, tuple(f"class{i}" for i in range(len(classes))), (None,) * first)


@dataclass
class Dice:
    """Random draws; `exact` keeps amounts on the grid."""

    rng: np.random.Generator
    exact: bool

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def whole(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, *values: T) -> T:
        return values[self.whole(0, len(values) - 1)]

    def some(self, values: Sequence[T]) -> list[T]:
        """A part of the values, in order, not empty."""
        kept = [value for value in values if self.chance(0.5)]
        return kept or [self.pick(*values)]

    def grid_s(self, n: int, low_s: float, high_s: float) -> NDArray[np.float64]:
        """[n] times of the grid in [low, high)."""
        return self.rng.integers(int(low_s // GRID_S), int(np.ceil(high_s / GRID_S)), n) * float(GRID_S)

    def amount(self, high: int) -> float:
        """Seconds or work in (0, high]."""
        return float(self.whole(1, high // 30) * 30) if self.exact else float(self.rng.uniform(0.1, high))

    def factor(self) -> float:
        """A speed, step time or bandwidth around 1."""
        return self.pick(0.5, 1.0, 2.0) if self.exact else self.pick(1.0, float(self.rng.uniform(0.3, 1.8)))


def random_world(seed: int) -> tuple[Compiled, World]:
    """A small world with its compiled scenario; equal seeds give equal worlds."""
    dice = Dice(np.random.default_rng([seed, 77]), exact=seed % 2 == 0)
    horizon_s = float(dice.whole(8, 40) * GRID_S)
    pools = _cluster(dice)
    compiled = _by_class(dice, pools, horizon_s) if dice.chance(0.4) else _by_hand(dice, pools, horizon_s)
    jobs = _requests(dice, compiled, horizon_s)
    limit_s = compiled.scenario.limit_s
    drawn = {name: _events(dice, compiled, jobs, limit_s) for name in ("first", "second")}
    return compiled, make_world(compiled, jobs, merge(drawn), seed)


def random_command(
    legal: Sequence[tuple[Any, ...]], n_jobs: int, n_configs: int, dice: Dice, restless: float = 0.3
) -> tuple[Any, ...]:
    """What an erratic policy does, given the legal commands: it starts jobs, waits and errs.

    restless: share of changes and preemptions where they are legal.
    """
    if n_jobs and dice.chance(0.05):
        return (dice.pick("start", "change", "preempt"), dice.whole(0, n_jobs - 1), dice.whole(0, n_configs - 1))
    starts = [command for command in legal if command[0] == "start"]
    others = [command for command in legal if command[0] != "start"]
    if others and dice.chance(restless):
        return dice.pick(*others)
    return dice.pick(*starts) if starts and dice.chance(0.8) else ("wait",)


def _rules(dice: Dice, horizon_s: float) -> dict[str, Any]:
    clock = dice.pick(
        EventClockConfig(),
        EventClockConfig(max_interval_s=dice.pick(60.0, 90.0, 250.0)),
        RoundClockConfig(round_s=dice.pick(60.0, 90.0, 100.0, 360.0)),
        OneByOneClockConfig(),
    )
    from_s = dice.pick(0.0, 120.0, 75.0)
    return {
        "clock": clock,
        "end": dice.pick(TruncateEnd(), DrainEnd(limit_s=horizon_s + dice.whole(0, 40) * GRID_S)),
        "without": tuple(dice.some(get_args(Capability))) if dice.chance(0.15) else (),
        "contention": dice.pick("none", "fair_share"),
        "measure": MeasureConfig(from_s=from_s, to_s=dice.pick(None, from_s + 240.0)),
        "candidates": CandidateConfig(
            queued=dice.whole(1, 8),
            running=dice.whole(0, 4),
            configurations=dice.whole(1, 6),
            max_commands_per_instant=dice.pick(1, 2, 3, 24),
        ),
    }


def _cluster(dice: Dice) -> ClusterConfig:
    sites = tuple(
        SiteConfig(
            name=f"site{i}",
            pue=dice.pick(1.0, 1.2, 1.5),
            carbon_g_per_kwh=dice.pick(0.0, 50.0, 400.0),
            price_usd_per_mwh=dice.pick(-20.0, 0.0, 80.0),
            renewable_w=dice.pick(0.0, 500.0, 5000.0),
            **site_extras(dice),
        )
        for i in range(dice.whole(1, 3))
    )
    pools = tuple(
        PoolConfig(
            name=f"pool{i}",
            accelerator=dice.pick(*ACCELERATORS),
            nodes=dice.whole(1, 5),
            gpus_per_node=dice.whole(1, 8),
            site=dice.pick(*sites).name,
            cpus_per_node=dice.pick(0, 0, 8, 13),
            host_memory_gbytes_per_node=dice.pick(0, 0, 16, 50),
            node_overhead_w=dice.pick(0.0, 300.0, 812.5),
            idle_w=dice.pick(None, 0.0, 60.0),
            rent_usd_per_gpu_hour=dice.pick(0.0, 2.0),
            **pool_extras(dice),
        )
        for i in range(dice.whole(1, 4))
    )
    return ClusterConfig(pools=pools, sites=sites, wan=wan_extras(dice, [site.name for site in sites]))


def _by_class(dice: Dice, pools: ClusterConfig, horizon_s: float) -> Compiled:
    """Compiled from `fixed` and `table` classes, as scenarios are."""
    classes: dict[str, PlainClass] = {}
    for i in range(dice.whole(1, 3)):
        counts = tuple(sorted({1, *dice.some(COUNTS)}))
        starts = {"restart_s": dice.pick(0.0, 30.0, dice.amount(90)), "first_start_s": dice.pick(0.0, dice.amount(90))}
        starts |= {**class_extras(dice), "state_gbytes": dice.pick(0.0, 20.0), "data_site": dice.pick(None, pools.sites[0].name)}
        if dice.chance(0.5):
            classes[f"class{i}"] = FixedClass(gpu_counts=counts, power_w=dice.pick(None, 300.0), **starts)
            continue
        steps_per_s = {pool.name: {count: dice.factor() for count in counts} for pool in dice.some(pools.pools)}
        penalty = dice.pick(1.0, 0.5)
        classes[f"class{i}"] = TableClass(gpu_counts=counts, steps_per_s=steps_per_s, spread_penalty=penalty, **starts)
    return assemble(pools, classes, horizon_s=horizon_s, **_rules(dice, horizon_s))


def _by_hand(dice: Dice, pools: ClusterConfig, horizon_s: float) -> Compiled:
    """Rows that no class in a scenario need produce: communication, two pools, checkpoint times."""
    classes = []
    for _ in range(dice.whole(1, 3)):
        table = [_config_row(dice, pools) for _ in range(dice.whole(1, 10))]
        starts = {"first_start_s": dice.pick(0.0, dice.amount(90)), "restart_s": dice.pick(0.0, dice.amount(90))}
        classes.append((FixedClass(**starts, **class_extras(dice)), table))
    configurations = connect(dice, tabulate_classes(*classes), cluster.build(pools))
    return assemble(pools, configurations=configurations, horizon_s=horizon_s, **_rules(dice, horizon_s))


def _config_row(dice: Dice, pools: ClusterConfig) -> NDArray[np.void]:
    capacity = [pool.nodes * pool.gpus_per_node for pool in pools.pools]
    pool_a = dice.whole(0, len(capacity) - 1)
    gpus_a = dice.pick(*(count for count in COUNTS if count <= capacity[pool_a]))
    others = [pool for pool in range(len(capacity)) if pool != pool_a]
    pool_b, gpus_b = NO_POOL, 0
    if others and dice.chance(0.3):
        pool_b = dice.pick(*others)
        gpus_b = dice.pick(*(count for count in COUNTS if count <= capacity[pool_b]))
    compute_s = dice.factor()
    columns: dict[str, float] = {"straggler_share": dice.pick(0.0, 1.0) if dice.exact else float(dice.rng.random())}
    if dice.exact and dice.chance(0.5):  # a transfer just hidden: brought out by a slow link, steps stay powers of two
        level = dice.pick("intra", "inter")
        columns = {f"{level}_s": compute_s, f"{level}_hideable_s": compute_s}
    elif not dice.exact and dice.chance(0.7):
        names = ("intra_s", "intra_hideable_s", "inter_s", "inter_hideable_s")
        columns |= {name: float(dice.rng.uniform(0.0, 0.8)) for name in dice.some(names)}
    return config_row(
        pool_a,
        gpus_a,
        pool_b,
        gpus_b,
        compute_s=compute_s,
        work_per_step=dice.pick(1.0, 2.0),
        spread_penalty=dice.pick(1.0, 0.5),
        power_w=(gpus_a + gpus_b) * dice.pick(100.0, 333.125, 700.0),
        save_s=dice.pick(0.0, dice.amount(60)),
        load_s=dice.pick(0.0, dice.amount(60)),
        any_nodes=dice.whole(0, 1),
        **columns,
        **config_extras(dice),
    )


def _requests(dice: Dice, compiled: Compiled, horizon_s: float) -> NDArray[np.void]:
    jobs = requests(0 if dice.chance(0.03) else dice.pick(1, dice.whole(2, 8), dice.whole(5, 25), dice.whole(5, 25)))
    configurations, n_pools = compiled.configurations, len(compiled.cluster.pool_names)
    jobs["submit_s"] = dice.grid_s(jobs.size, -2 * GRID_S, dice.pick(4 * GRID_S, horizon_s))
    for job in jobs:
        job["job_class"] = dice.whole(0, len(configurations.class_names) - 1)
        job["elasticity"] = dice.pick(*Elasticity)
        sizes = sorted(int(n) for n in configurations.rows_of(int(job["job_class"]))["n_gpus"])
        job["min_gpus"] = job["max_gpus"] = dice.pick(*sizes)
        if job["elasticity"] != Elasticity.RIGID:
            job["max_gpus"] = max(dice.pick(*sizes), int(job["min_gpus"]))
        job["work"] = 0.0 if dice.chance(0.1) else dice.amount(600)
        job["checkpoint_interval"] = dice.pick(NEVER, dice.amount(90), dice.amount(300))
        job["deadline_s"] = dice.pick(NEVER, float(dice.grid_s(1, 0, horizon_s)[0]))
        job["weight"] = dice.pick(1.0, 1.0, 0.25, 3.0)
        if dice.chance(0.3):
            job["pools"] = dice.whole(1, 2**n_pools - 1)
        job["tenant"] = dice.whole(0, 2)
        job["cpus_per_gpu"] = dice.pick(0, 1, 2, 3)
        job["host_mbytes_per_gpu"] = dice.pick(0, 4000, 7000)
        job["preemptible"] = dice.chance(0.8)
        job["rejected"] = dice.chance(0.05)
        if not dice.exact and dice.chance(0.5) and job["submit_s"] > 0:
            job["submit_s"] -= dice.rng.uniform(0.0, GRID_S)
    jobs = by_submit(jobs)
    jobs["data_site"] = [dice.pick(-1, 0) for _ in range(jobs.size)]
    beliefs.fill(jobs, compiled.scenario.knowledge, configurations, dice.rng)
    return jobs


def _events(dice: Dice, compiled: Compiled, jobs: NDArray[np.void], limit_s: float) -> NDArray[np.void]:
    """One source's rows: every effect on every clock that can carry it."""
    built = compiled.cluster
    on_nodes = (Effect.NODE_UP, Effect.NODE_DOWN, Effect.NODE_NOTICE, Effect.NODE_SPEED)
    n_targets = dict.fromkeys(on_nodes, built.n_nodes)
    n_targets[Effect.LINK_BANDWIDTH] = 2 * len(built.pool_names)
    n_targets |= dict.fromkeys(JOB_EFFECTS, jobs.size) | dict.fromkeys(SIGNAL_EFFECTS, len(built.site_names))
    drawn = [empty_rows()]
    most = dice.pick(1, 2, 4)
    for effect, n in n_targets.items():
        for at_s in dice.grid_s(dice.whole(0, most) if n else 0, 0, limit_s):
            drawn.append(rows(effect, at_s, dice.whole(0, n - 1), _value(dice, effect)))
    for _ in range(dice.whole(0, 3) if jobs.size else 0):
        effect = dice.pick(*JOB_EFFECTS)
        target, value = dice.whole(0, jobs.size - 1), _value(dice, effect)
        drawn.append(rows(effect, dice.amount(600), target, value, EventClock.JOB_WORK))
    for _ in range(dice.whole(0, 4)):
        effect = dice.pick(Effect.NODE_UP, Effect.NODE_DOWN, Effect.NODE_DOWN, Effect.NODE_SPEED)
        target, value = dice.whole(0, built.n_nodes - 1), _value(dice, effect)
        drawn.append(rows(effect, dice.amount(600), target, value, EventClock.NODE_BUSY))
    return np.concatenate(drawn)


def _value(dice: Dice, effect: Effect) -> float:
    match effect:
        case Effect.NODE_DOWN:
            return NEVER if dice.chance(0.05) else float(dice.whole(1, 6) * GRID_S)
        case Effect.NODE_SPEED:
            return dice.factor()
        case Effect.LINK_BANDWIDTH:
            return dice.pick(0.25, 0.5, 1.0, 2.0) if dice.exact else dice.factor()
        case Effect.SITE_RENEWABLE:
            return dice.pick(0.0, 1000.0, 20_000.0)
        case Effect.SITE_CARBON:
            return dice.pick(0.0, 1e-7, 2.5e-7)
        case Effect.SITE_PRICE:
            return dice.pick(-1e-8, 0.0, 3e-8)
    return extra_value(dice, effect)

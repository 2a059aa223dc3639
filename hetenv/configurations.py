"""The CONFIG table: every way in which a job of a class may run, with its physics tabulated when a scenario is compiled.

A row is (class, one or two pools, GPU counts, plan, tier). Rows of a class are contiguous and stand in *preference order*,
the order in which candidates are offered (see `preference`). The simulator reads rows; it knows no performance model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv import catalog
from hetenv.class_rows import CLASS as CLASS
from hetenv.class_rows import ask_network, plan_checkpoints
from hetenv.class_rows import class_row as class_row
from hetenv.cluster import NO_POOL as NO_POOL
from hetenv.cluster import Cluster
from hetenv.errors import ScenarioError, unknown
from hetenv.perf import Devices, Estimate, LinkLevel, Plan, Training, configurations
from hetenv.perf.search_mixed import configurations_mixed
from hetenv.perf.training import precision_of
from hetenv.preference import fill_comparisons, preference
from hetenv.units import GIGA, quantise_power
from hetenv.workload.job_class import AnalyticClass, FixedClass, PlainClass, TableClass

CONFIG = np.dtype(
    [
        ("rate", "f8"),  # work/s with no disturbance = work_per_step / step time
        ("work_per_step", "f8"),  # units of the class per step
        ("compute_s", "f8"),  # of one step
        ("intra_s", "f8"),  # communication of one step per link level, and the part that can hide behind compute
        ("intra_hideable_s", "f8"),
        ("inter_s", "f8"),
        ("inter_hideable_s", "f8"),
        ("straggler_share", "f8"),  # share of the compute time that one slow member delays, 0..1
        ("spread_penalty", "f8"),  # factor on speed where the job is on more nodes than its footprint, 0..1
        ("power_w", "f8"),  # all its GPUs together while the job steps, a multiple of POWER_QUANTUM_W
        ("energy_per_work_j", "f8"),  # GPU energy, undisturbed
        ("save_s", "f8"),  # to write a checkpoint, charged at the next start
        ("load_s", "f8"),  # to read one
        ("save_every", "f8"),  # work between periodic checkpoints (inf: as the request says)
        ("efficiency", "f4"),  # work per GPU second over the class's best, 0..1
        ("advantage", "f4"),  # pool's speed for this class over the mean of its speeds for all, each over the class's best
        ("memory_margin", "f4"),  # free share of the GPU memory, 0..1 (1 where memory is not modelled)
        ("n_gpus", "i4"),  # in both pools together
        ("gpus_a", "i4"),
        ("gpus_b", "i4"),  # 0 where pool_b is NO_POOL
        ("pool_a", "i2"),
        ("pool_b", "i2"),
        ("site", "i2"),  # of pool_a: where the job's state is
        ("demand_a", "i4"),  # of what joins the nodes of pool_a: 1/1000 of a node's links, in the mean over a step
        ("demand_b", "i4"),
        ("job_class", "i4"),
        ("next_config", "i4"),  # its continuation in the phase that follows, or NO_CONFIG
        ("survives", "i1"),  # 1: a replica can be lost without losing work
        ("tier", "i1"),  # 0 fastest, then other Pareto-optimal plans
        ("any_nodes", "i1"),  # 1: may be spread over any nodes of its pool; 0: needs its footprint
    ],
    align=True,
)

SIZE = np.dtype(
    [
        ("n_gpus", "i4"),
        ("gpus_a", "i4"),
        ("gpus_b", "i4"),
        ("job_class", "i4"),
        ("full_a", "i4"),  # footprint in pool_a: whole nodes, and GPUs on one more
        ("rest_a", "i4"),
        ("full_b", "i4"),
        ("rest_b", "i4"),
        ("pool_a", "i2"),
        ("pool_b", "i2"),
        ("any_nodes", "i1"),
    ],
    align=True,
)
"""The columns of CONFIG that say where it fits, narrow: candidates and commands scan these."""
FOOTPRINT: Final = ("pool_a", "pool_b", "gpus_a", "gpus_b", "any_nodes")
"""Rows that are equal in these fit in the same places."""

NO_CONFIG: Final = -1
DEFAULT_LOAD_SHARE_OF_TDP: Final = 0.75
MAX_ROWS: Final = 65_536


@dataclass(frozen=True)
class Configurations:
    """The compiled CONFIG and CLASS tables, and the estimate behind each row (None for measured and fixed classes)."""

    table: NDArray[np.void]
    classes: NDArray[np.void]
    class_names: tuple[str, ...]
    estimates: tuple[Estimate | None, ...]
    moves: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """Transfer of a live change from row i to row j of a class of n rows, undisturbed, s: moves[first_move + i * n + j]."""
    cycles: dict[int, tuple[tuple[int, float], ...]] = field(default_factory=dict, repr=False, compare=False)
    """First class of a phased class -> (class, share of a cycle's work) of each phase."""
    _reference_rates: dict[tuple[int, int, int, int], float] = field(default_factory=dict, repr=False, compare=False)

    def sizes(self, gpus_per_node: NDArray[np.int32]) -> NDArray[np.void]:
        """[C] SIZE rows of the table; gpus_per_node: [P]."""
        narrow = np.zeros(self.table.size, SIZE)
        for name in ("n_gpus", "gpus_a", "gpus_b", "job_class", "pool_a", "pool_b", "any_nodes"):
            narrow[name] = self.table[name]
        for part in ("a", "b"):
            per_node = gpus_per_node[self.table[f"pool_{part}"]]
            narrow[f"full_{part}"], narrow[f"rest_{part}"] = np.divmod(self.table[f"gpus_{part}"], per_node)
        return narrow

    def footprints(self) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
        """[C] which distinct footprint each row has; [F] a row of each."""
        places = np.column_stack([self.table[name] for name in FOOTPRINT])
        _, example, which = np.unique(places, axis=0, return_index=True, return_inverse=True)
        return which.reshape(-1).astype(np.int16), example.astype(np.int32)

    def fastest(self, n_pools: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """[C] rows by class, first pool and rate, the fastest first; [K, P + 1] where the rows of a class and a pool begin."""
        table = self.table
        order = np.lexsort((table["n_gpus"], -table["rate"], table["pool_a"], table["job_class"])).astype(np.int32)
        group = table["job_class"].astype(np.int64) * n_pools + table["pool_a"]
        first = np.searchsorted(group[order], np.arange(self.classes.size * n_pools + 1)).astype(np.int32)
        return order, np.column_stack([first[:-1].reshape(-1, n_pools), first[n_pools::n_pools]])

    def rows_of(self, job_class: int) -> NDArray[np.void]:
        """CONFIG rows of one class."""
        row = self.classes[job_class]
        return self.table[row["first_config"] : row["last_config"]]

    def reference_rate(self, job_class: int, min_gpus: int, max_gpus: int, pools: int) -> float:
        """Work/s of the fastest rows with min_gpus..max_gpus GPUs in the allowed pools (bit mask); 0 where there is none.

        Of a phased class: over a whole cycle.
        """
        key = (job_class, min_gpus, max_gpus, pools)
        if key not in self._reference_rates:
            seconds = 0.0
            for phase, share in self.phases_of(job_class):
                rows = self.rows_of(phase)
                allowed = legal_rows(rows, min_gpus, max_gpus, pools)
                seconds += share / float(rows["rate"][allowed].max()) if allowed.any() else np.inf
            self._reference_rates[key] = 1.0 / seconds
        return self._reference_rates[key]

    def phases_of(self, job_class: int) -> tuple[tuple[int, float], ...]:
        """(class, share of the work) of each class that a request of this class passes through."""
        return self.cycles.get(job_class, ((job_class, 1.0),))


def legal_rows(rows: NDArray[np.void], min_gpus: int, max_gpus: int, pools: int) -> NDArray[np.bool_]:
    """[rows] which CONFIG rows a request with this GPU range and pool mask may ever use."""
    in_a = (pools >> rows["pool_a"].astype(np.int64)) & 1
    in_b = np.where(rows["pool_b"] == NO_POOL, 1, (pools >> np.maximum(rows["pool_b"], 0).astype(np.int64)) & 1)
    return (rows["n_gpus"] >= min_gpus) & (rows["n_gpus"] <= max_gpus) & (in_a == 1) & (in_b == 1)


def compile_configurations(
    classes: Mapping[str, PlainClass], cluster: Cluster, work_weight: float, energy_weight: NDArray[np.float64]
) -> Configurations:
    """Tabulate all classes over a cluster.

    Args:
        work_weight: cost of one second of one job's time, in units of the objective.
        energy_weight: [P] cost of one joule drawn in a pool, same units.

    Raises:
        ScenarioError: a class that fits nowhere, an unknown pool, model or precision, or more than MAX_ROWS rows.
    """
    tables, class_rows, estimates = [], np.zeros(len(classes), CLASS), []
    first = 0
    for index, (name, job_class) in enumerate(classes.items()):
        where = f"classes.{name}"
        rows, plans = _class_rows(job_class, cluster, where)
        if not rows.size:
            raise ScenarioError(f"{where}: fits nowhere in this cluster; {_why_nowhere(job_class)}")
        rows["job_class"] = index
        rows["site"] = cluster.pool_site[rows["pool_a"]]
        plan_checkpoints(rows, job_class, cluster)
        ask_network(rows, cluster)
        order = preference(rows, work_weight, energy_weight)
        rows, plans = rows[order], [plans[k] for k in order]
        tables.append(rows)
        estimates.extend(plans)
        class_rows[index] = class_row(job_class, rows, first)
        first += rows.size
        if first > MAX_ROWS:
            raise ScenarioError(f"{where}: more than {MAX_ROWS} configurations; list fewer gpu_counts or pools")
    table = np.concatenate(tables)
    fill_comparisons(table, class_rows, len(cluster.pool_names))
    return Configurations(table, class_rows, tuple(classes), tuple(estimates))


def empty_configs(n: int) -> NDArray[np.void]:
    """n zeroed CONFIG rows without a second pool, a continuation or a checkpoint interval of their own."""
    rows = np.zeros(n, CONFIG)
    rows["pool_b"], rows["next_config"], rows["save_every"] = NO_POOL, NO_CONFIG, np.inf
    return rows


def _class_rows(job_class: PlainClass, cluster: Cluster, where: str) -> tuple[NDArray[np.void], list[Estimate | None]]:
    allowed = range(len(cluster.pool_names))
    if job_class.pools is not None:
        for name in job_class.pools:
            if name not in cluster.pool_names:
                raise ScenarioError(f"{where}.pools: " + unknown("pool", name, cluster.pool_names))
        allowed = [cluster.pool(name) for name in job_class.pools]  # type: ignore[assignment]
    if isinstance(job_class, AnalyticClass):
        return _analytic_rows(job_class, cluster, allowed, where)
    if isinstance(job_class, TableClass):
        rows = _table_rows(job_class, cluster, allowed, where)
    else:
        rows = _fixed_rows(job_class, cluster, allowed)
    return rows, [None] * rows.size


def _fits(cluster: Cluster, pool: int, count: int) -> bool:
    return count <= int(cluster.pool_nodes[pool]) * int(cluster.gpus_per_node[pool])


def _analytic_rows(
    job_class: AnalyticClass, cluster: Cluster, allowed: Sequence[int], where: str
) -> tuple[NDArray[np.void], list[Estimate | None]]:
    try:
        training = Training(
            job_class.model, job_class.global_batch, job_class.seq_len or 0, job_class.precision, job_class.stack
        )
        _check_names(training)
    except ValueError as error:
        raise ScenarioError(f"{where}: {error}") from None
    found: list[tuple[tuple[int, ...], int, Estimate]] = []
    for pool in allowed:
        for count in job_class.gpu_counts:
            if _fits(cluster, pool, count):
                tiers = configurations(training, pool_devices(cluster, pool, count))
                found.extend(((pool,), tier, estimate) for tier, estimate in enumerate(tiers))
    for pair in _pairs(job_class, cluster, allowed, where):
        for half in sorted({count // 2 for count in job_class.gpu_counts if count % 2 == 0}):
            if _fits(cluster, pair[0], half) and _fits(cluster, pair[1], half):
                devices = pool_devices(cluster, pair[0], half), pool_devices(cluster, pair[1], half)
                found.extend((pair, tier, estimate) for tier, estimate in enumerate(configurations_mixed(training, devices)))
    rows = empty_configs(len(found))
    for row, (pools, tier, estimate) in zip(rows, found):
        memory_bytes = min(catalog.accelerator(cluster.pool_configs[pool].accelerator).memory_bytes for pool in pools)
        _fill_analytic(row, pools, tier, estimate, job_class, memory_bytes)
    return rows, [estimate for _, _, estimate in found]


def _pairs(job_class: AnalyticClass, cluster: Cluster, allowed: Sequence[int], where: str) -> list[tuple[int, int]]:
    """The class's pairs of pools."""
    found = []
    for index, names in enumerate(job_class.pool_pairs):
        field_path = f"{where}.pool_pairs.{index}"
        for name in names:
            if name not in cluster.pool_names or cluster.pool(name) not in allowed:
                known = [cluster.pool_names[pool] for pool in allowed]
                raise ScenarioError(f"{field_path}: " + unknown("pool of this class", name, known))
        a, b = (cluster.pool(name) for name in names)
        configs = cluster.pool_configs
        if configs[a].accelerator == configs[b].accelerator:
            raise ScenarioError(f"{field_path}: {names[0]} and {names[1]} hold the same accelerator; make them one pool")
        if cluster.pool_site[a] != cluster.pool_site[b]:
            raise ScenarioError(f"{field_path}: {names[0]} and {names[1]} are at different sites; pair pools of one site")
        found.append((a, b))
    return found


def _check_names(training: Training) -> None:
    """ScenarioError where the model, the stack or the precision is in no catalog."""
    _ = training.model_entry, training.stack_entry, precision_of(training.precision)


def _fill_analytic(
    row: np.void, pools: tuple[int, ...], tier: int, estimate: Estimate, job_class: AnalyticClass, memory_bytes: float
) -> None:
    intra, inter = LinkLevel.INTRA, LinkLevel.INTER
    row["work_per_step"] = job_class.global_batch
    row["compute_s"] = estimate.compute_s
    row["intra_s"], row["intra_hideable_s"] = estimate.comm_s[intra], estimate.hideable_s[intra]
    row["inter_s"], row["inter_hideable_s"] = estimate.comm_s[inter], estimate.hideable_s[inter]
    row["rate"] = job_class.global_batch / estimate.iter_s
    row["straggler_share"], row["spread_penalty"] = estimate.straggler_share, 1.0
    compute_share = estimate.compute_s / estimate.iter_s
    gpu_w = compute_share * estimate.power_compute_w + (1.0 - compute_share) * estimate.power_comm_w
    row["n_gpus"] = estimate.n_gpus
    row["gpus_a"], row["gpus_b"] = estimate.n_gpus // len(pools), estimate.n_gpus // 2 * (len(pools) - 1)
    row["power_w"] = quantise_power(gpu_w * estimate.n_gpus)
    row["energy_per_work_j"] = row["power_w"] / row["rate"]
    seconds = estimate.state_bytes / (job_class.checkpoint_gbytes_per_s * GIGA)
    row["save_s"] = row["load_s"] = seconds
    row["survives"] = isinstance(estimate.plan, Plan) and estimate.plan.dp > 1
    row["memory_margin"] = max(0.0, 1.0 - estimate.memory_bytes / memory_bytes)
    row["pool_a"], row["pool_b"], row["tier"] = pools[0], pools[1] if len(pools) == 2 else NO_POOL, tier


def pool_devices(cluster: Cluster, pool: int, n_gpus: int) -> Devices:
    """The devices of n_gpus GPUs of a pool, as the performance model wants them."""
    config = cluster.pool_configs[pool]
    return Devices(
        accelerator=config.accelerator,
        n_gpus=n_gpus,
        gpus_per_node=config.gpus_per_node,
        intra_link=config.intra_link,
        inter_link=config.inter_link,
    )


def _measured_row(row: np.void, pool: int, count: int, rate: float, cluster: Cluster, power_w: float | None) -> None:
    accelerator = catalog.accelerator(cluster.pool_configs[pool].accelerator)
    gpu_w = DEFAULT_LOAD_SHARE_OF_TDP * accelerator.tdp_w if power_w is None else power_w
    row["rate"], row["work_per_step"], row["compute_s"] = rate, 1.0, 1.0 / rate
    row["straggler_share"], row["memory_margin"] = 1.0, 1.0
    row["power_w"] = quantise_power(gpu_w * count)
    row["energy_per_work_j"] = row["power_w"] / rate
    row["n_gpus"] = row["gpus_a"] = count
    row["pool_a"], row["pool_b"], row["any_nodes"] = pool, NO_POOL, 1


def _table_rows(job_class: TableClass, cluster: Cluster, allowed: Sequence[int], where: str) -> NDArray[np.void]:
    for name in job_class.steps_per_s:
        if name not in cluster.pool_names:
            raise ScenarioError(f"{where}.steps_per_s: " + unknown("pool", name, cluster.pool_names))
    measured = [
        (pool, count, rate)
        for pool in allowed
        for count, rate in sorted(job_class.steps_per_s.get(cluster.pool_names[pool], {}).items())
        if rate > 0 and _fits(cluster, pool, count)
    ]
    rows = empty_configs(len(measured))
    for row, (pool, count, rate) in zip(rows, measured):
        _measured_row(row, pool, count, rate, cluster, job_class.power_w)
        row["spread_penalty"] = job_class.spread_penalty
    return rows


def _fixed_rows(job_class: FixedClass, cluster: Cluster, allowed: Sequence[int]) -> NDArray[np.void]:
    sizes = [(pool, count) for pool in allowed for count in job_class.gpu_counts if _fits(cluster, pool, count)]
    rows = empty_configs(len(sizes))
    for row, (pool, count) in zip(rows, sizes):
        _measured_row(row, pool, count, 1.0, cluster, job_class.power_w)
        row["spread_penalty"] = 1.0
    return rows


def _why_nowhere(job_class: PlainClass) -> str:
    if isinstance(job_class, AnalyticClass):
        return f"{job_class.model} has no legal plan on {job_class.gpu_counts} GPUs of any allowed pool (memory, or batch)"
    return f"no allowed pool holds one of the sizes {getattr(job_class, 'gpu_counts', ())}"

"""What the oracle moves about: jobs, nodes, and where GPUs are taken."""

from dataclasses import dataclass, field
from math import floor, inf, isfinite
from types import SimpleNamespace as Row

import numpy as np

from hetenv.cluster import Cluster
from hetenv.units import quantise_power

FUTURE, QUEUED, RUNNING = "FUTURE", "QUEUED", "RUNNING"
FINISHED, CRASHED, CANCELLED, REJECTED = "FINISHED", "CRASHED", "CANCELLED", "REJECTED"
LIVE = (QUEUED, RUNNING)
SIGNALS = ("renewable_w", "carbon", "marginal", "price", "temperature_c", "cap_w")
"""What a site has in order of SIGNAL_EFFECTS; kg/J and USD/J."""


@dataclass
class Job:
    """A request and what has become of it."""

    id: int
    request: Row
    thresholds: list[Row] = field(default_factory=list)  # JOB_WORK rows below the total that have not fired
    state: str = FUTURE
    config: int = -1  # CONFIG row while running, else -1
    allocation: dict[int, int] = field(default_factory=dict)  # node -> GPUs
    is_spread: bool = False
    in_overhead: bool = False
    rate: float = 0.0  # work/s while stepping
    due_s: float = inf  # its next own instant: the overhead's end, a threshold or completion
    work: float = 0.0
    durable: float = 0.0
    at_risk_gpu_s: float = 0.0  # productive since the last durable point
    pending_s: float = 0.0  # save_s of the configuration left, until the next start
    job_class: int = -1  # present
    most_gpus: int = 32767  # by JOB_RANGE
    site: int = -1  # where its state is, or its data before the first start; -1: everywhere
    interval: float = inf  # work between free checkpoints
    next_save: float = inf  # work at which a paid checkpoint begins
    save_every: float = inf  # work between paid ones
    saved_s: float = inf  # when the save under way is durable
    saving_work: float = 0.0
    saving_at_risk_gpu_s: float = 0.0
    reach_s: float = inf  # when its work reaches the goal
    cancel_at_submit: bool = False
    commanded: bool = False  # had a legal command at this instant
    first_start_s: float = inf
    end_s: float = inf
    n_starts: int = 0
    start_number: int = 0  # of its last start among all jobs' starts
    n_reconfigurations: int = 0
    n_preempts: int = 0
    n_evictions: int = 0

    @property
    def is_stepping(self) -> bool:
        return self.state == RUNNING and not self.in_overhead

    @property
    def goal(self) -> float:
        """Work at its next threshold, paid checkpoint, or at completion."""
        return min(self.thresholds[0].at if self.thresholds else inf, self.next_save, self.request.work)

    def begin_save(self, now: float, pause_s: float, persist_s: float) -> None:
        """Save the work it has; pause_s in overhead, durable persist_s after that."""
        self.saving_work, self.saving_at_risk_gpu_s = self.work, self.at_risk_gpu_s
        self.saved_s = now + (pause_s + persist_s)
        if pause_s > 0:
            self.in_overhead, self.due_s = True, now + pause_s
        elif persist_s == 0:
            self.end_save()

    def end_save(self) -> None:
        """The save under way is durable."""
        self.durable = max(self.durable, self.saving_work)
        self.at_risk_gpu_s = max(0.0, self.at_risk_gpu_s - self.saving_at_risk_gpu_s)
        self.saved_s = inf

    def plan_saves(self, config: Row, job_class: Row) -> None:
        """Checkpoints from the present work on, in a configuration."""
        every = config.save_every if isfinite(config.save_every) else self.request.checkpoint_interval
        pays = job_class.pause_s + job_class.persist_s > 0
        self.interval, self.save_every = (inf, every) if pays else (every, inf)
        self.next_save = (floor(self.work / every + 1e-9) + 1) * every if pays and isfinite(every) else inf

    def progress(self, elapsed_s: float, until_s: float) -> None:
        """Step for elapsed_s, up to until_s."""
        n_gpus, interval = sum(self.allocation.values()), self.interval
        self.work = self.goal if self.reach_s <= until_s else min(self.work + self.rate * elapsed_s, self.goal)
        self.at_risk_gpu_s += n_gpus * elapsed_s
        reached = min(floor(self.work / interval + 1e-9) * interval, self.work) if isfinite(interval) else 0.0
        if reached > self.durable:
            self.durable, self.at_risk_gpu_s = reached, n_gpus * (self.work - reached) / self.rate


@dataclass
class Node:
    """A node. What no job holds is free here even while the node is down."""

    id: int
    pool: Row
    free_gpus: int
    free_cpus: int  # 0 where the pool does not account them; so too host memory
    free_mbytes: int
    hazards: list[Row] = field(default_factory=list)  # NODE_BUSY rows that have not fired
    up: bool = True
    speed: float = 1.0
    busy_s: float = 0.0
    leaves_s: float = inf
    asleep: bool = False
    idle_since: float = 0.0
    repair_s: float = inf
    hazard_s: float = inf  # the next hazard's time, should the node stay as busy as it is

    @property
    def is_busy(self) -> bool:
        return self.up and self.free_gpus < self.pool.gpus

    def watch(self, now: float) -> None:
        """Fix the time of the next hazard."""
        left_s = self.hazards[0].at - self.busy_s if self.hazards else inf
        self.hazard_s = now + max(0.0, left_s) if self.is_busy or left_s <= 0 else inf

    @property
    def doze_s(self) -> float:
        """When it falls asleep, should it stay empty."""
        is_idle = self.up and not self.asleep and self.free_gpus == self.pool.gpus
        return self.idle_since + self.pool.sleep_after_s if is_idle else inf

    @property
    def own_s(self) -> float:
        """Its next own instant."""
        return min(self.repair_s, self.hazard_s, self.doze_s)

    def usable_gpus(self, job: Job) -> int:
        """Free GPUs for this job, as far as the CPUs and host memory that go with them reach."""
        own, request = job.allocation.get(self.id, 0), job.request
        usable = self.free_gpus + own if self.up else 0
        if self.pool.cpus and request.cpus_per_gpu:
            usable = min(usable, self.free_cpus // request.cpus_per_gpu + own)
        if self.pool.mbytes and request.host_mbytes_per_gpu:
            usable = min(usable, self.free_mbytes // request.host_mbytes_per_gpu + own)
        return usable


def footprint(free: dict[int, int], n_gpus: int, gpus_per_node: int) -> dict[int, int] | None:
    """Whole nodes by lowest index, then the rest on the node with the fewest sufficient GPUs; None if not there."""
    n_whole, rest = divmod(n_gpus, gpus_per_node)
    whole = [node for node in sorted(free) if free[node] == gpus_per_node][:n_whole]
    fitting = [node for node in sorted(free) if node not in whole and free[node] >= rest]
    if len(whole) < n_whole or (rest and not fitting):
        return None
    last = {min(fitting, key=lambda node: (free[node], node)): rest} if rest else {}
    return dict.fromkeys(whole, gpus_per_node) | last


def scattered(free: dict[int, int], n_gpus: int) -> dict[int, int] | None:
    """Nodes with most free GPUs first, each as many as it has."""
    taken: dict[int, int] = {}
    for node in sorted(free, key=lambda node: (-free[node], node)):
        if gpus := min(free[node], n_gpus - sum(taken.values())):
            taken[node] = gpus
    return taken if sum(taken.values()) == n_gpus else None


def plain(table: np.ndarray) -> list[Row]:
    """Rows of a structured array as objects with Python numbers."""
    return [Row(**dict(zip(table.dtype.names, values))) for values in table.tolist()]


def plain_grid(table: np.ndarray) -> list[list[Row]]:
    """A two-dimensional structured array as objects."""
    return [plain(row) for row in table]


def sites_of(cluster: Cluster) -> list[Row]:
    """Sites with the signals (SIGNALS) that they start with."""
    found = []
    for config, start in zip(cluster.site_configs, cluster.site_start.tolist()):
        battery, signals = config.battery, dict(zip(SIGNALS, start))
        charge_j = battery.start_share * battery.capacity_kwh * 3.6e6 if battery else 0.0
        found.append(Row(config=config, charge_j=charge_j, peak_w=0.0, factor=1.0, **signals))
    return found


def pools_of(cluster: Cluster, contention: str) -> list[Row]:
    """Pools with their undisturbed link factors [intra, inter]."""
    configs = cluster.pool_configs
    return [
        Row(
            site=int(cluster.pool_site[pool]),
            gpus=int(cluster.gpus_per_node[pool]),
            cpus=int(cluster.cpus_per_node[pool]),
            mbytes=int(cluster.host_mbytes_per_node[pool]),
            idle_w=float(cluster.idle_w[pool]),
            overhead_w=float(cluster.overhead_w[pool]),
            rent_usd_per_gpu_s=float(cluster.rent_usd_per_gpu_s[pool]),
            factors=[1.0, 1.0],
            links=_links(cluster, pool) if contention == "fair_share" else inf,
            sleep_after_s=inf if configs[pool].sleep_after_s is None else configs[pool].sleep_after_s,
            sleep_w=quantise_power(configs[pool].sleep_w),
            wake_s=configs[pool].wake_s,
        )
        for pool in range(len(cluster.pool_names))
    ]


def _links(cluster: Cluster, pool: int) -> int:
    """What joins the nodes of a pool carries, in thousandths of a node's links."""
    return max(1, floor(1000 * int(cluster.pool_nodes[pool]) / cluster.pool_configs[pool].oversubscription))

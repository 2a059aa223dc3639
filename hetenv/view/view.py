"""`View`: a read-only picture of one simulation, live, in beliefs: never the true work, never an event to come."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import ScenarioError, unknown
from hetenv.jit import entry
from hetenv.objective import Account
from hetenv.sim.commands import Command
from hetenv.sim.simulator import Simulator
from hetenv.view.fitting import N_FAILED, first_fit, fits_without, write_options, write_overheads
from hetenv.view.jobs import JOB_VIEW, write_jobs, write_queue, write_running
from hetenv.view.packing import pack
from hetenv.view.profile import reserve_in_turn

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
_KEYS: Final[dict[str, Callable[[NDArray[np.void]], Floats]]] = {
    "estimate_per_weight": lambda rows: rows["believed_left_s"] / rows["weight"],
    "deadline": lambda rows: rows["deadline_s"],
}
"""Orders of the queue that need no window order of the scenario. `estimate_per_weight` counts the work that is left."""


class View:
    """Simulation b of a simulator as a planner sees it. It shows the state as it stands when it is asked."""

    def __init__(self, simulator: Simulator, b: int = 0) -> None:
        self._simulator, self._b = simulator, b
        self._orders = simulator.compiled.scenario.candidates.window_orders
        self._entries: dict[Any, Any] = {}
        self._failed = np.zeros(N_FAILED, np.int64)
        self._gained = np.zeros((simulator.compiled.cluster.n_nodes, 3), np.int64)
        self._all_configs = np.zeros(max(1, simulator.facts.configs.size), np.int64)
        n_pools = len(simulator.compiled.cluster.pool_names)
        self._no_prices, self._no_limit = np.zeros(n_pools), np.full(n_pools, np.inf)
        self._gpus_in: dict[int, NDArray[np.int64]] = {}
        self.configs = _frozen(simulator.facts.configs)
        """[C] CONFIG rows."""
        self.classes = _frozen(simulator.facts.classes)
        """[K] CLASS rows."""
        cluster = simulator.compiled.cluster
        self.pool_site = _frozen(cluster.pool_site)
        """[P] site of each pool."""
        self.idle_w = _frozen(cluster.idle_w)
        """[P] power of one idle GPU, PUE left out."""

    def _call(self, kernel: Any, *arguments: Any) -> Any:
        """A compiled kernel on this simulation, without numba's look at the types after the first call."""
        simulator = self._simulator
        full = (simulator.state, simulator.facts, self._b, *arguments)
        if kernel not in self._entries:
            self._entries[kernel] = entry(kernel, *full)
        return self._entries[kernel](*full)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_entries": {}}

    @property
    def now_s(self) -> float:
        """Seconds since the scenario's start."""
        return float(self._simulator.state.clock["now"][self._b])

    @property
    def commands_left(self) -> int:
        """Commands that this instant still allows."""
        return int(self._simulator.state.clock["commands_left"][self._b])

    @property
    def n_queued(self) -> int:
        return int(self._simulator.state.clock["n_queued"][self._b])

    @property
    def n_running(self) -> int:
        return int(self._simulator.state.clock["n_running"][self._b])

    @property
    def free_gpus(self) -> NDArray[np.int64]:
        """[P] GPUs of up nodes that no job holds."""
        return self._simulator.state.pools["free_gpus"][self._b].astype(np.int64)

    @property
    def up_gpus(self) -> NDArray[np.int64]:
        """[P] GPUs of up nodes."""
        return self._simulator.state.pools["up_gpus"][self._b].astype(np.int64)

    def gpus_in(self, pool: int) -> NDArray[np.int64]:
        """[C] GPUs of a pool that each configuration holds."""
        if pool not in self._gpus_in:
            first = np.where(self.configs["pool_a"] == pool, self.configs["gpus_a"], 0)
            self._gpus_in[pool] = _frozen(first + np.where(self.configs["pool_b"] == pool, self.configs["gpus_b"], 0).astype(np.int64))
        return self._gpus_in[pool]

    @property
    def site_power_w(self) -> Floats:
        """[S] power that each site draws, PUE included."""
        sites = self._simulator.state.sites[self._b]
        return np.asarray(sites["pue"] * (sites["it_w"] - (1.0 - sites["power_factor"]) * sites["dynamic_w"]))

    @property
    def pool_pue(self) -> Floats:
        """[P] facility power over IT power at each pool's site, at the present temperature."""
        return _frozen(self._site("pue")[self.pool_site])

    @property
    def renewable_w(self) -> Floats:
        """[S] own renewable power, used or not."""
        return self._site("renewable_w")

    @property
    def carbon_kg_per_j(self) -> Floats:
        """[S] average of grid energy."""
        return self._site("carbon_kg_per_j")

    @property
    def marginal_carbon_kg_per_j(self) -> Floats:
        """[S] marginal of grid energy."""
        return self._site("marginal_kg_per_j")

    @property
    def price_usd_per_j(self) -> Floats:
        """[S] of grid energy."""
        return self._site("price_usd_per_j")

    @property
    def temperature_c(self) -> Floats:
        """[S] outside."""
        return self._site("temperature_c")

    @property
    def power_factor(self) -> Floats:
        """[S] factor on dynamic power and on speed under a power cap; 1: nothing is capped."""
        return self._site("power_factor")

    @property
    def pool_speed(self) -> Floats:
        """[P] factor on compute speed now: mean over the up nodes of each pool, times its site's power factor; 1 where none is up."""
        nodes, n_pools = self._simulator.state.nodes[self._b], self.pool_site.size
        up = nodes["is_up"] == 1
        n_up = np.bincount(nodes["pool"][up], minlength=n_pools)
        total = np.bincount(nodes["pool"][up], nodes["speed"][up], n_pools)
        return np.where(n_up > 0, total / np.maximum(n_up, 1), 1.0) * self.power_factor[self.pool_site]

    @property
    def leaves_s(self) -> Floats:
        """[N] when each node is announced to leave, s since the scenario's start (inf: it is not)."""
        return self._simulator.state.nodes["leaves_s"][self._b].copy()

    def _site(self, column: str) -> Floats:
        return np.asarray(self._simulator.state.sites[column][self._b].copy())

    @property
    def objective(self) -> dict[Account, float]:
        """Weights of the scenario's objective that are not zero."""
        weights = self._simulator.compiled.scenario.objective.vector()
        return {account: float(weights[account]) for account in Account if weights[account] != 0.0}

    def queue(self, order: str = "submit") -> Ids:
        """Ids of the queued jobs in an order: `submit`, `estimate_per_weight` or `deadline`."""
        ids = np.empty(self.n_queued, np.int64)
        if order in self._orders:
            self._call(write_queue, self._orders.index(order), ids)
            return ids
        self._call(write_queue, 0, ids)
        ids.sort()
        if order == "submit":
            return ids
        if order not in _KEYS:
            raise ScenarioError(unknown("queue order", order, ("submit", *_KEYS)))
        return ids[np.argsort(_KEYS[order](self.jobs(ids)), kind="stable")]

    def running(self) -> Ids:
        """Ids of the running jobs in order of their (re)starts."""
        ids = np.empty(self.n_running, np.int64)
        self._call(write_running, ids)
        return ids

    def jobs(self, ids: Iterable[int] | Ids) -> NDArray[np.void]:
        """JOB_VIEW rows of jobs that are queued or running, in the order of `ids`.

        Raises:
            ValueError: an id that is no such job's (jobs to come are not shown).
        """
        wanted = np.ascontiguousarray(ids if isinstance(ids, np.ndarray) else list(ids), np.int64)
        n_known = int(self._simulator.state.clock["next_request"][self._b])
        if wanted.size and not 0 <= int(wanted.min()) <= int(wanted.max()) < n_known:
            raise ValueError(f"jobs: ids must lie in 0..{n_known - 1}, the jobs submitted so far")
        rows = np.zeros(wanted.size, JOB_VIEW)
        self._call(write_jobs, wanted, rows)
        return rows

    def options(self, job: int) -> Ids:
        """CONFIG rows that the job may start in (queued) or change to (running) now, in preference order."""
        n = self._call(write_options, int(job), True, self._all_configs)
        return self._all_configs[:n].copy()

    def allowed(self, job: int) -> Ids:
        """CONFIG rows of the job at all: its class, GPU range and pools; room or not. In preference order."""
        n = self._call(write_options, int(job), False, self._all_configs)
        return self._all_configs[:n].copy()

    def is_legal(self, command: Command, job: int, config: int = -1) -> bool:
        """Whether an order would be carried out now."""
        return self._simulator.is_legal(command, int(job), int(config), self._b)

    def fits(self, job: int, config: int, without: Iterable[int] = ()) -> bool:
        """Whether the job's configuration could be placed, were the running jobs in `without` (itself, too) gone."""
        gone = np.fromiter(without, np.int64)
        return bool(self._call(fits_without, int(job), int(config), gone, self._gained))

    def start_overhead_s(self, job: int, config: int) -> float:
        """Seconds that GPUs are held before the job's first step, were it put into the configuration now; sleeping nodes wake besides."""
        return float(self.start_overheads_s(job, np.array([config]))[0])

    def start_overheads_s(self, job: int, configs: Ids) -> Floats:
        """[n] the same for each of some configurations of the job."""
        seconds = np.empty(len(configs))
        self._call(write_overheads, int(job), np.ascontiguousarray(configs, np.int64), seconds)
        return seconds

    def first_fit(
        self,
        ids: Ids,
        prices: Floats | None = None,
        accept: float = np.inf,
        until_s: float = np.inf,
        spare: Floats | None = None,
    ) -> tuple[int, int] | None:
        """First job of `ids` that may start now, with its cheapest configuration that fits; None if none may.

        Args:
            prices: [P] of one GPU of each pool; cost of a configuration = (1 + sum of price x GPUs) / rate. Default 0: the fastest.
            accept: a configuration may cost at most this many times the job's cheapest one, free or not; no limit where nothing runs.
            until_s, spare: the job must end by until_s as believed, or take at most spare[p] GPUs of each pool (default: none).
        """
        if spare is None:
            spare = self._no_limit if np.isinf(until_s) else self._no_prices
        job, config = self._call(
            first_fit,
            np.ascontiguousarray(ids, np.int64),
            self._no_prices if prices is None else prices,
            float(accept),
            float(until_s),
            spare,
            self._failed,
        )
        return None if job < 0 else (int(job), int(config))

    def releases(self) -> tuple[Floats, NDArray[np.int64]]:
        """Believed ends of the running jobs, now first, rising, and [P, n] the GPUs of each pool that are free from each on."""
        running = self.jobs(self.running())
        ends_s = self.now_s + running["present_left_s"]
        order = np.argsort(ends_s, kind="stable")
        freed = np.array([self.gpus_in(pool)[running["config"][order]] for pool in range(self._no_prices.size)])
        free = self.free_gpus[:, None] + np.concatenate([np.zeros((freed.shape[0], 1), np.int64), np.cumsum(freed, axis=1)], axis=1)
        return np.concatenate([[self.now_s], ends_s[order]]), free

    def reservations(self, ids: Ids, prices: Floats | None = None) -> tuple[Floats, Ids]:
        """[n] when each of the queued jobs `ids` could start, and how, if those before it in `ids` are not delayed; beliefs only.

        A job takes the configuration with the least (wait + run time x (1 + sum of price x GPUs)), GPUs counted per pool; a start
        now also has its place. inf and -1 where it never has room.
        """
        times_s, free = self.releases()
        n = times_s.size
        times_s = np.concatenate([times_s, np.zeros(ids.size)])
        free = np.concatenate([free, np.zeros((free.shape[0], ids.size), np.int64)], axis=1)
        starts_s, configs = np.empty(ids.size), np.empty(ids.size, np.int64)
        prices = self._no_prices if prices is None else prices
        self._call(reserve_in_turn, np.ascontiguousarray(ids, np.int64), prices, n, times_s, free, starts_s, configs)
        return starts_s, configs

    def pack(self, ids: Ids, prices: Floats | None = None, accept: float = np.inf) -> Ids:
        """[n] the CONFIG row that each job would hold were all GPUs shared out afresh in the order of `ids` (-1: none).

        Only numbers of GPUs count, not where they are. Running jobs keep their configurations if those fit; those that may not be
        preempted, or had a command at this instant, come first. Queued jobs take what costs least among what fits, as in
        `first_fit`. Running jobs that are not in `ids` count as gone.
        """
        found = np.empty(ids.size, np.int64)
        free = np.empty(self._no_prices.size, np.int64)
        prices = self._no_prices if prices is None else prices
        self._call(pack, np.ascontiguousarray(ids, np.int64), prices, float(accept), free, found)
        return found


def _frozen(table: NDArray[Any]) -> NDArray[Any]:
    """The same memory, read-only."""
    shown = table.view()
    shown.flags.writeable = False
    return shown

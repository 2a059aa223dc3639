"""The simulator's rules (docs/design.md) in plain Python: slow, obvious, the truth that tests the kernels.

Nothing here comes from `hetenv.sim`. Every question is answered by a scan over all jobs and nodes; stored are only each
job's rate and each job's and node's next instant, fixed when the rate is, so that rounding cannot move it later.
"""

from math import inf

from hetenv.configurations import NO_POOL
from hetenv.events.stream import CAPACITY_EFFECTS, EventClock
from hetenv.objective import N_ACCOUNTS, Account
from hetenv.scenario import Compiled, EventClockConfig, OneByOneClockConfig, RoundClockConfig, World
from hetenv.workload.requests import Elasticity
from tests.oracle_effects import Effects
from tests.oracle_parts import (
    CANCELLED,
    FINISHED,
    FUTURE,
    LIVE,
    QUEUED,
    REJECTED,
    RUNNING,
    Job,
    Node,
    Row,
    footprint,
    plain,
    plain_grid,
    pools_of,
    scattered,
    sites_of,
)


class Oracle(Effects):
    """One episode. `apply` commands until `done`; time moves by `wait` or when an instant's commands are used up."""

    def __init__(self, compiled: Compiled, world: World, measure: bool = False) -> None:
        self.scenario, cluster = compiled.scenario, compiled.cluster
        self.configs = plain(compiled.configurations.table)
        self.classes = plain(compiled.configurations.classes)
        for config in self.configs:
            parts = ((config.pool_a, config.gpus_a), (config.pool_b, config.gpus_b))
            config.gpus_in = {pool: gpus for pool, gpus in parts if pool != NO_POOL}
        self.sites = sites_of(cluster)
        self.pools = pools_of(cluster, self.scenario.contention)
        self.wan, self.moves = plain_grid(cluster.wan), compiled.configurations.moves.tolist()
        clocks = world.events["clock"]
        self.wall = plain(world.events[clocks == EventClock.WALL])
        self.jobs = [Job(id, request) for id, request in enumerate(plain(world.requests))]
        for row in plain(world.events[clocks == EventClock.JOB_WORK]):
            job = self.jobs[row.target]
            job.thresholds.extend([row] if row.at < job.request.work else [])
        for job in self.jobs:
            job.job_class, job.site = job.request.job_class, job.request.data_site
        pools = [self.pools[pool] for pool in cluster.node_pool]
        self.nodes = [Node(id, pool, pool.gpus, pool.cpus, pool.mbytes) for id, pool in enumerate(pools)]
        for row in plain(world.events[clocks == EventClock.NODE_BUSY]):
            self.nodes[row.target].hazards.append(row)
        self.accounts = [0.0] * N_ACCOUNTS
        window = self.scenario.measure
        self.edges_s = [window.from_s, inf if window.to_s is None else window.to_s] if measure else []
        self.at_edge = [list(self.accounts) for edge_s in self.edges_s if edge_s == 0.0]
        self.now, self.wake_s = 0.0, inf
        self.one_by_one = isinstance(self.scenario.clock, OneByOneClockConfig)
        self.done: str | None = None
        self._settle()
        self._open_decision()
        self._end_if_over()

    @property
    def measured(self) -> list[float]:
        """The accounts of the measure window: instants at its first time are in, those at its last are not."""
        first, last = (*self.at_edge, self.accounts, self.accounts)[:2]
        return [b - a for a, b in zip(first, last)]

    # Commands

    def legal_commands(self) -> list[tuple]:
        """All legal commands but `wait`."""
        kinds = {job.id: "start" if job.state == QUEUED else "change" for job in self._in(*LIVE)}
        found = [(kind, job, config) for job, kind in kinds.items() for config in range(len(self.configs))]
        return [command for command in [*found, *(("preempt", job) for job in kinds)] if self.is_legal(*command)]

    def is_legal(self, kind: str, job: int = -1, config: int = -1) -> bool:
        """Whether a command would be obeyed now."""
        if kind == "wait":
            return True
        if self.done or not 0 <= job < len(self.jobs) or self.jobs[job].commanded:
            return False
        it = self.jobs[job]
        if it.state != (QUEUED if kind == "start" else RUNNING) or (kind != "start" and not it.request.preemptible):
            return False
        without = self.scenario.without
        if kind == "preempt":
            return "preempt" not in without
        if not 0 <= config < len(self.configs) or config == it.config:
            return False
        row, request = self.configs[config], it.request
        old = self.configs[it.config] if kind == "change" else row
        resized, migrated = row.n_gpus != old.n_gpus, (row.pool_a, row.pool_b) != (old.pool_a, old.pool_b)
        if (resized and "resize" in without) or (migrated and "migrate" in without):
            return False
        if kind == "change" and not (resized or migrated) and "replan" in without:
            return False
        return (
            row.job_class == it.job_class
            and request.min_gpus <= row.n_gpus <= min(request.max_gpus, it.most_gpus)
            and all(request.pools >> pool & 1 for pool in row.gpus_in)
            and not (resized and request.elasticity != Elasticity.MALLEABLE)
            and self._place(it, row) is not None
        )

    def apply(self, kind: str, job: int = -1, config: int = -1) -> bool:
        """Take one of `start`, `change`, `preempt`, `wait`; whether it was legal."""
        if self.done:
            raise RuntimeError(f"the episode has {self.done}")
        if kind == "wait":
            if "wait" in self.scenario.without:
                self._start_all()
            if not self.done:
                self._move()
            return True
        legal = self.is_legal(kind, job, config)
        if legal:
            self._obey(kind, self.jobs[job], config)
            if self.one_by_one:
                self._balance()
            else:
                self._settle()
        else:
            self.accounts[Account.N_ILLEGAL] += 1
        self.commands_left -= 1
        if not self._end_if_over() and self.commands_left <= 0:
            self._move()
        return legal

    def _start_all(self) -> None:
        """Start queued jobs by id, each in its first legal configuration, until none can start."""
        started = True
        while started and not self.done:
            started = False
            for job in self._in(QUEUED):
                legal = [config for config in range(len(self.configs)) if self.is_legal("start", job.id, config)]
                if legal and self.commands_left > 0:
                    self._obey("start", job, legal[0])
                    self._balance() if self.one_by_one else self._settle()
                    self.commands_left -= 1
                    self._end_if_over()
                    started = True
                    break

    def _obey(self, kind: str, job: Job, config: int) -> None:
        job.commanded = True
        live_s = self._live_s(job, config) if kind == "change" else None
        if kind != "start":
            self._leave(job)
        if kind == "start":
            job.first_start_s = min(job.first_start_s, self.now)
            job.n_starts += 1
            job.start_number = sum(other.n_starts for other in self.jobs)
            self.accounts[Account.N_STARTED] += 1
        elif kind == "change":
            job.n_reconfigurations += 1
            self.accounts[Account.N_RECONFIGURED] += 1
        else:
            job.n_preempts += 1
            self.accounts[Account.N_PREEMPTED] += 1
            job.state = QUEUED
            return
        job_class, is_first = self.classes[job.job_class], kind == "start" and job.n_starts == 1
        overhead_s = job_class.first_start_s if is_first else job_class.restart_s + self.configs[config].load_s + job.pending_s
        wan_s = self._bring(job, self.configs[config], is_first)
        self._occupy(job, config, overhead_s + wan_s if live_s is None else live_s)

    # Placement

    def _place(self, job: Job, config: Row) -> tuple[dict[int, int], bool] | None:
        """Node -> GPUs of a configuration, and whether it is spread; None where it cannot be placed now.

        The job's own GPUs count as free.
        """
        allocation, is_spread = {}, False
        for pool, n_gpus in config.gpus_in.items():
            free = {node.id: node.usable_gpus(job) for node in self.nodes if node.pool is self.pools[pool]}
            taken = footprint(free, n_gpus, self.pools[pool].gpus)
            if taken is None and config.any_nodes:
                taken, is_spread = scattered(free, n_gpus), True
            if taken is None:
                return None
            allocation |= taken
        return allocation, is_spread

    def _hold(self, job: Job, sign: int) -> None:
        """Take (+1) or give back (-1) what the job's allocation names."""
        for node, gpus in ((self.nodes[id], sign * gpus) for id, gpus in job.allocation.items()):
            node.free_gpus -= gpus
            node.free_cpus -= gpus * job.request.cpus_per_gpu if node.pool.cpus else 0
            node.free_mbytes -= gpus * job.request.host_mbytes_per_gpu if node.pool.mbytes else 0
            node.idle_since = self.now if node.free_gpus == node.pool.gpus else node.idle_since
            node.watch(self.now)

    def _release(self, job: Job) -> None:
        """Take a job off its GPUs; what is at risk then is lost."""
        self._hold(job, -1)
        self.accounts[Account.LOST_GPU_S] += job.at_risk_gpu_s
        job.at_risk_gpu_s = 0.0
        job.config, job.allocation, job.in_overhead, job.rate, job.due_s = -1, {}, False, 0.0, inf
        job.next_save = job.saved_s = inf

    # Time

    def _move(self) -> None:
        """To the next decision instant, or to the end."""
        while not self.done:
            edges_s = self.edges_s[len(self.at_edge) :]
            self._integrate(min(self._next_instant_s(), self._next_timer_s(), self.scenario.limit_s, *edges_s))
            self.at_edge.extend([list(self.accounts)] if self.now in edges_s else [])
            is_decision = self.now >= self._next_timer_s()
            self._settle()
            is_decision |= self.something_happened and not isinstance(self.scenario.clock, RoundClockConfig)
            if not self._end_if_over() and is_decision:
                self._open_decision()
                return

    def _end_if_over(self) -> bool:
        if not self._in(FUTURE, *LIVE):
            self.done = "terminated"
        elif self.now >= self.scenario.limit_s:
            self.done = "truncated"
        return self.done is not None

    def _open_decision(self) -> None:
        self.last_decision_s, self.wake_s = self.now, inf
        self.commands_left = min(len(self._in(*LIVE)), self.scenario.candidates.max_commands_per_instant)
        for job in self.jobs:
            job.commanded = False

    def _next_timer_s(self) -> float:
        """The next decision that the clock itself asks for."""
        clock = self.scenario.clock
        if isinstance(clock, RoundClockConfig):
            return (round(self.last_decision_s / clock.round_s) + 1) * clock.round_s
        interval_s = clock.max_interval_s if isinstance(clock, EventClockConfig) else None
        return min(self.wake_s, self.last_decision_s + (inf if interval_s is None else interval_s))

    def _next_instant_s(self) -> float:
        times = [job.due_s for job in self.jobs] + [job.request.submit_s for job in self._in(FUTURE)]
        times += [node.own_s for node in self.nodes] + [row.at for row in self.wall]
        return max(self.now, min(times, default=inf))

    def _integrate(self, until_s: float) -> None:
        """Let time pass; nothing happens between now and then."""
        elapsed_s = until_s - self.now
        self.accounts = [total + growth * elapsed_s for total, growth in zip(self.accounts, self._growth())]
        self._account_sites(elapsed_s)
        for node in self.nodes:
            if node.is_busy:
                node.busy_s = node.hazards[0].at if node.hazard_s <= until_s else node.busy_s + elapsed_s
        for job in self.jobs:
            if job.is_stepping:
                job.progress(elapsed_s, until_s)
        self.now = until_s

    def _growth(self) -> list[float]:
        """What each account grows by per second as things stand."""
        growth = [0.0] * N_ACCOUNTS
        growth[Account.ELAPSED_S] = 1.0
        growth[Account.AVAILABLE_GPU_S] = sum(node.pool.gpus for node in self.nodes if node.up)
        growth[Account.JOB_S] = sum(job.request.weight for job in self._in(*LIVE))
        growth[Account.QUEUED_JOB_S] = sum(job.request.weight for job in self._in(QUEUED))
        for job in self._in(RUNNING):
            for id, gpus in job.allocation.items():
                growth[Account.HELD_GPU_S] += gpus
                growth[Account.OVERHEAD_GPU_S if job.in_overhead else Account.PRODUCTIVE_GPU_S] += gpus
                growth[Account.RENT_USD] += gpus * self.nodes[id].pool.rent_usd_per_gpu_s
        return growth

    def _settle(self) -> None:
        """All that happens now, in the rules' order; notes whether anything did besides ends of overheads."""
        self.something_happened = False
        is_one = self.one_by_one and self.now < self.scenario.limit_s
        if is_one:
            self._settle_one()
            self._balance()
        while not is_one:
            for job in self._in(RUNNING):
                while job.due_s <= self.now:
                    self._reach(job)
            for node in self.nodes:
                while node.own_s <= self.now:
                    self._own_instant(node)
            while self.wall and self.wall[0].at <= self.now and self.wall[0].effect in CAPACITY_EFFECTS:
                self._happen(self.wall.pop(0))
            for job in self._in(FUTURE):
                if job.request.submit_s <= self.now:
                    self._submit(job)
            while self.wall and self.wall[0].at <= self.now:
                self._happen(self.wall.pop(0))
            if self._next_instant_s() > self.now:
                self._balance()
                if self._next_instant_s() > self.now:
                    return

    def _settle_one(self) -> None:
        """The first thing that happens now, alone: submits first, jobs by their starts."""
        ready = [job for job in self._in(RUNNING) if job.due_s <= self.now]
        nodes = [node for node in self.nodes if node.own_s <= self.now]
        if submits := [job for job in self._in(FUTURE) if job.request.submit_s <= self.now]:
            self._submit(submits[0])
        elif ready:
            self._reach(min(ready, key=lambda job: job.start_number))
        elif nodes:
            self._own_instant(nodes[0])
        elif self.wall and self.wall[0].at <= self.now:
            self._happen(self.wall.pop(0))

    def _own_instant(self, node: Node) -> None:
        """It falls asleep, its repair ends, or its hazards fire."""
        if node.doze_s <= self.now:
            node.asleep = True
            return
        while node.hazard_s <= self.now < node.repair_s:
            self._happen(node.hazards.pop(0))
            node.watch(self.now)
        if node.repair_s <= self.now:
            self._return(node)

    def _submit(self, job: Job) -> None:
        job.state, self.something_happened = QUEUED, True
        if job.cancel_at_submit or job.request.rejected:
            self._end(job, CANCELLED if job.cancel_at_submit else REJECTED)

    def _reach(self, job: Job) -> None:
        """What a job's own instant brings."""
        if job.in_overhead or job.saved_s <= self.now:
            job.in_overhead = False
            if job.saved_s <= self.now:
                job.end_save()
        elif job.goal >= job.request.work:
            job.work = job.request.work
            self._end(job, FINISHED)
        elif job.thresholds and job.thresholds[0].at <= job.goal:
            self._happen(job.thresholds.pop(0))
        else:
            job.next_save += job.save_every
            if job.saved_s == inf:
                job_class = self.classes[job.job_class]
                job.begin_save(self.now, job_class.pause_s, job_class.persist_s)
        self._plan(job)

    def _end(self, job: Job, state: str) -> None:
        self.something_happened = True
        if state == FINISHED:
            late_s = max(0.0, self.now - job.request.deadline_s)
            self.accounts[Account.N_DEADLINE_MISSES] += late_s > 0
            self.accounts[Account.LATENESS_S] += job.request.weight * late_s
            job.durable, job.at_risk_gpu_s = job.work, 0.0
        self._release(job)
        job.state, job.end_s = state, self.now
        self.accounts[Account[f"N_{state}"]] += 1

    def _plan(self, job: Job) -> None:
        """Fix the rate of a stepping job, and with it the time of its next instant."""
        if job.is_stepping:
            job.rate = self._rate(job)
            job.reach_s = self.now + (job.goal - job.work) / job.rate
            job.due_s = min(job.reach_s, job.saved_s)

    def _in(self, *states: str) -> list[Job]:
        return [job for job in self.jobs if job.state in states]

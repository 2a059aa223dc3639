"""The oracle's effects: what happens to nodes, jobs and sites, by the rules of docs/design.md."""

from math import floor, inf

from hetenv.events.stream import SIGNAL_EFFECTS, Effect
from hetenv.objective import Account
from hetenv.workload.requests import Elasticity
from tests.oracle_parts import CANCELLED, CRASHED, LIVE, QUEUED, RUNNING, SIGNALS, Job, Node, Row
from tests.oracle_physics import Physics


class Effects(Physics):
    """The part of the oracle that carries out EVENT rows."""

    def _happen(self, row: Row) -> None:
        self.something_happened = True
        match Effect(row.effect):
            case Effect.NODE_UP:
                self._return(self.nodes[row.target])
            case Effect.NODE_DOWN:
                self._fail(self.nodes[row.target], self.now + row.value)
            case Effect.NODE_NOTICE:
                self._notice(self.nodes[row.target], row.value)
            case Effect.NODE_SPEED:
                self.nodes[row.target].speed = row.value
            case Effect.LINK_BANDWIDTH:
                self.pools[row.target // 2].factors[row.target % 2] = row.value
            case Effect.JOB_CRASH | Effect.JOB_CANCEL as effect:
                job = self.jobs[row.target]
                job.cancel_at_submit |= effect is Effect.JOB_CANCEL
                if job.state in LIVE:
                    self._end(job, CANCELLED if effect is Effect.JOB_CANCEL else CRASHED)
            case Effect.JOB_RANGE:
                job = self.jobs[row.target]
                job.most_gpus = floor(max(0.0, row.value))
                if job.state == RUNNING and self.configs[job.config].n_gpus > job.most_gpus:
                    self._stop(job)
            case Effect.JOB_PHASE:
                self._enter_phase(self.jobs[row.target])
            case signal:
                setattr(self.sites[row.target], SIGNALS[SIGNAL_EFFECTS.index(signal)], row.value)
        self._replan()

    def _return(self, node: Node) -> None:
        self.something_happened = True
        if not node.up:
            node.asleep, node.idle_since, node.leaves_s = False, self.now, inf
        node.up, node.repair_s = True, inf
        node.watch(self.now)

    def _fail(self, node: Node, until_s: float) -> None:
        node.repair_s = until_s if node.up else max(node.repair_s, until_s)
        node.up, node.asleep, node.leaves_s = False, False, inf
        for job in [job for job in self.jobs if node.id in job.allocation]:
            if not self._degrade(job):
                self._evict(job)
        node.watch(self.now)

    def _evict(self, job: Job) -> None:
        self._release(job)
        job.state, job.work, job.pending_s = QUEUED, job.durable, 0.0
        job.n_evictions += 1
        self.accounts[Account.N_EVICTED] += 1

    def _degrade(self, job: Job) -> bool:
        """Let a job that lost a node go on smaller; False where it cannot."""
        present = self.configs[job.config]
        job_class = self.classes[present.job_class]
        if "degrade" in self.scenario.without:
            return False
        if not job_class.degrades or not present.survives or job.request.elasticity == Elasticity.RIGID:
            return False
        smaller = [
            index
            for index, config in enumerate(self.configs)
            if config.job_class == present.job_class
            and list(config.gpus_in) == [present.pool_a]
            and job.request.min_gpus <= config.n_gpus < present.n_gpus
            and self._place(job, config) is not None
        ]
        if not smaller:
            return False
        best = min(smaller, key=lambda index: (-self.configs[index].rate, self.configs[index].n_gpus, index))
        at_risk_gpu_s, job.at_risk_gpu_s = job.at_risk_gpu_s, 0.0
        self._release(job)
        job.at_risk_gpu_s = at_risk_gpu_s
        self._occupy(job, best, job_class.degrade_s)
        self.accounts[Account.N_DEGRADED] += 1
        return True

    def _notice(self, node: Node, seconds: float) -> None:
        if not node.up:
            return
        node.leaves_s = self.now + seconds
        for job in self.jobs:
            if node.id in job.allocation and job.is_stepping and job.work > job.durable:
                save_s = self.configs[job.config].save_s
                if save_s <= seconds:
                    job.begin_save(self.now, save_s, 0.0)
                    self._plan(job)

    def _stop(self, job: Job) -> None:
        """Off its GPUs with all its work."""
        self._leave(job)
        job.state = QUEUED
        job.n_evictions += 1
        self.accounts[Account.N_EVICTED] += 1

    def _enter_phase(self, job: Job) -> None:
        following = self.classes[job.job_class].next_class
        if job.state not in LIVE or following < 0:
            return
        job.job_class = following
        if job.state == QUEUED:
            return
        job.durable, job.at_risk_gpu_s, job.saving_at_risk_gpu_s = job.work, 0.0, 0.0
        following_config = self.configs[job.config].next_config
        if following_config < 0:
            self._stop(job)
            return
        job.config = following_config
        job.plan_saves(self.configs[job.config], self.classes[job.job_class])
        self._plan(job)

    # Changing places

    def _live_s(self, job: Job, config: int) -> float | None:
        """Overhead of a live change; None where it is a restart."""
        old, new = self.configs[job.config], self.configs[config]
        job_class = self.classes[new.job_class]
        if job_class.first_move < 0 or job.site != new.site or old.job_class != new.job_class:
            return None
        first, n = job_class.first_config, job_class.last_config - job_class.first_config
        transfer_s = self.moves[job_class.first_move + (job.config - first) * n + config - first]
        factor = min(self.pools[pool].factors[1] for pool in new.gpus_in)
        return job_class.commit_s + job_class.exposed * transfer_s / factor

    def _bring(self, job: Job, config: Row, is_first: bool) -> float:
        """Move the job's state to the site of a configuration; seconds that takes."""
        here, job.site = job.site, config.site
        job_class = self.classes[config.job_class]
        n_bytes = job_class.data_bytes + (0.0 if is_first else job_class.state_bytes)
        if here in (-1, config.site) or n_bytes == 0:
            return 0.0
        link = self.wan[here][config.site]
        self.accounts[Account.WAN_BYTES] += n_bytes
        self.accounts[Account.WAN_USD] += n_bytes * link.usd_per_byte
        return link.latency_s + n_bytes * link.s_per_byte

    def _occupy(self, job: Job, config: int, overhead_s: float) -> None:
        """Place a job that holds nothing, and begin its overhead."""
        job.allocation, job.is_spread = self._place(job, self.configs[config])
        sleeping = [self.nodes[id] for id in job.allocation if self.nodes[id].asleep]
        for node in sleeping:
            node.asleep = False
        job.due_s = self.now + (overhead_s + max((node.pool.wake_s for node in sleeping), default=0.0))
        job.state, job.config, job.in_overhead, job.pending_s = RUNNING, config, True, 0.0
        job.plan_saves(self.configs[config], self.classes[self.configs[config].job_class])
        job.saved_s = inf
        self._hold(job, +1)
        if job.due_s <= self.now:
            self._reach(job)

    def _leave(self, job: Job) -> None:
        """Save and leave the GPUs."""
        job.durable, job.at_risk_gpu_s = job.work, 0.0
        job.pending_s = self.configs[job.config].save_s
        self._release(job)

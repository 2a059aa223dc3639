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

"""Least attained service in queues with demotion and promotion (Tiresias, NSDI 2019: "2D-LAS", "Discretized 2D-LAS")."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Order
from hetenv.view import View

from .repacking import repack, share_out
from .standing import Ids

LIMITS: Final = (3250.0, 7200.0)
"""Attained service at which a job leaves each queue but the last, as in Tiresias' simulator: s or GPU s."""
TOLERANCE: Final = 1e-9
"""Share of a limit within which it counts as reached, so that rounding does not decide."""


class DiscretisedLas:
    """Jobs sink through queues by attained service; the cluster is shared out queue by queue at every decision (`Repacking`).

    A job enters the first queue. It moves one queue down, to that queue's end, when its attained service has reached the queue's
    limit: run time (`by_gpus` false) or GPU seconds. In a queue those left running by the last decision come before those left
    waiting, each in the order in which they came, then who came since (`running_first`; else all in the order in which they came).
    Besides the clock's instants the rule decides when the next job is to sink or rise. `promote_after` > 0: a job below the first
    queue that has waited that many times the run time it got since its last promotion returns to the first queue, at its end, its
    service counted from 0 again.
    It knows no run times. Resumed jobs pay what the scenario says.

    `mixed_units` reproduces a slip of Tiresias' simulator: with GPU seconds the next look is after (limit - attained s) // GPUs
    whole seconds, so a job may sink late or be looked at early.
    """

    def __init__(
        self,
        name: str,
        by_gpus: bool,
        limits: tuple[float, ...] = LIMITS,
        promote_after: float = 0.0,
        running_first: bool = True,
        mixed_units: bool = False,
    ) -> None:
        self.name, self._by_gpus, self._limits = name, by_gpus, np.array([*limits, np.inf])
        self._promote_after, self._running_first, self._mixed_units = promote_after, running_first, mixed_units
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Empty queues."""
        self._queues: list[Ids] = [np.empty(0, np.int64) for _ in self._limits]
        self._forgotten: dict[int, float] = {}
        self._waited: dict[int, float] = {}
        self._last_s = 0.0

    def plan(self, view: View) -> Iterator[Order]:
        """Demote and promote, then share out."""
        ids = np.sort(np.concatenate([view.queue(), view.running()]))
        rows = view.jobs(ids)
        service = self._service(rows)
        level = self._levels(ids)
        self._enter(ids, rows["is_running"] == 1)
        sinks = (rows["is_running"] == 1) & (service >= self._limits[level] * (1.0 - TOLERANCE))
        for place in np.flatnonzero(sinks).tolist():
            self._move(int(ids[place]), int(level[place]), int(level[place]) + 1)
            level[place] += 1
        rises_s = self._promote(view, ids, rows, service, level) if self._promote_after > 0.0 else np.inf
        order = np.concatenate(self._queues)
        configs = share_out(view, order)
        runs = configs[np.argsort(order)] >= 0
        next_s = self._next_s(view, rows[runs], service[runs], self._limits[level[runs]])
        yield from repack(view, order, configs, max(min(next_s, rises_s), float(np.nextafter(view.now_s, np.inf))))

    def _service(self, rows: NDArray[np.void]) -> NDArray[np.float64]:
        """[n] attained service since the last promotion."""
        forgotten = np.array([self._forgotten.get(job, 0.0) for job in rows["job"].tolist()]) if self._forgotten else 0.0
        attained = rows["attained_gpu_s"] - forgotten
        return np.asarray(attained if self._by_gpus else attained / np.maximum(rows["min_gpus"], 1))

    def _levels(self, ids: Ids) -> NDArray[np.int64]:
        """[n] the queue in which each job is, 0 for new ones."""
        level = np.zeros(ids.size, np.int64)
        for number, queue in enumerate(self._queues):
            level[np.isin(ids, queue)] = number
        return level

    def _enter(self, ids: Ids, is_running: NDArray[np.bool_]) -> None:
        """Take out who has ended, put those that wait behind those that run, add who is new."""
        running, kept = ids[is_running], []
        for queue in self._queues:
            present = queue[np.isin(queue, ids)]
            if self._running_first:
                runs = np.isin(present, running)
                present = np.concatenate([present[runs], present[~runs]])
            kept.append(present)
        known = np.concatenate(kept)
        kept[0] = np.concatenate([kept[0], ids[~np.isin(ids, known)]])
        self._queues = kept

    def _move(self, job: int, source: int, target: int) -> None:
        self._queues[source] = self._queues[source][self._queues[source] != job]
        self._queues[target] = np.append(self._queues[target], job)

    def _promote(
        self, view: View, ids: Ids, rows: NDArray[np.void], service: NDArray[np.float64], level: NDArray[np.int64]
    ) -> float:
        """Let jobs rise that have waited long enough; returns when the next one will have, if all of them wait on."""
        elapsed_s, self._last_s = view.now_s - self._last_s, view.now_s
        served_s = service / rows["min_gpus"] if self._by_gpus else service
        next_s = np.inf
        for place in np.flatnonzero((rows["is_running"] == 0) & (service > 0.0)).tolist():
            job = int(ids[place])
            self._waited[job] = self._waited.get(job, 0.0) + elapsed_s
            patience_s = self._promote_after * float(served_s[place])
            if level[place] > 0 and self._waited[job] < patience_s * (1.0 - TOLERANCE):
                next_s = min(next_s, view.now_s + patience_s - self._waited[job])
            elif level[place] > 0:
                self._move(job, int(level[place]), 0)
                level[place], self._waited[job] = 0, 0.0
                self._forgotten[job] = float(rows["attained_gpu_s"][place])
                service[place] = 0.0
        return next_s

    def _next_s(self, view: View, rows: NDArray[np.void], service: NDArray[np.float64], limits: NDArray[np.float64]) -> float:
        """When the first of the jobs that are to run is to be looked at; inf if none sinks."""
        below = np.isfinite(limits)
        if not below.any():
            return np.inf
        rows, service, limits = rows[below], service[below], limits[below]
        gpus = np.maximum(rows["n_gpus"], rows["min_gpus"])
        if self._by_gpus and self._mixed_units:
            return float(np.maximum(view.now_s + (limits - service / gpus) // gpus, view.now_s + 1.0).min())
        left_s = (limits - service) / gpus if self._by_gpus else limits - service
        return float(view.now_s + np.maximum(left_s, TOLERANCE * limits).min())

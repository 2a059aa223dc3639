"""Least attained service in queues with demotion and promotion (Tiresias, NSDI 2019: "2D-LAS", "Discretized 2D-LAS")."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Order
from hetenv.view import View

from .repacking import repack, share_out
from .standing import Ids, updated

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
        self._order: Ids = np.empty(0, np.int64)
        self._level: Ids = np.empty(0, np.int64)
        """By job id."""
        self._forgotten: dict[int, float] = {}
        self._waited: dict[int, float] = {}
        self._last_s = 0.0

    def plan(self, view: View) -> Iterator[Order]:
        """Demote and promote, then share out."""
        ids = np.sort(np.concatenate([view.queue(), view.running()]))
        rows = view.jobs(ids)
        is_running, service = rows["is_running"] == 1, self._service(rows)
        order = self._entered(ids, is_running)
        level = self._level[ids]
        moves = is_running & (service >= self._limits[level] * (1.0 - TOLERANCE))
        level[moves] += 1
        rises_s = np.inf
        if self._promote_after > 0.0:
            rises, rises_s = self._risen(view, rows, service, level)
            level[rises], service[rises] = 0, 0.0
            moves |= rises
        self._level[ids] = level
        order = np.concatenate([order[~np.isin(order, ids[moves])], ids[moves]]) if moves.any() else order
        self._order = order = order[np.argsort(self._level[order], kind="stable")]
        configs = share_out(view, order)
        runs = configs[np.argsort(order)] >= 0
        next_s = min(rises_s, self._next_s(view, rows[runs], service[runs], self._limits[level[runs]]))
        yield from repack(view, order, configs, max(next_s, float(np.nextafter(view.now_s, np.inf))))

    def _service(self, rows: NDArray[np.void]) -> NDArray[np.float64]:
        """[n] attained service since the last promotion."""
        attained = rows["attained_gpu_s"].copy()
        if self._forgotten:
            attained -= [self._forgotten.get(job, 0.0) for job in rows["job"].tolist()]
        return attained if self._by_gpus else attained / rows["min_gpus"]

    def _entered(self, ids: Ids, is_running: NDArray[np.bool_]) -> Ids:
        """All jobs as the last decision left them, queue by queue, and new ones at the end, in the first queue."""
        n = int(ids[-1]) + 1 if ids.size else 0
        if n > self._level.size:
            self._level = np.concatenate([self._level, np.zeros(n - self._level.size, np.int64)])
        n_known = self._order.size
        order = updated(self._order, ids)
        if self._running_first and n_known:
            waits = np.zeros(n, np.int64)
            waits[ids[~is_running]] = 1
            is_old = np.zeros(self._level.size, bool)
            is_old[self._order] = True
            old = order[is_old[order]]
            order[: old.size] = old[np.argsort(2 * self._level[old] + waits[old], kind="stable")]
        return order

    def _risen(
        self, view: View, rows: NDArray[np.void], service: NDArray[np.float64], level: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], float]:
        """[n] which jobs have waited long enough, and when the next one will have, if all of them wait on."""
        elapsed_s, self._last_s = view.now_s - self._last_s, view.now_s
        served_s = service / rows["min_gpus"] if self._by_gpus else service
        rises, next_s = np.zeros(rows.size, bool), np.inf
        for place in np.flatnonzero((rows["is_running"] == 0) & (service > 0.0)).tolist():
            job, patience_s = int(rows["job"][place]), self._promote_after * float(served_s[place])
            self._waited[job] = self._waited.get(job, 0.0) + elapsed_s
            if level[place] > 0 and self._waited[job] < patience_s * (1.0 - TOLERANCE):
                next_s = min(next_s, view.now_s + patience_s - self._waited[job])
            elif level[place] > 0:
                rises[place], self._waited[job] = True, 0.0
                self._forgotten[job] = float(rows["attained_gpu_s"][place])
        return rises, next_s

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

"""Carbon-aware: jobs wait for clean power, for a bounded time."""

from collections import deque
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.units import DAY_S, HOUR_S
from hetenv.view import View

from .energy import NEAR, accepted, added_energy_j, nearly_least, quickest
from .kinds import kinds_of
from .sizing import gpu_prices

CLEAN_SHARE: Final = 0.25
"""A site is clean while its power is as clean as in the cleanest quarter of the past day."""
TOLERANCE: Final = 0.05
"""Of the mean intensity over sites and the past day: differences below it do not matter."""
PATIENCE_H: Final = 6.0
"""Longest wait of a job of weight 1, h; of others in inverse proportion, up to MOST_PATIENCE_H."""
MOST_PATIENCE_H: Final = 12.0
STEP_S: Final = 600.0
"""Seconds between two notes of how clean the sites are."""
JOB_W: Final = 2000.0
"""Power of the job for which past hours are judged, W."""


class CarbonAware:
    """Jobs start while a site is clean, and wherever they can once their patience is over.

    The intensity of a site is that of one more job: its surplus of renewable power counts as 0, the rest as the grid does.
    It is clean at up to the quantile CLEAN_SHARE of its own past day plus TOLERANCE; so where intensity never changes nobody waits
    (the threshold rules of Wiesner et al., "Let's wait awhile", Middleware 2021, with the past for a forecast). Oldest first, each
    job takes a configuration at a clean site that it accepts as in `fifo`, within NEAR of the least added energy the one of least
    cost (`sizing`). A job whose patience is over, or whose deadline leaves no more than half its run time to spare, goes first and
    takes the least carbon among all that fits; until it finds room no other job starts. Nothing that runs is changed.
    """

    name = "carbon_aware"

    def __init__(self) -> None:
        self._past: deque[tuple[float, NDArray[np.float64]]] = deque()

    def reset(self, seed: int) -> None:
        """Forget the past day."""
        self._past.clear()

    def plan(self, view: View) -> Iterator[Order]:
        """Start urgent jobs, then others at clean sites."""
        clean = self._clean(view)
        queue = view.queue()
        rows = view.jobs(queue)
        urgent, kinds, full = _is_urgent(view, rows), kinds_of(rows), set[int]()
        added_j = added_energy_j(view)
        for place in np.argsort(~urgent, kind="stable").tolist():
            job, kind = int(queue[place]), int(kinds[place])
            if kind in full:
                continue
            now = _intensity(view, view.configs["power_w"] * view.pool_pue[view.configs["pool_a"]], _site(view))
            options, prices = view.options(job), gpu_prices(view, view.n_queued - 1)
            if not urgent[place]:
                options = accepted(view, job, options, prices)
                options = options[now[options] <= clean[_site(view)[options]]]
            elif options.size:
                options = nearly_least(options, now * added_j, NEAR)
            else:
                return
            if not options.size:
                full.add(kind)
                continue
            good = nearly_least(options, added_j, NEAR)
            yield Order(Command.START, job, quickest(view, good, prices))

    def _clean(self, view: View) -> NDArray[np.float64]:
        """[S] intensity up to which each site counts as clean, kg/J; notes the present one."""
        past = self._past
        if not past or view.now_s - past[-1][0] >= STEP_S:
            past.append((view.now_s, _intensity(view, JOB_W, np.arange(view.site_power_w.size))))
        while past[0][0] < view.now_s - DAY_S:
            past.popleft()
        known = np.array([intensity for _, intensity in past])
        found: NDArray[np.float64] = np.quantile(known, CLEAN_SHARE, axis=0) + TOLERANCE * known.mean()
        return found


def _site(view: View) -> NDArray[np.int64]:
    """[C] site of each configuration (of its first pool)."""
    found: NDArray[np.int64] = view.pool_site[view.configs["pool_a"]].astype(np.int64)
    return found


def _intensity(view: View, watts: float | NDArray[np.float64], site: NDArray[np.int64]) -> NDArray[np.float64]:
    """Carbon per energy of `watts` more at each of some sites now, kg/J."""
    surplus_w = np.maximum(view.renewable_w - view.site_power_w, 0.0)[site]
    return np.asarray(view.carbon_kg_per_j[site] * (1.0 - np.minimum(surplus_w / np.maximum(watts, 1.0), 1.0)))


def _is_urgent(view: View, rows: NDArray[np.void]) -> NDArray[np.bool_]:
    """[n] jobs that may wait no longer."""
    patience_s = np.minimum(PATIENCE_H / rows["weight"], MOST_PATIENCE_H) * HOUR_S
    slack_s = rows["deadline_s"] - view.now_s - rows["believed_left_s"]
    late: NDArray[np.bool_] = (view.now_s - rows["submit_s"] >= patience_s) | (slack_s <= 0.5 * rows["believed_left_s"])
    return late

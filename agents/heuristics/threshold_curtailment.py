"""Training in curtailment windows: a site works only while one more watt there is clean."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.policy import Order
from hetenv.sim.commands import Command
from hetenv.units import JOULE_PER_KWH, KILO
from hetenv.view import View

from .energy import accepted, quickest
from .kinds import kinds_of
from .sizing import gpu_prices

BELOW_G_PER_KWH: Final = 100.0
CLOSE_AFTER_S: Final = 600.0
"""How long a site may stay above the threshold before it closes."""
ROUND_S: Final = 600.0
"""Least time for which a job that began to step is left alone."""


class ThresholdCurtailment:
    """Jobs run at a site only while its marginal intensity is below BELOW_G_PER_KWH; where no site is open they pause.

    The intensity of a site is that of one more watt: 0 while it has renewable power to spare, else the marginal intensity of its
    grid. A site opens as soon as it is below the threshold and closes once it has been above for CLOSE_AFTER_S (hysteresis); its
    jobs are then preempted, each after at least ROUND_S of steps, and keep their work. A site that has had neither renewable power
    nor another marginal intensity than at first has no windows to wait for: it is open. Queued jobs start oldest first at open
    sites, in a configuration they accept as in `fifo`. The rule of arXiv 2602.22760, where jobs of several open sites
    train in federated rounds; here a job is at one site at a time.
    """

    name = "threshold_curtailment"

    def reset(self, seed: int) -> None:
        """Every site is closed."""
        self._above_since: NDArray[np.float64] | None = None
        self._first: NDArray[np.float64] = np.empty(0)
        self._varies: NDArray[np.bool_] = np.empty(0, bool)

    def plan(self, view: View) -> Iterator[Order]:
        """Preempt at closed sites, start at open ones; asks to be woken when a site may close or a round ends."""
        surplus_w = view.renewable_w - view.site_power_w
        g_per_kwh = np.where(surplus_w > 0.0, 0.0, view.marginal_carbon_kg_per_j * JOULE_PER_KWH * KILO)
        if self._above_since is None:
            self._above_since = np.full(g_per_kwh.size, -np.inf)
            self._first, self._varies = view.marginal_carbon_kg_per_j, view.renewable_w > 0.0
        self._varies |= (view.marginal_carbon_kg_per_j != self._first) | (view.renewable_w > 0.0)
        above = (g_per_kwh >= BELOW_G_PER_KWH) & self._varies
        self._above_since = np.where(above, np.minimum(self._above_since, view.now_s), np.inf)
        closing = above & (view.now_s - self._above_since < CLOSE_AFTER_S)
        is_open = ~above | closing
        wake_s = float(np.min(self._above_since[closing] + CLOSE_AFTER_S, initial=np.inf))
        site = view.pool_site[view.configs["pool_a"]]
        rows = view.jobs(view.running())
        for row in rows[(rows["preemptible"] == 1) & (rows["had_command"] == 0) & ~is_open[site[rows["config"]]]]:
            end_s = float(row["ready_s"]) + ROUND_S
            if end_s <= view.now_s:
                yield Order(Command.PREEMPT, int(row["job"]))
            else:
                wake_s = min(wake_s, end_s)
        yield from self._start(view, is_open[site])
        if wake_s < np.inf:
            yield Order(Command.WAIT, wake_s=max(wake_s, np.nextafter(view.now_s, np.inf)))

    def _start(self, view: View, is_open: NDArray[np.bool_]) -> Iterator[Order]:
        """is_open: [C] whether a configuration lies at an open site."""
        if not is_open.any():
            return
        queue = view.queue()
        rows = view.jobs(queue)
        kinds, full = kinds_of(rows), set[int]()
        for place in np.flatnonzero(rows["had_command"] == 0).tolist():
            job, kind = int(queue[place]), int(kinds[place])
            if kind in full:
                continue
            prices = gpu_prices(view, view.n_queued - 1)
            options = accepted(view, job, view.options(job), prices)
            options = options[is_open[options]]
            if options.size:
                yield Order(Command.START, job, quickest(view, options, prices))
            else:
                full.add(kind)

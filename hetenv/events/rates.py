"""Figures of drawn events under the names of published studies. Each is a ratio of sums, so episodes add up.

`measure` draws many episodes and gives each figure with its standard error.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import ScenarioError, unknown
from hetenv.events.signals import Signal
from hetenv.events.stream import Effect, EventClock, EventContext, EventSource, source_rng
from hetenv.units import DAY_S, HOUR_S, JOULE_PER_KWH, JOULE_PER_MWH, KILO

MONTH_S: Final = 365.25 / 12.0 * DAY_S
YEAR_S: Final = 365.0 * DAY_S
Ratio = tuple[float, float]
Figure = Callable[[NDArray[np.void], EventContext], Ratio]


@dataclass(frozen=True)
class Measured:
    """A figure over episodes."""

    value: float
    standard_error: float
    """Of the ratio, from the spread over episodes (linearised)."""
    n_episodes: int


def measure(source: EventSource, context: EventContext, names: tuple[str, ...], n_episodes: int = 200) -> dict[str, Measured]:
    """Figures of a source over episodes 0 ... n_episodes - 1 of seed 0. Raises ScenarioError for an unknown figure."""
    for name in names:
        if name not in FIGURES:
            raise ScenarioError(unknown("figure", name, FIGURES))
    sums = np.zeros((n_episodes, len(names), 2))
    for episode in range(n_episodes):
        drawn = source.draw(source_rng(0, episode, source.source_name), context)
        sums[episode] = [FIGURES[name](drawn, context) for name in names]
    return {name: _ratio(sums[:, place]) for place, name in enumerate(names)}


def _ratio(sums: NDArray[np.float64]) -> Measured:
    above, below = sums[:, 0], sums[:, 1]
    if below.sum() == 0.0:
        return Measured(np.nan, np.nan, len(sums))
    value = float(above.sum() / below.sum())
    residual = above - value * below
    error = float(np.sqrt(len(sums) * residual.var(ddof=1)) / below.sum()) if len(sums) > 1 else np.nan
    return Measured(value, error, len(sums))


def absences(drawn: NDArray[np.void], horizon_s: float) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Node, from and to (at most the horizon) of each time for which a node is away; overlapping ones are one."""
    down = drawn[(drawn["effect"] == Effect.NODE_DOWN) & (drawn["clock"] == EventClock.WALL)]
    down = down[np.lexsort((down["at"], down["target"]))]
    node, from_s = down["target"].astype(np.int64), down["at"]
    apart_s = node * (2.0 * horizon_s)  # nodes one after the other on one axis
    until_s = np.maximum.accumulate(np.minimum(from_s + down["value"], horizon_s) + apart_s) - apart_s
    begins = np.concatenate([[True], (node[1:] != node[:-1]) | (from_s[1:] > until_s[:-1])])[: node.size]
    ends = np.concatenate([begins[1:], [True]])[: node.size]
    return node[begins], from_s[begins], until_s[ends]


def _failures(drawn: NDArray[np.void], context: EventContext) -> Ratio:
    days = context.cluster.n_nodes * context.horizon_s / DAY_S
    return 1000.0 * float((drawn["effect"] == Effect.NODE_DOWN).sum()), days


def _group_failures(drawn: NDArray[np.void], context: EventContext) -> Ratio:
    """Times at which nodes fail, per 1,000 pools and months: each pool is one group."""
    down = drawn[drawn["effect"] == Effect.NODE_DOWN]
    return 1000.0 * np.unique(down["at"]).size, len(context.cluster.pool_names) * context.horizon_s / MONTH_S


def _up(drawn: NDArray[np.void], context: EventContext) -> Ratio:
    _, from_s, to_s = absences(drawn, context.horizon_s)
    total_s = context.cluster.n_nodes * context.horizon_s
    return total_s - float((to_s - from_s).sum()), total_s


def _mean_up(drawn: NDArray[np.void], context: EventContext) -> Ratio:
    """Up time over departures: without bias although the horizon cuts spells off."""
    _, from_s, _ = absences(drawn, context.horizon_s)
    return _up(drawn, context)[0], float((from_s > 0).sum())


def _mean_down(drawn: NDArray[np.void], context: EventContext) -> Ratio:
    _, from_s, to_s = absences(drawn, context.horizon_s)
    return float((to_s - from_s).sum()), float((to_s < context.horizon_s).sum())


def _per_reclaim(drawn: NDArray[np.void], context: EventContext) -> Ratio:
    _, from_s, _ = absences(drawn, context.horizon_s)
    later = from_s[from_s > 0]
    return float(later.size), float(np.unique(later).size)


def _share(effect: Effect) -> Figure:
    def found(drawn: NDArray[np.void], context: EventContext) -> Ratio:
        return float(np.unique(drawn["target"][drawn["effect"] == effect]).size), float(context.requests.size)

    return found


def _site_hours(effect: Effect, below: float) -> Figure:
    """Hours a year of the first site for which a signal is below a threshold."""

    def found(drawn: NDArray[np.void], context: EventContext) -> Ratio:
        signal = Signal.of_rows(drawn, effect, 0, 0.0, context.horizon_s)
        times, values = signal.steps(0.0, context.horizon_s)
        seconds = np.diff(times, append=context.horizon_s)
        return float(seconds[values < below].sum()) / HOUR_S, context.horizon_s / YEAR_S

    return found


def _site_mean(effect: Effect, per_unit: float) -> Figure:
    """Mean of a signal of the first site."""

    def found(drawn: NDArray[np.void], context: EventContext) -> Ratio:
        signal = Signal.of_rows(drawn, effect, 0, 0.0, context.horizon_s)
        return signal.integral(0.0, context.horizon_s) * per_unit, context.horizon_s

    return found


FIGURES: Final[Mapping[str, Figure]] = {
    "failures_per_1000_node_days": _failures,
    "failures_per_1000_group_months": _group_failures,
    "availability": _up,
    "mean_up_s": _mean_up,
    "mean_down_s": _mean_down,
    "nodes_per_reclaim": _per_reclaim,
    "share_failed": _share(Effect.JOB_CRASH),
    "share_cancelled": _share(Effect.JOB_CANCEL),
    "mean_carbon_g_per_kwh": _site_mean(Effect.SITE_CARBON, KILO * JOULE_PER_KWH),
    "hours_below_100_g_per_year": _site_hours(Effect.SITE_CARBON, 100.0 / KILO / JOULE_PER_KWH),
    "mean_price_usd_per_mwh": _site_mean(Effect.SITE_PRICE, JOULE_PER_MWH),
    "negative_price_hours_per_year": _site_hours(Effect.SITE_PRICE, 0.0),
}
"""Name in `published` of catalog/event_presets.csv -> (sum above, sum below) of one episode."""

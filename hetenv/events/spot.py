"""Spot capacity: nodes that their owner takes back, many at a time, and gives again. Prices paid are not here."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hetenv.events.cause import Part, PublishedCause
from hetenv.events.spells import away, groups, members, off_spells
from hetenv.events.stream import EventContext, empty_rows
from hetenv.events.weather import autoregressive
from hetenv.units import HOUR_S

Spells = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


class CapacityMarket(Part):
    """Groups of nodes come and go together, with exponential times; each pool is divided into groups at random.

    Any node is there up_mean_h / (up_mean_h + down_mean_h) of the time, whatever the groups. Measured: Wu et al., NSDI
    2024 (whole zones), Thorpe et al., NSDI 2023 (about two nodes a reclaim).
    """

    kind: Literal["capacity"] = "capacity"
    up_mean_h: float = Field(gt=0.0, allow_inf_nan=False)
    down_mean_h: float = Field(gt=0.0, allow_inf_nan=False)
    group_nodes: float | None = Field(default=None, ge=1.0, description="mean nodes of a group; default: the whole pool")

    def spells(self, rng: np.random.Generator, n: int, horizon_s: float) -> Spells:
        """Node (0..n-1), from and to of each absence."""
        group = groups(rng, n, self.group_nodes)
        owner, from_s, to_s = off_spells(
            rng, int(group.max()) + 1, self.up_mean_h * HOUR_S, self.down_mean_h * HOUR_S, horizon_s
        )
        event, node = members(owner, group)
        return node, from_s[event], to_s[event]


class PriceMarket(Part):
    """A node is there while the pool's price is at most its bid.

    ln(price / median price) is a mean-reverting series (Ornstein-Uhlenbeck) of standard deviation `volatility`; bids
    are `bid` times the median price, spread log-normally over nodes by `bid_sigma`: a high price takes the low bids
    first, and all of them at one time where bids are equal.
    """

    kind: Literal["price"] = "price"
    volatility: float = Field(default=0.3, gt=0.0, le=3.0, description="standard deviation of ln(price)")
    reversion_h: float = Field(default=12.0, gt=0.0, allow_inf_nan=False, description="time in which the price forgets")
    bid: float = Field(default=1.3, gt=0.0, allow_inf_nan=False, description="median bid over median price")
    bid_sigma: float = Field(default=0.1, ge=0.0, le=3.0, description="sigma of ln(bid) over nodes")
    step_s: float = Field(default=300.0, ge=10.0, allow_inf_nan=False, description="between prices")

    def spells(self, rng: np.random.Generator, n: int, horizon_s: float) -> Spells:
        """Node (0..n-1), from and to of each absence; one that lasts at the horizon ends at the first step after it."""
        log_bid = np.log(self.bid) + self.bid_sigma * rng.standard_normal(n)
        n_steps = int(np.ceil(horizon_s / self.step_s))
        noise = rng.standard_normal(n_steps)
        log_price = self.volatility * autoregressive(noise, self.step_s, self.reversion_h * HOUR_S)
        is_away = np.zeros((n, n_steps + 2), bool)
        is_away[:, 1:-1] = log_price[None, :] > log_bid[:, None]
        node, first = np.nonzero(is_away[:, 1:] & ~is_away[:, :-1])
        _, after = np.nonzero(is_away[:, :-1] & ~is_away[:, 1:])
        return node.astype(np.int64), first.astype(np.float64) * self.step_s, after.astype(np.float64) * self.step_s


class Spot(PublishedCause):
    """Nodes of spot pools are reclaimed and come back, each pool by its own market.

    Effects: NODE_DOWN, value = seconds until the node is back, and NODE_NOTICE before it (providers give 30 s to 120 s: AWS
    two minutes, Google Cloud and Azure 30 s, by their documentation). Presets hold measured up and down times.
    """

    kind: Literal["spot"] = "spot"
    pools: tuple[str, ...] = Field(min_length=1, description="whose nodes are spot capacity")
    notice_s: float = Field(default=0.0, ge=0.0, allow_inf_nan=False, description="between notice and reclaim")
    market: Annotated[CapacityMarket | PriceMarket, Field(discriminator="kind")]

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """Rows pool by pool, in the order of `pools`."""
        drawn = [empty_rows()]
        for pool in self.pools:
            nodes = self.nodes_of(context.cluster, (pool,))
            node, from_s, to_s = self.market.spells(rng, nodes.size, context.horizon_s)
            drawn.append(away(nodes[node], from_s, to_s, self.notice_s))
        return np.concatenate(drawn)

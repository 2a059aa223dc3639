"""The event stream: rows of effects, drawn before the episode, and their order.

A cause (a frozen config with `draw`) writes rows; the simulator knows effects and no causes. A row says: when `clock` of
`target` reaches `at`, `effect` happens to `target` with `value`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Protocol
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hetenv.cluster import Cluster


class EventClock(IntEnum):
    """What the `at` of a row counts."""

    WALL = 0
    """Seconds since the scenario's start."""
    JOB_WORK = 1
    """Work done by the target job, in its class's unit; fires once, when the job first reaches it."""
    NODE_BUSY = 2
    """Seconds for which the target node was up and held by at least one job (a hazard budget)."""


class Effect(IntEnum):
    """The closed set of things that can happen. The number is also the order at one instant.

    `target` is a node index, 2 x pool + level (LINK_BANDWIDTH; level 0 intra-node, 1 between nodes), a site index or a request index.
    """

    NODE_UP = 0
    """The node returns now, whatever its planned repair. value: ignored."""
    NODE_DOWN = 1
    """The node fails; jobs holding it are evicted, or go on smaller. value: seconds until it returns, > 0 (inf: never)."""
    NODE_NOTICE = 2
    """The node is announced to leave. value: seconds until then, >= 0. Jobs on it save if that leaves the time."""
    NODE_SPEED = 3
    """value: factor on the compute speed of the node's GPUs, > 0."""
    LINK_BANDWIDTH = 4
    """value: factor on the bandwidth of that level of the pool's network, > 0."""
    JOB_CRASH = 5
    """The job ends unsuccessfully, its work is lost. value: ignored."""
    JOB_CANCEL = 6
    """The job is withdrawn by its user, from the queue or while running. value: ignored."""
    JOB_RANGE = 7
    """value: most GPUs that the job may hold from now on, >= 0, below its request's own bound or without effect."""
    JOB_PHASE = 8
    """The job enters the phase that follows in its class. value: ignored."""
    SITE_RENEWABLE = 9
    """value: renewable power available to the site from now on, W, >= 0."""
    SITE_CARBON = 10
    """value: average carbon intensity of the site's grid from now on, kg/J, >= 0."""
    SITE_MARGINAL_CARBON = 11
    """value: marginal carbon intensity of the site's grid from now on, kg/J, >= 0."""
    SITE_PRICE = 12
    """value: price of the site's grid energy from now on, USD/J; may be negative."""
    SITE_TEMPERATURE = 13
    """value: outside temperature of the site from now on, deg C."""
    SITE_POWER_CAP = 14
    """value: most power that the site may draw from now on, W, > 0 (inf: no cap)."""


CAPACITY_EFFECTS = (Effect.NODE_UP, Effect.NODE_DOWN, Effect.NODE_NOTICE, Effect.NODE_SPEED, Effect.LINK_BANDWIDTH)
JOB_EFFECTS = (Effect.JOB_CRASH, Effect.JOB_CANCEL, Effect.JOB_RANGE, Effect.JOB_PHASE)
SIGNAL_EFFECTS = (
    Effect.SITE_RENEWABLE,
    Effect.SITE_CARBON,
    Effect.SITE_MARGINAL_CARBON,
    Effect.SITE_PRICE,
    Effect.SITE_TEMPERATURE,
    Effect.SITE_POWER_CAP,
)

EVENT = np.dtype(
    [
        ("at", "f8"),  # s of WALL or NODE_BUSY, or work of JOB_WORK; > 0 (0 allowed for WALL)
        ("value", "f8"),  # unit by effect
        ("target", "i4"),  # node, pool/level, site or request by effect
        ("clock", "i2"),  # EventClock; 2 bytes, so that rows have no filler and are equal byte for byte
        ("effect", "i2"),  # Effect
    ],
    align=True,
)


@dataclass(frozen=True, eq=False)
class EventContext:
    """What a cause may read when it draws an episode."""

    cluster: Cluster
    requests: NDArray[np.void]
    """[J] REQUEST rows in job-id order; not to be changed."""
    horizon_s: float
    """WALL rows lie in [0, horizon_s)."""
    folder: Path | None = None
    """The scenario's own folder, one of the two roots of file paths (`traces.resolve`)."""
    class_names: tuple[str, ...] = ()
    """By `job_class` of a request."""
    seed: int = 0
    """Episode seed; recorded signals choose the split of their window by it."""


class EventSource(Protocol):
    """A cause: a frozen pydantic config, discriminated by `kind`, registered in `events.EVENT_TYPES`."""

    @property
    def source_name(self) -> str:
        """Unique within a scenario; seeds the source's own generator."""

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """Rows of dtype EVENT in any order."""


def source_rng(seed: int, episode: int, source_name: str) -> np.random.Generator:
    """The generator of one source in one episode: a new source moves no other's draws."""
    return np.random.default_rng([seed, episode, crc32(source_name.encode())])


def empty_rows(n: int = 0) -> NDArray[np.void]:
    """n zeroed rows of dtype EVENT."""
    return np.zeros(n, EVENT)


def rows(
    effect: Effect, at: ArrayLike, target: ArrayLike, value: ArrayLike, clock: EventClock = EventClock.WALL
) -> NDArray[np.void]:
    """Rows of one effect; `at`, `target` and `value` broadcast against each other (1-D or scalar)."""
    at_, target_, value_ = np.broadcast_arrays(np.atleast_1d(np.asarray(at, "f8")), np.asarray(target), np.asarray(value))
    result = empty_rows(at_.size)
    result["at"], result["target"], result["value"] = at_, target_, value_
    result["clock"], result["effect"] = clock, effect
    return result


def merge(drawn: Mapping[str, NDArray[np.void]]) -> NDArray[np.void]:
    """All rows in the order in which the simulator reads them.

    WALL rows first, by (at, effect, order of sources, order in the source); then JOB_WORK and NODE_BUSY rows, each by
    (target, at, effect, order of sources, order in the source).
    """
    if not drawn:
        return empty_rows()
    merged = np.concatenate([*drawn.values()])
    on_wall = merged["clock"] == EventClock.WALL
    target = np.where(on_wall, 0, merged["target"])
    return merged[np.lexsort((merged["effect"], merged["at"], target, merged["clock"]))]

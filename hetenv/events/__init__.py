"""Causes of events, one file each. A cause is a frozen config that draws rows of effects before the episode (`stream`).

A new cause is one file with a config class (fields with units, `source_name`, `draw`) and its name in the line below.
"""

from typing import Annotated, Final, get_args

from pydantic import Field

from hetenv.events.capacity_replay import CapacityReplay
from hetenv.events.congestion import Congestion
from hetenv.events.failures import Failures
from hetenv.events.job_ranges import JobRanges
from hetenv.events.lending import Lending
from hetenv.events.maintenance import Maintenance
from hetenv.events.power_caps import PowerCaps
from hetenv.events.renewables import Renewables
from hetenv.events.series import RecordedSeries
from hetenv.events.slow_nodes import SlowNodes
from hetenv.events.speed_spread import SpeedSpread
from hetenv.events.spot import Spot
from hetenv.events.stream import EventSource
from hetenv.events.thermal import Thermal
from hetenv.events.user_failures import UserFailures

_AnyEvent = (
    CapacityReplay
    | Congestion
    | Failures
    | JobRanges
    | Lending
    | Maintenance
    | PowerCaps
    | RecordedSeries
    | Renewables
    | SlowNodes
    | SpeedSpread
    | Spot
    | Thermal
    | UserFailures
)

EVENT_TYPES: Final[tuple[type[EventSource], ...]] = get_args(_AnyEvent)
"""Every cause; contract tests run over it."""

EventConfig = Annotated[_AnyEvent, Field(discriminator="kind")]
"""An entry of a scenario's `events`; `kind` picks the class."""

__all__ = ["EVENT_TYPES", "EventConfig", "Failures", "RecordedSeries", "Renewables"]

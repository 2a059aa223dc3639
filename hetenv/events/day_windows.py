"""Windows of a calendar: hours of the day on some weekdays."""

import numpy as np
from pydantic import Field, model_validator

from hetenv.events.cause import Part
from hetenv.units import DAY_S, HOUR_S

WEEK_DAYS = 7


class Week(Part):
    """Where in the week time 0 lies."""

    start_weekday: int = Field(default=0, ge=0, le=6, description="0 is Monday")
    start_hour: float = Field(default=0.0, ge=0.0, lt=24.0)


class DayWindow(Part):
    """From one hour of the day to another, on the weekdays on which it begins."""

    from_hour: float = Field(ge=0.0, lt=24.0)
    to_hour: float = Field(ge=0.0, le=24.0, description="at or before from_hour: of the next day")
    weekdays: tuple[int, ...] = Field(default=tuple(range(WEEK_DAYS)), min_length=1, description="0 is Monday")

    @model_validator(mode="after")
    def _weekdays_exist(self) -> "DayWindow":
        wrong = [day for day in self.weekdays if not 0 <= day < WEEK_DAYS]
        if wrong:
            raise ValueError(f"weekdays: {wrong[0]} is none; Monday is 0, Sunday is 6")
        return self

    def spans_s(self, week: Week, horizon_s: float) -> list[tuple[float, float]]:
        """(from, to) of each time that the window is open before the horizon, s; cut off at 0."""
        length_h = (self.to_hour - self.from_hour) % 24.0 or 24.0
        found = []
        for day in range(-1, int(np.ceil(horizon_s / DAY_S)) + 2):
            from_s = day * DAY_S + (self.from_hour - week.start_hour) * HOUR_S
            to_s = from_s + length_h * HOUR_S
            if (week.start_weekday + day) % WEEK_DAYS in self.weekdays and to_s > 0.0 and from_s < horizon_s:
                found.append((max(from_s, 0.0), to_s))
        return found

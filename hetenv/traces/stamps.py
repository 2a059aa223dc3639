"""Time stamps of signal files: text to UTC instants, converted exactly once, or an error."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import TraceError

OFFSET: Final = re.compile(r"\d:\d\d(:\d\d([.,]\d+)?)?\s*(Z|z|[+-]\d\d(:?\d\d)?)$")
"""A time of day with a stated offset at the end of a stamp."""
FIXED: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?")
"""A zone given as a fixed offset: +10, UTC+10:00, -0800."""
NAIVE: Final = "naive stamps of no stated zone"


class Stamps(NamedTuple):
    """Parsed stamps."""

    when: NDArray[Any]
    """[R] datetime64[ms], NaT where unreadable."""
    is_utc: bool
    """False: naive stamps whose zone nothing states."""
    time_base: str


def read(
    cells: Sequence[str], notes: Counter[str], dropped: Counter[str], zone: str | None = None, format: str = "ISO8601"
) -> Stamps:
    """Stamps of a column.

    Stamps with an offset are UTC with it, whatever `zone` says. Naive ones are local time of `zone`; without a zone they stay
    naive and cannot become a signal. In a file of both kinds the naive ones are dropped. Where clocks go back, the first
    of two equal local hours is summer time (a single one as well); a local hour that clocks skip is dropped. All counted.

    Args:
        zone: IANA name, `UTC` or a fixed offset such as `+10:00`.
        format: as pandas.to_datetime takes it.

    Raises:
        TraceError: no such zone.
    """
    import pandas as pd

    aware = np.array([OFFSET.search(cell) is not None for cell in cells], bool)
    parsed = pd.to_datetime(pd.Series(list(cells), dtype=object), format=format, utc=True, errors="coerce")
    when = parsed.dt.tz_localize(None).to_numpy("datetime64[ms]")
    dropped["stamp missing or unreadable"] += int(np.isnat(when).sum())
    if aware.any():
        naive = ~aware & ~np.isnat(when)
        dropped["stamp without an offset among stamps with one"] += int(naive.sum())
        notes["zone left unused: the stamps state their own offsets"] += int(zone not in (None, "UTC"))
        return Stamps(np.where(naive, np.datetime64("NaT"), when), True, "UTC, from the stamps' own offsets")
    if zone is None:
        return Stamps(when, False, NAIVE)
    return Stamps(_to_utc(when, zone, notes, dropped), True, f"UTC, from naive stamps of zone {zone}")


def refuse(zone: str | None, why: str, path: Path) -> None:
    """TraceError if a zone is stated for a format that states its own."""
    if zone is not None:
        raise TraceError(f"{path}: zone {zone!r} cannot be stated here ({why}); leave it out")


def _to_utc(when: NDArray[Any], zone: str, notes: Counter[str], dropped: Counter[str]) -> NDArray[Any]:
    """UTC of local times."""
    import pandas as pd

    local = pd.Series(when)
    is_first = (local.groupby(local).cumcount() == 0).to_numpy()
    place = _zone(zone)
    found = local.dt.tz_localize(place, ambiguous=is_first, nonexistent="NaT")
    sure = local.dt.tz_localize(place, ambiguous="NaT", nonexistent="NaT")
    doubtful = found.notna() & sure.isna()
    again = local.duplicated(keep=False)
    dropped["local hour that clocks skip in the stated zone"] += int((local.notna() & found.isna()).sum())
    notes["local hour that comes twice, stated once: taken as summer time"] += int((doubtful & ~again).sum())
    notes["local hour that comes twice, stated twice: summer time first"] += int((doubtful & again).sum())
    return found.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy("datetime64[ms]")


def _zone(zone: str) -> Any:
    """A tzinfo."""
    from datetime import timedelta, timezone
    from zoneinfo import ZoneInfo

    fixed = FIXED.fullmatch(zone)
    if fixed:
        sign, hours, minutes = fixed.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if offset >= timedelta(hours=24):
            raise TraceError(f"zone {zone!r}: an offset of a day or more")
        return timezone(offset if sign == "+" else -offset)
    try:
        return ZoneInfo(zone)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise TraceError(f"unknown zone {zone!r}; give UTC, an IANA name such as Europe/Berlin, or an offset such as +10:00") from None

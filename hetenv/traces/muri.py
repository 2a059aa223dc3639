"""Muri's job lists (Zhao et al., SIGCOMM 2022): Tiresias' columns in milliseconds, with shares of four resources.

`duration` is `iterations * iteration_time` but for rounding (14 % for the shortest jobs of its first trace).
"""

from pathlib import Path
from typing import Final

from hetenv.traces import tiresias
from hetenv.traces.trace import Trace
from hetenv.units import KILO

COLUMNS: Final = (*tiresias.COLUMNS, "resource_time_0", "resource_time_1", "resource_time_2", "priority")


def load(path: Path) -> Trace:
    """The trace of a file, or of all .csv files of a folder together.

    Raises:
        TraceError: nothing there, unreadable, a column missing, or no usable row.
    """
    return tiresias.read(path, "muri", "ms", KILO, COLUMNS)

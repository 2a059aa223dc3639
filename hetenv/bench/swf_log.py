"""The fields of a log in the Standard Workload Format (Chapin et al., JSSPP 1999), as they stand: 18 numbers a job, -1 unknown."""

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import TraceError

FIELDS: Final = (
    "job", "submit_s", "wait_s", "run_s", "procs", "cpu_s", "memory_kb", "asked_procs", "asked_s", "asked_memory_kb", "status", "user",
    "group", "application", "queue", "partition", "preceding_job", "think_s",
)  # fmt: skip
"""In the order of the standard. Further fields of a line are ignored."""


@dataclass(frozen=True)
class SwfLog:
    """A log's header and data lines."""

    path: Path
    header: dict[str, str]
    fields: NDArray[np.float64]
    """[jobs, 18] in file order."""
    lines: NDArray[np.int64]
    """[jobs] line in the file, from 1."""

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """[jobs] a field by its name in FIELDS."""
        return self.fields[:, FIELDS.index(name)]

    @property
    def procs(self) -> NDArray[np.float64]:
        """[jobs] processors: the larger of allocated and asked."""
        return np.maximum(self["procs"], self["asked_procs"])

    @property
    def machine_procs(self) -> int:
        """Processors of the machine by the header (MaxProcs, else MaxNodes)."""
        for key in ("MaxProcs", "MaxNodes"):
            text = self.header.get(key, "").split(" ")[0]
            if text.isdigit() and int(text) > 0:
                return int(text)
        raise TraceError(f"{self.path}: the header states neither MaxProcs nor MaxNodes; add `; MaxProcs: N` to it")


def read(path: Path) -> SwfLog:
    """A log.

    Raises:
        TraceError: unreadable, no data line, or a line with too few fields or a field that is no number.
    """
    header, rows, lines = {}, [], []
    for number, line in enumerate(_text(path).splitlines(), 1):
        text = line.strip()
        if text.startswith(";"):
            name, sign, value = text.lstrip("; ").partition(":")
            if sign:
                header[name.strip()] = value.strip()
        elif text:
            rows.append(_fields(path, number, text))
            lines.append(number)
    if not rows:
        raise TraceError(f"{path}: no data line")
    return SwfLog(path, header, np.array(rows), np.array(lines))


def _fields(path: Path, number: int, text: str) -> list[float]:
    parts = text.split()[: len(FIELDS)]
    if len(parts) < len(FIELDS):
        raise TraceError(f"{path} line {number}: {len(parts)} fields; the Standard Workload Format has {len(FIELDS)}")
    try:
        return [float(part) for part in parts]
    except ValueError as error:
        raise TraceError(f"{path} line {number}: {error}") from None


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content).decode("utf-8-sig", "replace")
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"{path}: cannot be read: {error}") from None

"""Reads a CSV file as text columns: any line ends, byte order mark, gzip, stray blanks. Only importer of pandas."""

import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import TraceError

GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class CsvFile:
    """Cells of a CSV file as text."""

    columns: tuple[str, ...]
    cells: dict[str, list[str]]
    """Column -> stripped cells, "" where missing."""
    lines: NDArray[np.int64]
    """[rows] line of each row in the file, the header being line 1."""
    n_overlong: int
    """Rows left out for having more filled cells than the header."""

    def text(self, name: str) -> NDArray[np.str_]:
        """[rows] a column, "" where the file has none of that name."""
        return np.array(self.cells.get(name, [""] * self.lines.size), np.str_)

    def number(self, name: str) -> NDArray[np.float64]:
        """[rows] a column as numbers, NaN where there is none."""
        return numbers(self.cells[name]) if name in self.cells else np.full(self.lines.size, np.nan)

    def when(self, name: str) -> NDArray[np.datetime64]:
        """[rows] a column as naive times or, with offsets, UTC; NaT where there is none."""
        return instants(self.cells.get(name, [""] * self.lines.size))


def read(path: Path, required: Sequence[str], delimiter: str = ",") -> CsvFile:
    """The columns of a file with a header line; blank lines are skipped.

    Raises:
        TraceError: unreadable, not text, no header, or a required column missing.
    """
    reader = csv.reader(io.StringIO(text(path), newline=""), delimiter=delimiter)
    try:
        header = tuple(name.strip() for name in next(reader, []))
        kept: list[list[str]] = []
        lines: list[int] = []
        n_overlong = 0
        for record in reader:
            cells = [cell.strip() for cell in record]
            if not any(cells):
                continue
            if any(cells[len(header) :]):
                n_overlong += 1
                continue
            kept.append((cells + [""] * len(header))[: len(header)])
            lines.append(reader.line_num)
    except csv.Error as error:
        raise TraceError(f"{path} line {reader.line_num}: not CSV: {error}") from None
    missing = [name for name in required if name not in header]
    if missing:
        raise TraceError(f"{path}: column {missing[0]!r} is missing (found: {', '.join(header) or 'an empty file'})")
    by_column = zip(*kept) if kept else [() for _ in header]
    cells_of = {name: list(cells) for name, cells in zip(header, by_column)}
    return CsvFile(header, cells_of, np.array(lines, np.int64), n_overlong)


def headless(path: Path, header: Sequence[str], delimiter: str = ",") -> CsvFile:
    """The columns of a file without a header line; a first line that repeats the header is skipped, further cells ignored.

    Raises:
        TraceError: unreadable, not text, or no line as long as the header.
    """
    found, lines = records(path, delimiter)
    if found and found[0][: len(header)] == list(header):
        found, lines = found[1:], lines[1:]
    width = len(header)
    if found and all(len(cells) < width for cells in found):
        raise TraceError(f"{path}: no line has the {width} cells {', '.join(header)} (the longest has {max(map(len, found))})")
    columns = zip(*((cells + [""] * width)[:width] for cells in found)) if found else [() for _ in header]
    return CsvFile(tuple(header), {name: list(cells) for name, cells in zip(header, columns)}, lines, 0)


def records(path: Path, delimiter: str = ",") -> tuple[list[list[str]], NDArray[np.int64]]:
    """Stripped cells of each line that is not blank, of a file without a header, and the lines' numbers from 1.

    Raises:
        TraceError: unreadable or not text.
    """
    reader = csv.reader(io.StringIO(text(path), newline=""), delimiter=delimiter)
    kept: list[list[str]] = []
    lines: list[int] = []
    try:
        for record in reader:
            cells = [cell.strip() for cell in record]
            if any(cells):
                kept.append(cells)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise TraceError(f"{path} line {reader.line_num}: not CSV: {error}") from None
    return kept, np.array(lines, np.int64)


def text(path: Path) -> str:
    """Content of a file of UTF-8 text, gzip-compressed or not. Raises TraceError."""
    try:
        content = path.read_bytes()
        if content.startswith(GZIP_MAGIC):
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"{path}: cannot be read: {error}") from None
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None


def numbers(cells: Sequence[str]) -> NDArray[np.float64]:
    """[rows] cells as finite numbers, NaN where they are none."""
    import pandas as pd

    found = pd.to_numeric(pd.Series(list(cells), dtype=object), errors="coerce").to_numpy(np.float64)
    return np.where(np.isinf(found), np.nan, found)


def instants(cells: Sequence[str], unit: str = "ms") -> NDArray[np.datetime64]:
    """[rows] ISO 8601 cells as naive times in ms (or `unit`); NaT where they are none. A stated offset is taken off: UTC then."""
    import pandas as pd

    parsed = pd.to_datetime(pd.Series(list(cells), dtype=object), format="ISO8601", utc=True, errors="coerce")
    return parsed.dt.tz_localize(None).to_numpy(f"datetime64[{unit}]")

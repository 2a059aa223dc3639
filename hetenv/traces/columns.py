"""How signal formats find their columns and rows: by pattern over normalised names, in one file or all files of a folder."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import TraceError
from hetenv.traces import csv_file
from hetenv.traces.series import Column, Rows
from hetenv.traces.stamps import Stamps

SUFFIXES: Final = (".csv", ".csv.gz")


class Table(NamedTuple):
    """All rows of a file, or of the files of a folder one after the other."""

    files: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[str, list[str]]
    n_overlong: int

    def numbers(self, column: str) -> NDArray[np.float64]:
        """[R] a column as numbers, NaN where it has none; infinities are none."""
        values = csv_file.numbers(self.cells[column])
        return np.where(np.isfinite(values), values, np.nan)

    def texts(self, column: str) -> NDArray[Any]:
        """[R] a column as text."""
        return np.array(self.cells[column], dtype=str)

    def rows(
        self,
        format: str,
        read: Stamps,
        columns: Mapping[str, Column],
        dropped: Counter[str],
        notes: Counter[str],
        region_column: str | None = None,
    ) -> Rows:
        """Rows to `assemble`, of stamps that begin their intervals."""
        return Rows(
            format=format,
            files=self.files,
            when=read.when,
            is_utc=read.is_utc,
            columns=columns,
            time_base=read.time_base,
            regions=None if region_column is None else self.texts(region_column),
            n_left_out=self.n_overlong,
            dropped=dropped,
            noted=notes,
        )

    def dropped(self) -> Counter[str]:
        """The count of dropped rows to begin with."""
        return Counter({"more cells than columns": self.n_overlong})


def read(path: Path) -> Table:
    """The rows of a file, or of all CSV files of a folder with equal headers.

    Raises:
        TraceError: nothing there, unreadable, unlike headers, or no rows.
    """
    paths = files(path)
    tables = [csv_file.read(file, ()) for file in paths]
    unlike = [file.name for file, table in zip(paths, tables) if table.columns != tables[0].columns]
    if unlike:
        raise TraceError(f"{path}: {unlike[0]} has other columns than {paths[0].name}; name one file")
    columns = tables[0].columns
    if len(set(columns)) != len(columns):
        doubled = next(name for name in columns if columns.count(name) > 1)
        raise TraceError(f"{paths[0]}: column {doubled!r} stands there twice")
    cells = {name: [cell for table in tables for cell in table.cells[name]] for name in columns}
    if not any(table.lines.size for table in tables):
        raise TraceError(f"{path}: empty series: no row below the header")
    return Table(tuple(file.name for file in paths), columns, cells, sum(table.n_overlong for table in tables))


def files(path: Path) -> list[Path]:
    """The file, or the CSV files of the folder by name. TraceError where there is none."""
    if not path.exists():
        raise TraceError(f"{path}: no such file or folder")
    found = sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES)) if path.is_dir() else [path]
    if not found:
        raise TraceError(f"{path}: holds no {' or '.join(SUFFIXES)} file")
    return found


def find(table: Table, pattern: str) -> str | None:
    """The first column whose normalised name the pattern matches wholly; None where there is none."""
    return next((name for name in table.columns if re.fullmatch(pattern, normal(name))), None)


def all_like(table: Table, pattern: str) -> list[str]:
    """All columns whose normalised name the pattern matches wholly."""
    return [name for name in table.columns if re.fullmatch(pattern, normal(name))]


def require(table: Table, pattern: str, what: str) -> str:
    """The same, or a TraceError that says `what` is missing and which columns there are."""
    found = find(table, pattern)
    if found is None:
        shown = ", ".join(table.columns[:12]) + (", ..." if len(table.columns) > 12 else "")
        raise TraceError(f"{table.files[0]}: column {what!r} is missing (found: {shown or 'an empty file'})")
    return found


def normal(name: str) -> str:
    """A column's name for comparison: one case, plain digits for subscripts, single blanks."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", name)).strip().casefold()

"""The file of finished episodes: one CSV row each, written at once, so that an interrupted benchmark goes on where it was."""

import csv
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from hetenv.bench.run import RESULT_KEYS, Result
from hetenv.errors import TraceError

_TEXTS = ("scenario", "golden", "policy", "status")
_COUNTS = ("scenario_version", "seed", "decisions")


class EpisodeFile:
    """Results of `run` as CSV rows; a context manager.

    Attributes:
        finished: rows that were in the file when it was opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.finished = _read(path) if path.exists() else []
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[str] = path.open("w", newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, RESULT_KEYS)
        self._writer.writeheader()
        for row in self.finished:
            self._writer.writerow(row)
        self._file.flush()

    def append(self, row: Result) -> None:
        """Write one episode and flush it."""
        self._writer.writerow(row)
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def _read(path: Path) -> list[Result]:
    """Rows of an episode file; a last line that was cut off is dropped.

    Raises:
        TraceError: the file has other columns.
    """
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames is None:
            return []
        if tuple(reader.fieldnames) != RESULT_KEYS:
            raise TraceError(f"{path}: not an episode file of this version; choose another folder or delete it")
        return [_typed(row) for row in reader if None not in row.values() and row["wall_s"] != ""]


def _typed(row: dict[str, str]) -> Result:
    return {name: _value(name, text) for name, text in row.items()}


def _value(name: str, text: str) -> str | float | int | None:
    if name in _TEXTS:
        return text
    if text == "":
        return None
    return int(text) if name in _COUNTS or name.startswith("n_") else float(text)

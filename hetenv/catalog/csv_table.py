"""Reads one catalog CSV: the column set is checked, cells are converted by the annotations of a frozen dataclass."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Protocol, TypeVar

from hetenv.errors import ScenarioError, unknown


class Named(Protocol):
    """What every catalog entry has."""

    @property
    def name(self) -> str: ...

    @property
    def aliases(self) -> tuple[str, ...]: ...


Entry = TypeVar("Entry", bound=Named)

_CONVERT: dict[str, Callable[[str], object]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda cell: bool(int(cell)),
    "tuple[str, ...]": lambda cell: tuple(part for part in cell.split("|") if part),
}


def _kind(annotation: object) -> str:
    """Key of _CONVERT for a field's annotation."""
    return annotation.__name__ if isinstance(annotation, type) and annotation.__name__ != "tuple" else str(annotation)


def read(path: Path, entry: type[Entry]) -> dict[str, Entry]:
    """Rows of `path` as `entry` objects by name. Raises ScenarioError where columns, cells or names do not fit."""
    columns = {field.name: _kind(field.type) for field in fields(entry)}  # type: ignore[arg-type]
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if set(reader.fieldnames or ()) != set(columns):
            odd = sorted(set(reader.fieldnames or ()) ^ set(columns))
            raise ScenarioError(f"{path.name}: columns missing or unknown: {', '.join(odd)}")
        entries: dict[str, Entry] = {}
        for line, cells in enumerate(reader, start=2):
            try:
                row = entry(**{name: _CONVERT[columns[name]](cells[name]) for name in columns})
            except (ValueError, TypeError) as error:
                raise ScenarioError(f"{path.name} line {line}: {error}") from error
            if " " in row.name or row.name in entries:
                raise ScenarioError(f"{path.name} line {line}: name {row.name!r} has a blank or occurs twice")
            entries[row.name] = row
    return entries


def index(entries: dict[str, Entry], kind: str) -> dict[str, Entry]:
    """Entries by lower-case name and alias; an alias that stands for two entries is an error."""
    found: dict[str, Entry] = {}
    for entry in entries.values():
        for name in (entry.name, *entry.aliases):
            if found.setdefault(name.lower(), entry) is not entry:
                raise ScenarioError(f"{kind} {name!r} names both {found[name.lower()].name!r} and {entry.name!r}")
    return found


def resolve(name: str, entries: dict[str, Entry], names: Sequence[str], kind: str) -> Entry:
    """The entry of a name or alias, in any case of letters."""
    entry = entries.get(str(name).strip().lower())
    if entry is None:
        raise ScenarioError(unknown(kind, name, names))
    return entry

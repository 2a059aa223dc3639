"""What is known of a software stack before any fit (its family and kernels), and which measured runs it produced."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hetenv.catalog import csv_table
from hetenv.errors import ScenarioError, unknown

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Software:
    """A stack's description. flags change constants by factors that all stacks share (tp_overlap, compiled ...)."""

    name: str
    aliases: tuple[str, ...]
    family: str
    product: str
    """Releases and modes of one product share their habits: a calibration moves its constants for all of them at once."""
    flags: tuple[str, ...]
    is_flash: bool
    skips_masked: bool
    launch_blocks: bool
    source: str
    licence: str


@dataclass(frozen=True)
class RunStack:
    """Rows of `source_id` whose notes contain a text (and have seq_len, 0 = any) ran on `stack`.

    token_share: real tokens per padded token.
    """

    source_id: str
    contains: str
    seq_len: int
    stack: str
    token_share: float
    why: str


@cache
def all_software() -> dict[str, Software]:
    """All described stacks by name."""
    return csv_table.read(_FOLDER / "software.csv", Software)


def software(name: str) -> Software:
    """The described stack of that name."""
    found = all_software().get(name)
    if found is None:
        raise ScenarioError(unknown("software stack", name, all_software()))
    return found


@cache
def run_stacks() -> tuple[RunStack, ...]:
    """The rules that map measured runs to stacks; the first that fits counts."""
    with (_FOLDER / "run_stacks.csv").open(newline="", encoding="utf-8") as file:
        return tuple(
            RunStack(
                row["source_id"],
                row["contains"],
                int(row["seq_len"]),
                row["stack"],
                float(row["token_share"]),
                row["why"],
            )
            for row in csv.DictReader(file)
        )

"""The command that runs published simulators' cases again."""

import json
from pathlib import Path
from typing import Annotated

import typer


def reference(
    folder: Annotated[Path, typer.Argument(help="a folder with a trace and what was expected of it", metavar="CASE_DIR")],
    policy: Annotated[str | None, typer.Option("--policy", "-p", help="one of the case's policies; default: all")] = None,
    replay: Annotated[bool, typer.Option("--replay", help="follow the stored allocations, where the case has them")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON value and nothing else on stdout")] = False,
) -> None:
    """Run a published simulator's case with hetenv, and compare job by job.

    Example: hetenv reference cases/tiresias_60 --policy dlas-gpu --json
    """
    from hetenv.bench.reference import run
    from hetenv.cli import show

    rows = run(folder, policy, replay)
    if as_json:
        print(json.dumps(rows, indent=2, allow_nan=False))
        return
    columns = list(rows[0])
    show.table([name.replace("_", " ") for name in columns], [[row[name] for name in columns] for row in rows], str(folder))

"""The command that runs a recorded queue again under a policy."""

import json
from pathlib import Path
from typing import Annotated

import typer


def backtest(
    log: Annotated[Path, typer.Argument(help="a trace that records waits", metavar="LOG")],
    format: Annotated[str, typer.Option("--format", "-f", help="of the log, e.g. swf; an unknown one lists all")],
    policy: Annotated[str, typer.Option("--policy", "-p", help="a heuristic or a planner")] = "easy_backfill",
    gpus: Annotated[int | None, typer.Option(help="size of the cluster; default: the log's header, else its peak", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON value and nothing else on stdout")] = False,
) -> None:
    """Run a log's jobs under a policy and compare waits and utilisation with what was recorded.

    Example: hetenv backtest hpc2n.swf --format swf --policy easy_backfill --json
    """
    from hetenv.bench.backtest import backtest as run_backtest
    from hetenv.cli import show

    found = run_backtest(log, format, policy, gpus)
    print(json.dumps(found, indent=2, allow_nan=False)) if as_json else show.tree("backtest", found)

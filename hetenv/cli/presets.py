"""The command `presets`: published rates of causes of events beside what their draws give."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer


def presets(
    episodes: Annotated[int, typer.Option(help="episodes to draw", min=2)] = 200,
    page: Annotated[Path | None, typer.Option(help="rewrite the table of this page, e.g. docs/events.md")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON value and nothing else on stdout")] = False,
) -> None:
    """Measure the presets of causes of events: each published figure beside that of drawn episodes.

    Example: hetenv presets --page docs/events.md
    """
    from hetenv.bench.event_presets import rewrite, table
    from hetenv.cli import show
    from hetenv.cli.app import _print_json

    found = table(episodes)
    if page is not None:
        rewrite(page, found)
    if as_json:
        _print_json([asdict(row) for row in found])
    else:
        rows = [[r.kind, r.preset, r.figure, r.published, r.found.value, r.found.standard_error] for r in found]
        show.table(("cause", "preset", "figure", "published", "drawn", "standard error"), rows)

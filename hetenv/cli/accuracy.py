"""The commands on the accuracy of the performance model: validate, calibrate, fit-stacks."""

import csv
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from hetenv.errors import ScenarioError

MAX_REFUSED: Final = 0.05
"""A model that refuses more of the rows than this has no score."""
Runs = Annotated[
    Path, typer.Argument(help="measured training runs, in the form of published tables", metavar="RUNS.csv")
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON value and nothing else on stdout")]


def _named(pairs: list[str]) -> dict[str, str]:
    """source_id=NAME pairs; the names must be stacks of the catalog."""
    from hetenv import catalog

    found = {}
    for pair in pairs:
        source, sign, name = pair.partition("=")
        if not (source and sign and name):
            raise ScenarioError(f"--stack {pair!r}: must be source_id=NAME")
        found[source] = catalog.stack(name).name
    return found


def validate(
    runs: Runs,
    by: Annotated[str, typer.Option(help="column to group the errors by")] = "source_id",
    out: Annotated[Path | None, typer.Option(help="folder for predictions.csv and scatter.png")] = None,
    stack: Annotated[
        list[str] | None, typer.Option("--stack", help="source_id=NAME: the stack of a source; repeat it")
    ] = None,
    draws: Annotated[int, typer.Option(help="random splits per calibrated source", min=1)] = 20,
    page: Annotated[Path | None, typer.Option(help="rewrite the tables of this page, e.g. docs/validation.md")] = None,
    as_json: Json = False,
) -> None:
    """Score the performance model on measured runs: as shipped, calibrated, ratios. Fails if it refuses over 5 % of them.

    Example: hetenv validate training_runs.csv --by gpu_type --out validation
    """
    from hetenv.cli import show
    from hetenv.cli.app import _print_json
    from hetenv.perf.validate import refused_share
    from hetenv.perf.validate import validate as scored
    from hetenv.perf.validation_page import rewrite

    found = scored(runs, by, out, _named(stack or []), draws)
    if page is not None:
        rewrite(page, found)
    _print_json(found) if as_json else show.accuracy(found)
    share = refused_share(found)
    if share > MAX_REFUSED:
        reasons = "; ".join(f"{n} x {why}" for why, n in found["as_shipped"]["refused"].items())  # type: ignore[index]
        print(f"hetenv: {share:.1%} of the rows refused, at most {MAX_REFUSED:.0%} may be: {reasons}", file=sys.stderr)
        raise typer.Exit(1)


def calibrate(
    runs: Runs,
    source: Annotated[str, typer.Option(help="source_id whose rows are fitted")],
    out: Annotated[Path | None, typer.Option(help="CSV file for the fitted rows, in the form of stacks.csv")] = None,
    as_json: Json = False,
) -> None:
    """Fit at most eight constants to one source's runs and print its stacks as rows of stacks.csv.

    Example: hetenv calibrate training_runs.csv --source torchtitan
    """
    from hetenv.cli import show
    from hetenv.cli.app import _print_json
    from hetenv.perf.calibrate import calibrate as fitted

    found = fitted(runs, source)
    rows: list[dict[str, Any]] = found["stacks"]  # type: ignore[assignment]
    rows = [{name: _cell(value) for name, value in row.items()} for row in rows]
    if out is not None:
        with out.open("w", newline="", encoding="utf-8") as file:
            _write(file, rows)
    if as_json:
        _print_json(found | {"stacks": rows})
        return
    show.pairs(f"calibrated on {found['source']}", {name: found[name] for name in ("n", "mape", "median_ape")})
    show.pairs("constants, times those of the stack", found["constants"])  # type: ignore[arg-type]
    _write(sys.stdout, rows)


def _cell(value: object) -> object:
    """A value as stacks.csv holds it."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return float(f"{value:.5g}")
    return "|".join(value) if isinstance(value, tuple) else value


def _write(file: Any, rows: list[dict[str, Any]]) -> None:
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def fit_stacks(
    runs: Runs,
    out: Annotated[Path, typer.Option(help="folder for stacks.csv, efficiencies.csv, stacks_loso.csv")],
    leave_out: Annotated[bool, typer.Option(help="also refit without each source and expert model")] = True,
    as_json: Json = False,
) -> None:
    """Fit all constants to measured runs and write the catalog's generated tables.

    Example: hetenv fit-stacks training_runs.csv --out hetenv/catalog
    """
    from hetenv.cli import show
    from hetenv.cli.app import _print_json
    from hetenv.perf.fit_stacks import fit_stacks as fitted

    out.mkdir(parents=True, exist_ok=True)
    found = fitted(runs, out, leave_out)
    _print_json(found) if as_json else show.pairs(f"fitted, tables in {out}", found)

"""What people see on a terminal: rich tables and the progress bar (on stderr)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.tree import Tree

from hetenv.bench.ablate import losses
from hetenv.bench.compare import ComparisonRow
from hetenv.units import HOUR_S

FILE_WIDTH: Final = 160
"""Columns where the output is no terminal."""


def _print(thing: object) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = FILE_WIDTH
    console.print(thing)


def figure(value: object) -> str:
    """A value for reading: four significant digits, a dash for None."""
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], title: str | None = None) -> None:
    """A table; numbers stand right."""
    found = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        is_number = bool(rows) and isinstance(rows[0][index], int | float)
        found.add_column(column, justify="right" if is_number else "left")
    for row in rows:
        found.add_row(*(escape(figure(value)) for value in row))
    _print(found)


def scenarios(rows: Sequence[Mapping[str, Any]]) -> None:
    columns = ("scenario", "GPUs", "pools", "sites", "hours", "primary metric", "summary")
    keys = ("scenario", "n_gpus", "n_pools", "n_sites", "horizon_s", "primary_metric", "summary")
    table(columns, [[row[key] / HOUR_S if key == "horizon_s" else row[key] for key in keys] for row in rows])


def ablation(rows: Sequence[ComparisonRow], metric: str) -> None:
    """The primary metric with everything and without each capability; the loss with its corrected interval."""
    table(("policy", metric, "loss", "from", "to", "", "worlds"), losses(rows, metric))


def result(found: Mapping[str, Any]) -> None:
    pairs(f"{found['policy']} on {found['scenario']}, seed {found['seed']}", found)


def pairs(title: str, found: Mapping[str, Any]) -> None:
    """Names and values."""
    rows = Table(title=title, title_justify="left", show_header=False)
    rows.add_column()
    rows.add_column(justify="right")
    for name, value in found.items():
        if not isinstance(value, Mapping):
            rows.add_row(name, figure(value))
    _print(rows)


def plans(found: Mapping[str, Any]) -> None:
    keys = ("plan", "iter_s", "tokens_per_s", "mfu", "memory_gbytes", "exposed_s", "usd_per_gtoken", "kwh_per_gtoken")
    columns = ("plan", "step s", "tokens/s", "MFU", "memory GB", "exposed s", "power kW", "$/Gtoken", "kWh/Gtoken", "layers")
    rows = []
    for row in found["plans"]:
        cells = [row[key] for key in keys]
        layers = " | ".join(f"{part['on']}: {_layers(part['layers'])}" for part in row["split"])
        rows.append([*cells[:6], row["power_w"] / 1e3, *cells[6:], layers])
    table(columns, rows, f"{len(rows)} fastest of {found['n_plans']} plans")
    for reason, n in found["illegal"].items():
        print(f"{n:>8} plans illegal: {reason}")


def _layers(sizes: Sequence[int]) -> str:
    """Stages of equal size together: 4x10 for four stages of ten layers."""
    runs: list[list[int]] = []
    for size in sizes:
        if runs and runs[-1][1] == size:
            runs[-1][0] += 1
        else:
            runs.append([1, size])
    return " ".join(f"{n}x{size}" for n, size in runs)


def accuracy(found: Mapping[str, Any]) -> None:
    """Scores of the performance model, per cent."""
    columns = ("mean %", "median %", "bias %", "n", "refused")
    for score in ("as_shipped", "calibrated"):
        kinds = {name: row for name, row in found[score].items() if isinstance(row, Mapping) and "mape" in row}
        table(("kind", *columns), [[name, *_errors(row)] for name, row in kinds.items()], score.replace("_", " "))
    rows = [[name, *_errors(row), row["spearman"]] for name, row in found["as_shipped"]["by_source"].items()]
    table(("source", *columns, "rank corr."), rows, "as shipped, by source")
    if "by" in found:
        table(("value", *columns), [[name, *_errors(row)] for name, row in found["by"].items()], "as shipped")
    pairs("ratios", found["ratio"])


def _errors(row: Mapping[str, Any]) -> list[object]:
    shares = [None if row[name] is None else 100.0 * row[name] for name in ("mape", "median_ape", "bias")]
    return [*shares, row["n"], row["n_refused"]]


def tree(title: str, found: Mapping[str, Any]) -> None:
    """Nested names and values."""
    _print(_grown(Tree(title), found))


def _grown(branch: Tree, found: Mapping[str, Any]) -> Tree:
    for name, value in found.items():
        if isinstance(value, Mapping):
            _grown(branch.add(f"[bold]{name}"), value)
        else:
            branch.add(f"{name}: {figure(value)}")
    return branch


def _bar() -> Progress:
    """A progress bar on stderr that vanishes at its end."""
    common = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*common, TextColumn("{task.description}"), console=Console(stderr=True), transient=True)


@contextmanager
def progress(total: int) -> Iterator[Callable[[Mapping[str, Any], int, int], None]]:
    """Of a benchmark; yields what it calls after each episode."""
    with _bar() as bar:
        task = bar.add_task("starting", total=total)

        def on_episode(row: Mapping[str, Any], n_finished: int, n_tasks: int) -> None:
            description = f"{row['scenario']} {row['policy']} {row['seed']}"
            bar.update(task, completed=n_finished, total=n_tasks, description=description)

        yield on_episode


@contextmanager
def tuning(total: int) -> Iterator[Callable[[int, int, float], None]]:
    """Of a search; yields what it calls with trials done, trials wanted and the best objective so far."""
    with _bar() as bar:
        task = bar.add_task("starting", total=total)
        yield lambda done, wanted, best: bar.update(task, completed=done, total=wanted, description=f"best {best:.4g}")

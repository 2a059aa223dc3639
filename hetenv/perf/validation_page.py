"""The tables of docs/validation.md, written between two marks of the page by `hetenv validate RUNS.csv --page PAGE`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hetenv.errors import ScenarioError

BEGIN: Final = "<!-- tables -->"
END: Final = "<!-- end of tables -->"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100.0 * value:.1f}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _errors(row: Mapping[str, Any]) -> list[str]:
    return [_percent(row[name]) for name in ("mape", "median_ape", "bias")] + [str(row["n"]), str(row["n_refused"])]


def _ratios(ratio: Mapping[str, Any]) -> str:
    median, p90 = (_times(ratio[name]) for name in ("plan_regret_median", "plan_regret_p90"))
    one, best = (_percent(ratio[name]) for name in ("accelerator_mape", "accelerator_best_mape"))
    return (
        f"Ratios between accelerators within one source: {one} % between runs of one workload, plan and release "
        f"({ratio['accelerator_n']} pairs), {best} % between the best runs of a workload on each "
        f"({ratio['accelerator_best_n']} pairs). The plan that the model picks takes {median} times the best measured one in "
        f"the median, {p90} at the 90th percentile ({ratio['plan_n']} workloads)."
    )


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def tables(found: Mapping[str, Any]) -> str:
    """The three scores as Markdown."""
    shipped, calibrated, ratio = found["as_shipped"], found["calibrated"], found["ratio"]
    kinds = ("dense", "moe", "cnn", "mixed")
    rows = [["as shipped", kind, *_errors(shipped[kind])] for kind in kinds]
    for label, name in (
        ("shared", "as shipped, hardware of several sources"),
        ("alone", "as shipped, hardware of one"),
    ):
        part = shipped["hardware"][label]
        rows += [[name, kind, *_errors(part[kind])] for kind in kinds if part[kind]["n"]]
    rows.append(["as shipped, without its source", "moe", *_errors(shipped["moe_leave_one_source_out"])])
    rows += [["calibrated", kind, *_errors(calibrated[kind])] for kind in kinds if calibrated[kind]["n"]]
    sources = []
    for name, row in shipped["by_source"].items():
        rank = "-" if row["spearman"] is None else f"{row['spearman']:.2f}"
        part = calibrated["by_source"].get(name)
        after = ["-", "-"] if part is None else [_percent(part["mape"]), _percent(part["median_ape"])]
        sources.append([name, *_errors(row)[:4], rank, *after])
    measured = f"{shipped['n_rows']} measured rows, {sum(shipped['refused'].values())} refused."
    return "\n\n".join(
        [
            measured,
            _table(("score", "kind", "mean", "median", "bias", "configurations", "refused"), rows),
            _ratios(ratio),
            _table(
                ("source", "mean", "median", "bias", "configurations", "rank corr.", "calibrated mean", "median"),
                sources,
            ),
        ]
    )


def rewrite(page: Path, found: Mapping[str, Any]) -> None:
    """Put fresh tables between the marks of a page; what stands around them stays."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ScenarioError(f"{page}: needs a line {BEGIN} and later a line {END}")
    page.write_text(f"{before}{BEGIN}\n{tables(found)}\n{END}{after}", encoding="utf-8")

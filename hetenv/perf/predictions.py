"""What `validate` leaves in a folder: predictions.csv, one line per measured row, and a scatter plot."""

import csv
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from hetenv.perf.runs import Run

COLUMNS = ("row_id", "source_id", "kind", "measured_iter_s", "predicted_iter_s", "stack", "flags", "refused")
Line = dict[str, object]


def predictions(
    every: Sequence[Run], seconds: Mapping[tuple[object, ...], float], mixed: Mapping[str, tuple[float, str]]
) -> list[Line]:
    """One line per measured row. seconds: by configuration; mixed: (seconds, why refused) of rows on two kinds of GPU."""
    lines: list[Line] = []
    for run in every:
        predicted, refused = seconds.get(run.key, float("nan")), run.refused
        if run.row_id in mixed:
            predicted, refused = mixed[run.row_id]
        lines.append(
            {
                "row_id": run.row_id,
                "source_id": run.source_id,
                "kind": run.kind,
                "measured_iter_s": run.measured_s,
                "predicted_iter_s": "" if refused or np.isnan(predicted) else predicted,
                "stack": run.stack,
                "flags": "; ".join(run.flags),
                "refused": refused,
            }
        )
    return lines


def write_predictions(folder: Path, lines: Sequence[Line]) -> None:
    """predictions.csv, and scatter.png where matplotlib is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "predictions.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    if find_spec("matplotlib") is not None:
        _scatter(folder / "scatter.png", lines)


def _scatter(path: Path, lines: Sequence[Line]) -> None:
    """Predicted over measured seconds, a colour per source, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 7), layout="constrained")
    axes = figure.add_subplot()
    for source in sorted({str(line["source_id"]) for line in lines}):
        mine = [line for line in lines if line["source_id"] == source and line["predicted_iter_s"] != ""]
        points = np.array([(line["measured_iter_s"], line["predicted_iter_s"]) for line in mine], float).reshape(-1, 2)
        axes.plot(points[:, 0], points[:, 1], ".", label=source, alpha=0.6)
    axes.set(xscale="log", yscale="log", xlabel="measured s per step", ylabel="predicted s per step, as shipped")
    axes.axline((1.0, 1.0), (2.0, 2.0), color="black", linewidth=0.8)
    axes.legend(fontsize="small")
    figure.savefig(path)

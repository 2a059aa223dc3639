"""Predicts measured runs over mixed GPUs."""
from collections.abc import Sequence
from pathlib import Path
from hetenv.perf.runs import Run


def predict_mixed(path: Path, runs: Sequence[Run]) -> dict[str, tuple[float, str]]:
    """By row_id: (seconds, why refused)."""
    return {run.row_id: (float("nan"), "no layer profiles") for run in runs}

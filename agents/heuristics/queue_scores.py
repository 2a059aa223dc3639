"""Scores by which queues of rigid jobs are ordered: the smaller, the earlier. r run time as believed, n GPUs, s submit, w wait."""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Score = Callable[[NDArray[np.void], Scores], Scores]
"""(JOB_VIEW rows, waits s) -> [n]."""
EPSILON: Final = 1e-15
"""Keeps UNICEP's quotient finite for jobs of one GPU and jobs that did not wait yet."""


def submit(rows: NDArray[np.void], wait_s: Scores) -> Scores:
    """First come, first served: s."""
    return np.asarray(rows["submit_s"])


def run_time(rows: NDArray[np.void], wait_s: Scores) -> Scores:
    """Shortest job first: r (ties by submit, as the queue stands)."""
    return np.asarray(rows["believed_left_s"])


def wfp3(rows: NDArray[np.void], wait_s: Scores) -> Scores:
    """WFP3: -(w / r)^3 n (Tang et al., "Fault-aware, utility-based job scheduling on Blue Gene/P", CLUSTER 2009)."""
    return np.asarray(-np.power(wait_s / _positive(rows["believed_left_s"]), 3) * rows["min_gpus"])


def unicep(rows: NDArray[np.void], wait_s: Scores) -> Scores:
    """UNICEP: -w / (log2(n) r) (the same). Jobs of one GPU come first."""
    return np.asarray(-(wait_s + EPSILON) / (np.log2(rows["min_gpus"] + EPSILON) * _positive(rows["believed_left_s"])))


def _positive(run_s: Scores) -> Scores:
    return np.maximum(run_s, EPSILON)


def _since(rows: NDArray[np.void]) -> Scores:
    """log10(s); submits within the first second count as 1 s."""
    return np.log10(np.maximum(rows["submit_s"], 1.0))


def f1(rows: NDArray[np.void], wait_s: Scores) -> Scores:
    """F1: log10(r) n + 870 log10(s) (Carastan-Santos and de Camargo, SC 2017, table 3; so F2 to F4)."""
    return np.asarray(np.log10(np.maximum(rows["believed_left_s"], 1.0)) * rows["min_gpus"] + 870.0 * _since(rows))


def f2(rows: NDArray[np.void], wait_s: Scores) -> Scores:
    """F2: sqrt(r) n + 2.56e4 log10(s)."""
    return np.asarray(np.sqrt(rows["believed_left_s"]) * rows["min_gpus"] + 2.56e4 * _since(rows))


def f3(rows: NDArray[np.void], wait_s: Scores) -> Scores:
    """F3: r n + 6.86e6 log10(s)."""
    return np.asarray(rows["believed_left_s"] * rows["min_gpus"] + 6.86e6 * _since(rows))


def f4(rows: NDArray[np.void], wait_s: Scores) -> Scores:
    """F4: r sqrt(n) + 5.3e5 log10(s)."""
    return np.asarray(rows["believed_left_s"] * np.sqrt(rows["min_gpus"]) + 5.3e5 * _since(rows))

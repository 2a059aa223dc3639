"""Azure's inference traces (Patel et al., ISCA 2024): `TIMESTAMP,ContextTokens,GeneratedTokens`, one request a line.

A request is a job of one GPU whose steps are its tokens (context and generated); it has no run time. Stamps have seven
fractional digits; their zone is not stated and stays naive. Each file is one service (`code`, `conv`): its kind.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.traces import csv_file, statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.job_file import JobFile, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.trace import Trace

COLUMNS: Final = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
UNITS: Final = {"TIMESTAMP": "date and time, 100 ns", "ContextTokens": "tokens", "GeneratedTokens": "tokens"}
MINUTE_NS: Final = 60_000_000_000


def load(path: Path) -> Trace:
    """The requests of a file, or of all .csv files of a folder together.

    Raises:
        TraceError: nothing there, unreadable, a column missing, or no usable row.
    """
    files = [_read(file) for file in files_of(path, lambda name: name.endswith(".csv"), ".csv file")]
    base = "naive date and time, zone not stated; seconds since the midnight that begins the first day"
    return trace_of("azure_llm", path, files, base, UNITS)


def _read(path: Path) -> JobFile:
    table = csv_file.read(path, COLUMNS)
    when = csv_file.instants(table.cells["TIMESTAMP"], "ns")
    found = JobFile.of(path, table, COLUMNS)
    found.submitted(when, "TIMESTAMP")
    tokens = table.number("ContextTokens") + table.number("GeneratedTokens")
    found.drop(~np.isfinite(tokens), "tokens missing or no number")
    found.drop((table.number("ContextTokens") < 0) | (table.number("GeneratedTokens") < 0), "tokens negative")
    found.asks(np.ones(table.lines.size), "requests")
    found.columns["steps"] = tokens
    found.labels["kind"] = np.full(table.lines.size, path.name.split(".")[0].rpartition("_")[2])
    found.statistics = _statistics(path, table, when)
    return found


def _statistics(path: Path, table: CsvFile, when: Any) -> dict[str, Any]:
    content, cells = csv_file.text(path), table.cells["TIMESTAMP"]
    there = np.flatnonzero(~np.isnat(when))
    found: dict[str, Any] = {
        "rows": table.lines.size,
        "columns": list(table.columns),
        "crlf": "\r\n" in content,
        "ends_with_newline": content.endswith("\n"),
        "context_tokens": statistics.describe(table.number("ContextTokens")),
        "generated_tokens": statistics.describe(table.number("GeneratedTokens")),
        "n_zero_generated": int((table.number("GeneratedTokens") == 0).sum()),
        "total_tokens": int(np.nansum(table.number("ContextTokens")) + np.nansum(table.number("GeneratedTokens"))),
    }
    if there.size:
        since_ns = (when - np.nanmin(when))[there].astype(np.int64)
        minutes = np.bincount(since_ns // MINUTE_NS).astype(np.float64)
        found |= {
            "first": cells[there[since_ns.argmin()]],
            "last": cells[there[since_ns.argmax()]],
            "sorted": bool(np.all(np.diff(since_ns) >= 0)),
            "span_s": statistics.rounded(since_ns.max() / 1e9),
            "requests_per_minute": {
                "mean": statistics.rounded(minutes.mean()),
                "max": int(minutes.max()),
                "min": int(minutes.min()),
                "index_of_dispersion": statistics.dispersion(minutes),
            },
            "interarrival": statistics.interarrival(since_ns / 1e9),
        }
    return found

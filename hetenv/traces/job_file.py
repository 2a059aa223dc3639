"""Rows of job files on their way into a trace: the rules that all formats share, each counting the rows it met.

A row without a usable submit time, GPU count or run time is dropped, and so are rows that ask for no GPU (CPU jobs), run
backwards, or were over before time 0. Repaired: fractional GPUs are rounded up; a start before its submit is a wait of 0;
a submit before time 0 is a job that is present at 0. Times count from the midnight that begins the first day where the
file states dates; relative times stay as they are and never become dates.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import TraceError
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.nodes import SideTable, together
from hetenv.traces.statistics import stamp
from hetenv.traces.trace import UNTYPED, LoadReport, Outcome, Trace, offered, trace_rows
from hetenv.units import HOUR_S

MAX_GPUS: Final = 1_000_000
EPOCH: Final = np.datetime64("1970-01-01", "ms")
LABELS: Final = ("group", "kind", "gpu_type", "plan")
COLUMNS: Final = ("submit_s", "duration_s", "gpus", "wait_s", "limit_s", "steps", "weight", "outcome")
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(eq=False)
class JobFile:
    """Columns [R] of one file's rows, and what the rules did. Rows that are dropped keep their place until `trace`."""

    path: Path
    lines: NDArray[np.int64]
    n_overlong: int = 0
    is_dated: bool = False
    statistics: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    labels: dict[str, NDArray[np.str_]] = field(default_factory=dict)
    ids: NDArray[np.str_] | None = None
    """Order of rows of one submit time; default: order in the file."""

    def __post_init__(self) -> None:
        n = self.lines.size
        self.kept = np.ones(n, bool)
        self.dropped, self.repaired, self.noted = Counter[str](), Counter[str](), Counter[str]()
        self.dropped["more cells than columns"] = self.n_overlong
        self.columns = {name: np.full(n, np.nan) for name in COLUMNS} | {"weight": np.ones(n), "outcome": np.zeros(n, np.int64)}
        self.labels = {name: np.full(n, UNTYPED if name == "gpu_type" else "") for name in LABELS}

    @classmethod
    def of(cls, path: Path, table: CsvFile, known: Sequence[str]) -> "JobFile":
        """The rows of a table; columns that the format does not know are noted."""
        found = cls(path, table.lines, table.n_overlong)
        found.noted["unknown columns, ignored"] = len(set(table.columns) - set(known) - {""})
        return found

    def drop(self, bad: Mask, reason: str) -> None:
        """Leave rows out."""
        self.dropped[reason] += int((bad & self.kept).sum())
        self.kept &= ~bad

    def repair(self, which: Mask, reason: str) -> None:
        """Count repaired rows among those still kept."""
        self.repaired[reason] += int((which & self.kept).sum())

    def note(self, which: Mask, reason: str) -> None:
        """Count odd rows among those still kept."""
        self.noted[reason] += int((which & self.kept).sum())

    def submitted(self, values: NDArray[Any], column: str) -> None:
        """Submit times: datetimes, or seconds since the trace's start."""
        self.is_dated = values.dtype.kind == "M"
        submit_s = seconds(values)
        self.drop(~np.isfinite(submit_s), f"{column} missing or no {'date' if self.is_dated else 'number'}")
        self.columns["submit_s"] = submit_s

    def asks(self, gpus: Floats, column: str) -> None:
        """GPU counts."""
        self.drop(~np.isfinite(gpus), f"{column} missing or no number")
        self.drop(gpus == 0, "asks for no GPU")
        self.drop((gpus < 0) | (gpus > MAX_GPUS), f"{column} negative or above {MAX_GPUS}")
        whole = np.ceil(np.where(self.kept, gpus, 1.0))
        self.repair(whole != gpus, "fractional GPUs rounded up")
        self.columns["gpus"] = whole

    def runs(self, duration_s: Floats, column: str) -> None:
        """Run times, s, and the rule for submits before time 0."""
        self.drop(~np.isfinite(duration_s), f"{column} missing or no number")
        self.drop(duration_s < 0, f"{column} negative")
        self.columns["duration_s"] = duration_s
        self.note(duration_s == 0, "rows of zero duration, kept")
        self.clip()

    def ran(self, start: NDArray[Any], end: NDArray[Any], duration_s: Floats | None = None) -> None:
        """Waits and run times from starts and ends (as `submitted` takes them); `duration_s` where the file has its own."""
        submit_s, start_s, end_s = self.columns["submit_s"], seconds(start), seconds(end)
        self.repair(start_s < submit_s, "start before submit: taken as the submit")
        start_s = np.fmax(start_s, np.where(np.isfinite(start_s), submit_s, np.nan))
        self.columns["wait_s"] = start_s - submit_s
        run_s = end_s - start_s
        if duration_s is not None:
            usable = np.isfinite(duration_s) & (duration_s >= 0)
            self.repair(~np.isfinite(run_s) & usable, "start or end missing: run time from the duration column")
            run_s = np.where(np.isfinite(run_s), run_s, np.where(usable, duration_s, np.nan))
        self.drop(~np.isfinite(run_s) & ~np.isfinite(start_s), "never started: no start")
        self.drop(~np.isfinite(run_s), "no end")
        self.drop(run_s < 0, "ends before it starts")
        self.runs(run_s, "run time")

    def does(self, steps: Floats, column: str) -> None:
        """Work in the format's own unit."""
        self.repair(steps < 0, f"{column} negative: unknown")
        self.columns["steps"] = np.where(steps < 0, np.nan, steps)

    def clip(self) -> None:
        """Relative submits before time 0."""
        if self.is_dated:
            return
        submit_s, wait_s = self.columns["submit_s"], self.columns["wait_s"]
        early = submit_s < 0
        end_s = submit_s + np.where(np.isfinite(wait_s), wait_s, 0.0) + self.columns["duration_s"]
        self.drop(early & (end_s <= 0), "over before time 0")
        self.repair(early, "submitted before time 0: present at 0")
        self.columns["submit_s"] = np.where(early, 0.0, submit_s)

    def ended(self, words: NDArray[np.str_], outcomes: Mapping[str, Outcome]) -> None:
        """Outcomes from a status column; unknown words are noted."""
        lower = np.char.lower(words)
        found = np.array([outcomes.get(word.split(" ")[0], -1) if word else 0 for word in lower.tolist()], np.int64)
        self.note(found < 0, "status of another word: outcome unknown")
        self.columns["outcome"] = np.maximum(found, 0)

    def table(self) -> NDArray[np.void]:
        """Kept rows as TRACE_ROW without labels."""
        rows = trace_rows(int(self.kept.sum()))
        for name in COLUMNS:
            rows[name] = self.columns[name][self.kept]
        rows["line"] = self.lines[self.kept]
        return rows


def seconds(values: NDArray[Any]) -> Floats:
    """Datetimes as seconds since 1970, NaN for NaT; numbers as they are."""
    return (values - EPOCH) / np.timedelta64(1, "s") if values.dtype.kind == "M" else values.astype(np.float64)


def trace(
    format: str, path: Path, files: Sequence[JobFile], time_base: str, units: Mapping[str, str]
) -> Trace:
    """The files' rows together, by submit time.

    Raises:
        TraceError: no usable row.
    """
    dropped = sum((file.dropped for file in files), Counter[str]())
    repaired = sum((file.repaired for file in files), Counter[str]())
    noted = sum((file.noted for file in files), Counter[str]())
    n_read = sum(file.lines.size + file.n_overlong for file in files)
    rows = np.concatenate([file.table() for file in files])
    if not rows.size:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in dropped.items() if count)
        raise TraceError(f"{path}: empty trace: no usable row among {n_read} ({reasons or 'no rows'})")
    names: dict[str, tuple[str, ...]] = {}
    for label in LABELS:
        found, rows[label] = np.unique(np.concatenate([file.labels[label][file.kept] for file in files]), return_inverse=True)
        names[label] = tuple(str(name) for name in found)
    rows = rows[np.lexsort((np.concatenate([_ranks(file) for file in files]), rows["submit_s"]))]
    first, last = float(rows["submit_s"][0]), float(rows["submit_s"][-1])
    is_dated = files[0].is_dated
    origin = (EPOCH + np.timedelta64(int(first // 86_400), "D")).astype("datetime64[D]") if is_dated else np.datetime64("NaT")
    if is_dated:
        rows["submit_s"] -= seconds(np.array(origin))
    rows.flags.writeable = False
    work_s = rows["gpus"] * np.nan_to_num(rows["duration_s"])
    report = LoadReport(
        format=format,
        files=tuple(file.path.name for file in files),
        time_base=time_base,
        units=dict(units),
        rows_read=n_read,
        rows_kept=rows.size,
        repaired=_counted(repaired),
        dropped=_counted(dropped),
        noted=_counted(noted),
        first=_stated(first, is_dated),
        last=_stated(last, is_dated),
        gpu_hours={
            name: float(work_s[rows["gpu_type"] == index].sum() / HOUR_S)
            for index, name in enumerate(names["gpu_type"])
            if np.isfinite(rows["duration_s"]).any()
        },
    )
    statistics = files[0].statistics if len(files) == 1 else {file.path.name: file.statistics for file in files}
    return Trace(rows, origin, names["group"], report, statistics, names["kind"], names["gpu_type"], names["plan"])


def beside(found: Trace, tables: Sequence[SideTable]) -> Trace:
    """A trace beside its folder's other tables: offered load against their GPUs, statistics by file name."""
    if not tables:
        return found
    side = together(tables)
    report = offered(found.report, found.span_s, side.report.gpus, sum(side.report.gpus.values()))
    report = replace(report, files=report.files + side.report.files, gpus=side.report.gpus)
    mine = {found.report.files[0]: found.statistics} if len(found.report.files) == 1 else found.statistics
    theirs = {side.report.files[0]: side.statistics} if len(tables) == 1 else side.statistics
    return replace(found, report=report, statistics={**mine, **theirs})


def _ranks(file: JobFile) -> Floats:
    """Order of a file's kept rows among those of one submit time."""
    if file.ids is None:
        return np.zeros(int(file.kept.sum()))
    ids = file.ids[file.kept]
    if all(name.isdecimal() for name in ids.tolist()):
        return ids.astype(np.float64)
    ranks: Floats = np.unique(ids, return_inverse=True)[1].astype(np.float64)
    return ranks


def _stated(submit_s: float, is_dated: bool) -> str:
    return stamp(EPOCH + np.timedelta64(round(submit_s * 1000), "ms")) if is_dated else f"{submit_s:.10g} s"


def files_of(path: Path, is_mine: Callable[[str], bool], what: str) -> list[Path]:
    """The file, or those of a folder whose names (without .gz) are the format's.

    Raises:
        TraceError: nothing there.
    """
    if not path.exists():
        raise TraceError(f"{path}: no such file or folder")
    if path.is_file():
        return [path]
    found = sorted(file for file in path.iterdir() if file.is_file() and is_mine(file.name.removesuffix(".gz")))
    if not found:
        raise TraceError(f"{path}: holds no {what}")
    return found


def _counted(reasons: Mapping[str, int]) -> dict[str, int]:
    """Reasons that occurred."""
    return {reason: count for reason, count in reasons.items() if count}

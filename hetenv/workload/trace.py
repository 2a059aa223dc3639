"""Trace workloads: an episode is one window of a recorded trace, time 0 at the window's start."""

from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from hetenv.errors import ScenarioError, TraceError, unknown
from hetenv.traces import TRACE_FORMATS, Trace, load_jobs, resolve
from hetenv.units import DAY_S, HOUR_S
from hetenv.workload.context import WorkloadContext
from hetenv.workload.mapping import assign, mappings
from hetenv.workload.requests import NEVER
from hetenv.workload.requests import requests as new_requests
from hetenv.workload.synthetic import pool_mask

Split = Literal["train", "validation", "test"]

FIRST_VALIDATION_SEED: Final = 100_000
FIRST_TRAIN_SEED: Final = 1_000_000
"""Episode seeds below FIRST_VALIDATION_SEED read the test days, those from FIRST_TRAIN_SEED on the training days."""


class Splits(BaseModel):
    """Days of the trace (its own calendar) from which the windows of each split are taken; disjoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    train: tuple[date, ...] = Field(min_length=1)
    validation: tuple[date, ...] = Field(min_length=1)
    test: tuple[date, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _disjoint(self) -> "Splits":
        days = [*self.train, *self.validation, *self.test]
        doubled = sorted({day for day in days if days.count(day) > 1})
        if doubled:
            raise ValueError(f"day {doubled[0]} stands in two places; make train, validation and test disjoint")
        return self


def split_of(seed: int) -> Split:
    """The split whose days an episode seed reads; matches the default seed ranges of a scenario."""
    if seed >= FIRST_TRAIN_SEED:
        return "train"
    return "validation" if seed >= FIRST_VALIDATION_SEED else "test"


def _known_mapping(name: str) -> str:
    if name not in mappings():
        raise ValueError(unknown("trace mapping", name, mappings()))
    return name


def _known_format(name: str) -> str:
    if name not in TRACE_FORMATS:
        raise ValueError(unknown("trace format", name, TRACE_FORMATS))
    return name


class TraceWorkload(BaseModel):
    """Rigid jobs with the trace's GPU counts and run times (on the class's fastest configuration of that size).

    Their class is `job_class`, or that of their kind (model, application) in `by_kind`, or one that a shipped `mapping`
    draws from GPU count and run time (see `workload.mapping`; the scenario then has the mapping's classes). Jobs of a format that
    states no run time have the trace's steps as work, in their class's unit, or the work that `kind_work` gives their kind.
    A declared time limit is what users estimate, a recorded weight the job's weight. Recorded outcomes stay in the trace:
    a job runs for as long as it ran, whether it completed, failed or was cancelled then.

    `window: seeded` takes `window_h` hours that begin at a multiple of `start_step_h` after midnight and lie within
    consecutive days of the seed's split (see `split_of`; all days of the trace without `splits`). `window: all` takes
    the whole trace, time 0 at its first submit. Jobs that were already running at a window's start are not included: a
    window starts on an empty cluster. Of more than `max_jobs` jobs a random sample is kept, with its submit times.
    Jobs longer than `max_duration_h` are cut to it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["trace"] = "trace"
    format: Annotated[str, AfterValidator(_known_format)]
    path: str = Field(description="`shared:` and a path in the shared data folder, or a path in the scenario's folder")
    job_class: str | None = None
    by_kind: dict[str, str] | None = Field(default=None, min_length=1, description="kind in the trace -> class")
    mapping: Annotated[str, AfterValidator(_known_mapping)] | None = None
    mapping_seed: int = Field(default=0, ge=0)
    kind_work: dict[str, Annotated[float, Field(ge=0.0, allow_inf_nan=False)]] = Field(
        default_factory=dict, description="kind -> work of its jobs, in their class's unit, where the trace states none"
    )
    window: Literal["seeded", "all"] = "seeded"
    window_h: float = Field(default=24.0, gt=0.0, allow_inf_nan=False)
    start_step_h: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    splits: Splits | None = None
    max_jobs: int | None = Field(default=None, gt=0)
    max_duration_h: float | None = Field(default=None, gt=0.0)
    preemptible: bool = True

    @model_validator(mode="after")
    def _one_source_of_classes(self) -> "TraceWorkload":
        stated = [name for name in ("job_class", "by_kind", "mapping") if getattr(self, name) is not None]
        if len(stated) != 1:
            raise ValueError(f"give one of job_class, by_kind and mapping (got {', '.join(stated) or 'none'})")
        return self

    def draw(self, rng: np.random.Generator, context: WorkloadContext) -> NDArray[np.void]:
        """REQUEST rows in job-id order; rows that fit nowhere are marked rejected.

        Raises:
            TraceError: the file cannot be found or read.
            ScenarioError: an unknown class, or days that hold no window.
        """
        self._check_classes(context)
        trace = self.load(context.folder)
        start_s, length_s = self._window(trace, split_of(context.seed), rng)
        first, last = np.searchsorted(trace.rows["submit_s"], [start_s, start_s + min(length_s, context.horizon_s)])
        chosen = np.arange(first, last)
        if self.max_jobs is not None and chosen.size > self.max_jobs:
            chosen = chosen[np.sort(rng.choice(chosen.size, self.max_jobs, replace=False, shuffle=False))]
        return self._requests(trace, chosen, start_s, context)

    def load(self, folder: Path | None) -> Trace:
        """The whole trace, read once per file and process."""
        try:
            path = resolve(self.path, folder)
        except TraceError as error:
            raise TraceError(f"workload.path: {error}") from None
        files = [path, *path.iterdir()] if path.is_dir() else [path]
        return _load(self.format, path, max(file.stat().st_mtime_ns for file in files))

    def _check_classes(self, context: WorkloadContext) -> None:
        """ScenarioError if a named class is not the scenario's."""
        named = {f"by_kind.{kind}": name for kind, name in (self.by_kind or {}).items()}
        if self.job_class is not None:
            named["job_class"] = self.job_class
        for where, name in named.items():
            if name not in context.classes:
                raise ScenarioError(f"workload.{where}: {unknown('job class', name, context.classes)}")

    def _window(self, trace: Trace, split: Split, rng: np.random.Generator) -> tuple[float, float]:
        """Start and length of the episode's window, s since the trace's origin."""
        if self.window == "all":
            return float(trace.rows["submit_s"][0]), np.inf
        days = None if self.splits is None else getattr(self.splits, split)
        starts_s = window_starts_s(trace, days, self.window_h, self.start_step_h, f"workload.splits.{split}")
        return float(starts_s[rng.integers(starts_s.size)]), self.window_h * HOUR_S

    def _requests(
        self, trace: Trace, chosen: NDArray[np.int64], start_s: float, context: WorkloadContext
    ) -> NDArray[np.void]:
        rows = trace.rows[chosen]
        longest_s = np.inf if self.max_duration_h is None else self.max_duration_h * HOUR_S
        duration_s = np.minimum(rows["duration_s"], longest_s)
        stated = self._stated_work(trace, rows)
        made = new_requests(rows.size)
        made["submit_s"], made["weight"] = rows["submit_s"] - start_s, rows["weight"]
        made["min_gpus"] = made["max_gpus"] = rows["gpus"]
        made["preemptible"] = self.preemptible
        class_of = self._classes_of(trace, chosen)
        for name in np.unique(class_of).tolist():
            mine = np.flatnonzero(class_of == name)
            job_class, config = list(context.classes).index(name), context.classes[name]
            pools = pool_mask(config.pools, f"classes.{name}", context)
            sizes, which = np.unique(rows["gpus"][mine], return_inverse=True)
            rates = np.array([context.reference_rate(job_class, int(size), int(size), pools) for size in sizes], np.float64)
            rate = np.where(rates > 0, rates, 1.0)[which]
            made["job_class"][mine], made["pools"][mine] = job_class, pools
            made["work"][mine] = np.where(np.isnan(duration_s[mine]), stated[mine], duration_s[mine] * rate)
            made["believed_work"][mine] = np.nan_to_num(rows["limit_s"][mine]) * rate
            made["rejected"][mine] = (rates <= 0)[which]
            made["checkpoint_interval"][mine] = NEVER if config.checkpoint_interval is None else config.checkpoint_interval
        return made

    def _classes_of(self, trace: Trace, chosen: NDArray[np.int64]) -> NDArray[np.str_]:
        """Names of the chosen jobs' classes."""
        if self.mapping is not None:
            return _mapped(trace, self.mapping, self.mapping_seed)[chosen]
        kinds = np.unique(trace.rows["kind"][chosen])
        names = dict.fromkeys(kinds.tolist(), str(self.job_class))
        for kind in kinds.tolist() if self.by_kind is not None else []:
            if trace.kinds[kind] not in (self.by_kind or {}):
                raise ScenarioError(f"workload.by_kind: {unknown('kind', trace.kinds[kind], self.by_kind or {})}; give it a class")
            names[kind] = (self.by_kind or {})[trace.kinds[kind]]
        return np.array([names[kind] for kind in trace.rows["kind"][chosen].tolist()], np.str_)

    def _stated_work(self, trace: Trace, rows: NDArray[np.void]) -> NDArray[np.float64]:
        """Work of each row where the trace states no run time, NaN elsewhere; ScenarioError where none is stated at all."""
        of_kind = np.array([self.kind_work.get(kind, np.nan) for kind in trace.kinds], np.float64)[rows["kind"]]
        work = np.where(np.isfinite(of_kind), of_kind, rows["steps"])
        lost = np.flatnonzero(np.isnan(rows["duration_s"]) & np.isnan(work))
        if lost.size:
            kind = trace.kinds[rows["kind"][lost[0]]]
            raise ScenarioError(
                f"workload.kind_work: {self.format} states neither run time nor work of kind {kind!r}; give its work here"
            )
        return np.where(np.isnan(rows["duration_s"]), work, np.nan)


@lru_cache(maxsize=64)
def window_starts_s(
    trace: Trace, days: tuple[date, ...] | None, window_h: float, step_h: float, where: str
) -> NDArray[np.float64]:
    """All starts of windows within consecutive `days` (None: all of the trace), s since the trace's origin."""
    number = np.unique((trace.rows["submit_s"] // DAY_S).astype(np.int64))
    if days is not None:
        if np.isnat(trace.origin):
            raise ScenarioError(f"{where}: the trace's times are relative and belong to no date; leave splits out")
        chosen = np.array(sorted(days), "datetime64[D]")
        absent = [day for day in chosen if day not in trace.days]
        if absent:
            raise ScenarioError(f"{where}: the trace has no job on {absent[0]}")
        number = (chosen - trace.origin.astype("datetime64[D]")).astype(np.int64)
    runs = np.split(number, np.flatnonzero(np.diff(number) > 1) + 1)
    starts_s = np.concatenate(
        [np.arange(run[0] * DAY_S, (run[-1] + 1) * DAY_S - window_h * HOUR_S + 1e-6, step_h * HOUR_S) for run in runs]
    )
    if not starts_s.size:
        raise ScenarioError(f"{where}: no run of days holds a window of {window_h} h")
    starts_s.flags.writeable = False
    return starts_s


@lru_cache(maxsize=8)
def _load(format: str, path: Path, modified_ns: int) -> Trace:
    return load_jobs(format, path)


@lru_cache(maxsize=8)
def _mapped(trace: Trace, mapping: str, seed: int) -> NDArray[np.str_]:
    return assign(mapping, trace.rows["gpus"], trace.rows["duration_s"], seed)

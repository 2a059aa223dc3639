"""Phases of a job (RLHF: generate, score, train; batch growth; evaluation pauses) as classes that follow each other.

A phased class is compiled as one class per phase. A job's work counts in cycles; where its work passes a border between
two phases a JOB_PHASE row fires, and the job goes on in the next class: on the same GPUs, with that phase's fastest plan
for them (resharding inside a job's own GPUs takes seconds: HybridFlow, EuroSys 2025), until it is moved.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hetenv.configurations import NO_CONFIG, Configurations
from hetenv.events.stream import Effect, EventClock, empty_rows, rows
from hetenv.workload.job_class import JobClass, PhasedClass, PlainClass

PHASE_SOURCE = "phases"
"""Source name of the rows of `borders`."""


def flatten(classes: Mapping[str, JobClass]) -> dict[str, PlainClass]:
    """Classes in index order, each phase a class: the first under its phased class's name, others as `name/phase`."""
    flat: dict[str, PlainClass] = {}
    for name, job_class in classes.items():
        if isinstance(job_class, PhasedClass):
            for index, phase in enumerate(job_class.phases):
                flat[f"{name}/{phase.name}" if index else name] = phase.runs
        else:
            flat[name] = job_class
    return flat


def link(configurations: Configurations, classes: Mapping[str, JobClass]) -> None:
    """Write what makes phases of compiled classes: units of work, what follows, and each row's continuation."""
    for name, job_class in classes.items():
        if not isinstance(job_class, PhasedClass):
            continue
        first, n = configurations.class_names.index(name), len(job_class.phases)
        ends = _ends(job_class)
        for index, phase in enumerate(job_class.phases):
            row = configurations.classes[first + index]
            row["next_class"] = first + (index + 1) % n
            row["best_rate"] /= phase.per_work
            row["cycle_work"] = job_class.cycle_work
            row["phase_begin"], row["phase_end"] = ([0.0, *ends][index], ends[index])
            own = configurations.rows_of(first + index)
            for column in ("rate", "work_per_step", "save_every"):
                own[column] /= phase.per_work
            own["energy_per_work_j"] *= phase.per_work
        for index in range(n):
            following = int(configurations.classes[first + index]["next_class"])
            _continue(configurations.rows_of(first + index), configurations, following)
        configurations.cycles[first] = tuple((first + index, share) for index, share in enumerate(_shares(job_class)))


def _shares(job_class: PhasedClass) -> list[float]:
    """What part of a cycle's work each phase is."""
    total = sum(phase.share for phase in job_class.phases)
    return [phase.share / total for phase in job_class.phases]


def _ends(job_class: PhasedClass) -> list[float]:
    """Work within a cycle at which each phase ends."""
    ends = np.cumsum(_shares(job_class)) * job_class.cycle_work
    return [*ends.tolist()[:-1], job_class.cycle_work]


def _continue(own: NDArray[np.void], configurations: Configurations, following: int) -> None:
    """Write next_config of a class's rows: the fastest row of the class that follows on the same GPUs."""
    base = int(configurations.classes[following]["first_config"])
    others = configurations.rows_of(following)
    where = ("pool_a", "pool_b", "gpus_a", "gpus_b")
    for row in own:
        same = np.flatnonzero(np.all([others[column] == row[column] for column in where], axis=0))
        row["next_config"] = base + same[np.argmax(others["rate"][same])] if same.size else NO_CONFIG


def borders(requests: NDArray[np.void], configurations: Configurations, classes: Mapping[str, JobClass]) -> NDArray[np.void]:
    """JOB_PHASE rows at each border below each request's work. Dtype EVENT; no order."""
    found = [empty_rows()]
    for name, job_class in classes.items():
        if not isinstance(job_class, PhasedClass):
            continue
        ends = np.array(_ends(job_class))
        for job in np.flatnonzero(requests["job_class"] == configurations.class_names.index(name)):
            work = float(requests["work"][job])
            cycles = np.arange(int(np.ceil(work / job_class.cycle_work)))[:, None] * job_class.cycle_work
            at = (cycles + ends).ravel()
            found.append(rows(Effect.JOB_PHASE, at[at < work], job, 0.0, EventClock.JOB_WORK))
    return np.concatenate(found)

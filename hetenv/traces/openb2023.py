"""Alibaba's OpenB trace (GPU v2023; Weng et al., ATC 2023): pods and nodes, told apart by their columns.

Seconds from the trace's start. A pod asks for num_gpu GPUs, or for gpu_milli thousandths of one (sharing): its demand is
num_gpu x gpu_milli / 1000. A Pending pod was never scheduled and is dropped. deletion_time is also filled for pods that
still ran when the observation ended: pod_phase Running is a life that was cut, not a completion. `gpu_spec` lists
alternatives (`A|B`), maybe twice. Files without times (multigpu) hold pods of unknown run time, all submitted at 0.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np

from hetenv.errors import TraceError
from hetenv.traces import csv_file, nodes, statistics
from hetenv.traces.csv_file import CsvFile
from hetenv.traces.job_file import JobFile, beside, files_of
from hetenv.traces.job_file import trace as trace_of
from hetenv.traces.nodes import NodeTable, SideTable, together
from hetenv.traces.trace import UNTYPED, Outcome, Trace
from hetenv.units import HOUR_S, KILO

TIMES: Final = ("creation_time", "deletion_time", "scheduled_time")
POD: Final = ("num_gpu", "gpu_milli")
POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", *POD, "gpu_spec", "qos", "pod_phase", *TIMES)
NODE: Final = ("sn", "gpu", "model")
UNITS: Final = {"creation_time": "s", "gpu_milli": "GPU / 1000", "cpu_milli": "CPU / 1000", "memory_mib": "MiB"}
OUTCOMES: Final = {
    "succeeded": Outcome.COMPLETED,
    "failed": Outcome.FAILED,
    "running": Outcome.RUNNING,
    "pending": Outcome.UNKNOWN,
}
DEFINITIONS: Final = {
    "gpus": "num_gpu*gpu_milli/1000",
    "run_s": "deletion_time-scheduled_time (rows with scheduled_time)",
    "life_s": "deletion_time-creation_time",
    "wait_s": "scheduled_time-creation_time",
}


def load(path: Path) -> Trace | SideTable:
    """The pods of a file, or of a folder with its nodes; the nodes alone where there are no pods.

    Raises:
        TraceError: nothing there, unreadable, columns of neither table, or no usable row.
    """
    pods: list[JobFile] = []
    sides: list[SideTable] = []
    for file in files_of(path, lambda name: name.endswith(".csv"), ".csv file"):
        table = csv_file.read(file, ())
        if set(NODE) <= set(table.columns):
            sides.append(_nodes(file, table))
        elif set(POD) <= set(table.columns):
            pods.append(_pods(file, table))
        else:
            raise TraceError(f"{file}: neither pods (column {POD[0]!r}) nor nodes (columns {', '.join(NODE)})")
    if not pods:
        return together(sides)
    return beside(trace_of("openb2023", path, pods, "seconds since the trace's start", UNITS), sides)


def _demand(table: CsvFile) -> Any:
    milli = table.number("gpu_milli")
    return table.number("num_gpu") * np.where(np.isfinite(milli) & (milli > 0), milli, KILO) / KILO


def _pods(path: Path, table: CsvFile) -> JobFile:
    found = JobFile.of(path, table, POD_COLUMNS)
    has_times = "creation_time" in table.cells
    created = table.number("creation_time") if has_times else np.zeros(table.lines.size)
    found.ids = table.text("name") if "name" in table.cells else None
    found.submitted(created, "creation_time")
    found.asks(_demand(table), "num_gpu x gpu_milli")
    found.ended(table.text("pod_phase"), OUTCOMES)
    if has_times:
        found.drop(np.char.lower(table.text("pod_phase")) == "pending", "Pending: never scheduled")
        found.ran(table.number("scheduled_time"), table.number("deletion_time"))
        found.note(found.columns["outcome"] == Outcome.RUNNING, "still running at the end of the observation: run time cut there")
    else:
        found.note(found.kept, "no times in the file: submitted at 0, run time unknown")
    specs = ["|".join(sorted(set(cell.split("|")))) for cell in table.text("gpu_spec").tolist()]
    found.labels["gpu_type"] = np.array([spec or UNTYPED for spec in specs], np.str_)
    found.labels["group"] = table.text("qos")
    found.statistics = _pod_statistics(table)
    return found


def _pod_statistics(table: CsvFile) -> dict[str, Any]:
    gpus, phase, spec, demand = table.number("num_gpu"), table.text("pod_phase"), table.text("gpu_spec"), _demand(table)
    created, deleted, scheduled = (table.number(name) for name in TIMES)
    run_s, has_gpus = deleted - scheduled, gpus > 0
    return {
        "rows": table.lines.size,
        "columns": list(table.columns),
        "n_zero_gpu": int((gpus == 0).sum()),
        "n_gpu_pods": int(has_gpus.sum()),
        "n_fractional": int((has_gpus & (table.number("gpu_milli") < KILO)).sum()),
        "num_gpu_hist": statistics.counts(gpus),
        "pod_phase": statistics.counts(phase),
        "qos": statistics.counts(table.text("qos")),
        "failed_share": statistics.share(phase == "Failed"),
        "n_missing": statistics.missing(table.cells, table.columns),
        "gpu_spec_hist": statistics.counts(spec),
        "n_spec_constrained": int((spec != "").sum()),
        "definitions": DEFINITIONS,
        "creation_min": int(np.nanmin(created, initial=np.inf)) if np.isfinite(created).any() else None,
        "creation_max": int(np.nanmax(created, initial=0.0)),
        "sorted_by_creation": statistics.is_sorted(created),
        "run_s": statistics.describe(run_s),
        "life_s": statistics.describe(deleted - created),
        "wait_s": statistics.describe(scheduled - created),
        "n_zero_run": int((run_s == 0).sum()),
        "n_negative_run": int((run_s < 0).sum()),
        "run_s_gpu_pods": statistics.describe(run_s[has_gpus]),
        "lognormal_run": statistics.lognormal(run_s),
        "sum_gpus_requested": statistics.rounded(np.nansum(demand)),
        "total_gpu_hours": statistics.rounded(np.nansum(demand * run_s) / HOUR_S),
        "interarrival": statistics.interarrival(created),
    }


def _nodes(path: Path, table: CsvFile) -> NodeTable:
    gpus, models = table.number("gpu"), table.text("model")
    n_nodes, n_gpus = nodes.by_type(models, gpus)
    found: dict[str, Any] = {
        "rows": table.lines.size,
        "columns": list(table.columns),
        "total_gpus": int(np.nansum(gpus)),
        "gpu_per_node_hist": statistics.counts(gpus),
        "nodes_by_model": n_nodes,
        "gpus_by_model": n_gpus,
        "total_cpu_milli": int(np.nansum(table.number("cpu_milli"))),
        "total_memory_mib": int(np.nansum(table.number("memory_mib"))),
    }
    return nodes.node_table("openb2023", path, models.tolist(), gpus, found, {"gpu": "GPUs"})

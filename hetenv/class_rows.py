"""The CLASS table, and the columns of CONFIG that follow from a class's settings and not from its physics."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv import catalog
from hetenv.cluster import NO_POOL, Cluster
from hetenv.perf.reconfigure import OPTIMIZER_BYTES, WEIGHT_BYTES
from hetenv.units import GIGA, HOUR_S
from hetenv.workload.job_class import AnalyticClass, PlainClass

CLASS = np.dtype(
    [
        ("first_start_s", "f8"),  # held before the first step of a job's first start
        ("restart_s", "f8"),  # fixed part of every later start; save_s and load_s come on top
        ("best_rate", "f8"),  # of all rows, work/s
        ("pause_s", "f8"),  # what a periodic checkpoint stops the job for
        ("persist_s", "f8"),  # what it takes after that until it is durable, the job stepping
        ("degrade_s", "f8"),  # overhead of going on smaller after a failure
        ("first_config", "i4"),  # rows [first_config, last_config)
        ("last_config", "i4"),
        ("state_bytes", "f8"),  # what moves with a job to another site, data set apart
        ("data_bytes", "f8"),  # of its data set
        ("commit_s", "f8"),  # fixed part of a live change
        ("exposed", "f8"),  # share of a live change's transfer for which the job stops, 0..1
        ("first_move", "i4"),  # in Configurations.moves; NO_MOVES: changes are restarts
        ("cycle_work", "f8"),  # of a phase: work of a cycle (0: no phase), and where in it the phase lies
        ("phase_begin", "f8"),
        ("phase_end", "f8"),
        ("next_class", "i4"),  # the phase that follows, or NO_CLASS
        ("degrades", "i1"),  # 1: goes on smaller where a replica is lost
    ],
    align=True,
)

NO_CLASS: Final = -1
NO_MOVES: Final = -1
LINK_PARTS: Final = 1000
"""Of a node's links in which demands are counted."""


def state_bytes(job_class: PlainClass) -> float:
    """Weights and optimizer states of a job."""
    if not isinstance(job_class, AnalyticClass):
        return job_class.state_gbytes * GIGA
    return catalog.model(job_class.model).n_params * (WEIGHT_BYTES + OPTIMIZER_BYTES)


def plan_checkpoints(rows: NDArray[np.void], job_class: PlainClass, cluster: Cluster) -> None:
    """Write `survives`, and `save_every` at Young and Daly's interval sqrt(2 x pause x MTBF of the job's nodes) (FGCS 22, 2006)."""
    if not isinstance(job_class, AnalyticClass):
        rows["survives"] = rows["n_gpus"] > 1
    if job_class.checkpoint_mtbf_h is not None:
        in_b = np.where(rows["pool_b"] == NO_POOL, 0, rows["gpus_b"])
        nodes = np.ceil(rows["gpus_a"] / cluster.gpus_per_node[rows["pool_a"]])
        nodes += np.ceil(in_b / cluster.gpus_per_node[rows["pool_b"]])
        seconds = np.sqrt(2.0 * job_class.checkpoint_pause_s * job_class.checkpoint_mtbf_h * HOUR_S / nodes)
        rows["save_every"] = seconds * rows["rate"]


def ask_network(rows: NDArray[np.void], cluster: Cluster) -> None:
    """Write demand_a and demand_b: the share of the step in which rows over several nodes use their nodes' links."""
    busy = np.minimum(1.0, rows["inter_s"] * rows["rate"] / rows["work_per_step"])
    two = rows["pool_b"] != NO_POOL
    for part in ("a", "b"):
        nodes = np.ceil(rows[f"gpus_{part}"] / cluster.gpus_per_node[rows[f"pool_{part}"]])
        demand = np.round(LINK_PARTS * nodes * busy)
        rows[f"demand_{part}"] = np.where(two | (nodes > 1), demand, 0) if part == "a" else np.where(two, demand, 0)


def class_row(job_class: PlainClass, rows: NDArray[np.void], first: int) -> NDArray[np.void]:
    """[1] the CLASS row of a class whose CONFIG rows begin at `first`."""
    row = np.zeros(1, CLASS)
    row["first_start_s"], row["restart_s"] = job_class.first_start_s, job_class.restart_s
    row["best_rate"], row["first_config"], row["last_config"] = rows["rate"].max(), first, first + rows.size
    row["pause_s"], row["persist_s"] = job_class.checkpoint_pause_s, job_class.checkpoint_persist_s
    row["state_bytes"], row["data_bytes"] = state_bytes(job_class), job_class.data_gbytes * GIGA
    row["first_move"], row["commit_s"], row["exposed"] = NO_MOVES, job_class.live_commit_s, 1.0 - job_class.live_overlap
    row["degrades"], row["degrade_s"], row["next_class"] = job_class.degrades, job_class.degrade_s, NO_CLASS
    return row

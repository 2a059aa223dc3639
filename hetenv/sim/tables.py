"""The state of a batch of simulations: one structured table per entity, batch axis first. Nothing else changes.

Axes: B environments, J requests, R running slots, N nodes, P pools, S sites, G allocations, O window orders, C configurations,
K classes, F footprints.
Missing links and indices are NONE.
"""

from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hetenv.objective import N_ACCOUNTS

Rows: TypeAlias = Any
"""A structured table, a slice or a single row of one: what kernels take. (Type checkers cannot see into records.)"""
NONE: Final = -1
UNBOUNDED: Final = 32_767
DELTA: Final = 0
"""Row of the ledger: since the last decision."""
TOTAL: Final = 1
"""Row of the ledger: in the measured window so far."""


class JobState(IntEnum):
    FUTURE = 0
    QUEUED = 1
    RUNNING = 2
    FINISHED = 3
    CRASHED = 4
    CANCELLED = 5
    REJECTED = 6


class Without(IntEnum):
    """Bits: commands that a scenario takes away."""

    REPLAN = 1
    RESIZE = 2
    MIGRATE = 4
    PREEMPT = 8
    WAIT = 16
    DEGRADE = 32


class Status(IntEnum):
    """Of an episode."""

    OPEN = 0
    TERMINATED = 1
    TRUNCATED = 2


JOB = np.dtype(
    [
        ("work", "f8"),  # done, as of the slot's `since` while running
        ("durable", "f8"),  # what survives an eviction
        ("first_start_s", "f8"),  # inf before
        ("end_s", "f8"),  # finished, crashed, cancelled or rejected; inf before
        ("held_gpu_s", "f8"),  # attained service, as of `since`
        ("config", "i4"),  # present configuration; QUEUED: the one whose save is still to be paid, or NONE
        ("run", "i4"),  # running slot or NONE
        ("next_event", "i4"),  # first JOB_WORK row that has not fired
        ("instant", "i4"),  # instant of the last command
        ("n_starts", "i2"),
        ("most_gpus", "i2"),  # by JOB_RANGE; UNBOUNDED before
        ("state", "i1"),  # JobState
        ("is_withdrawn", "i1"),  # cancelled before its submit
        ("phase", "i1"),  # its present class minus the request's
        ("site", "i1"),  # where its state is; before the first start its data set (NONE: everywhere)
    ]
)
"""[B, J], 64 bytes."""

RUN = np.dtype(
    [
        ("until", "f8"),  # next own instant: end of overhead or pause, of a save, or `reach_s`
        ("reach_s", "f8"),  # when its work reaches the next threshold, save or completion
        ("since", "f8"),  # the job's work is settled up to here
        ("rate", "f8"),  # work/s while stepping
        ("ready_s", "f8"),  # end of the overhead or pause
        ("volatile_gpu_s", "f8"),  # productive time since the last durable point
        ("next_save", "f8"),  # work at which the next paid checkpoint begins (inf: checkpoints are free, or none)
        ("saved_s", "f8"),  # when the save under way is durable (inf: none is)
        ("saving_work", "f8"),  # the work at which it began
        ("saving_gpu_s", "f8"),  # volatile_gpu_s then
        ("wake_s", "f8"),  # what its nodes took to wake when it was placed
        ("pools", "i8"),  # bit p set: it holds GPUs of pool p
        ("order", "i4"),  # job id
        ("tie", "i4"),  # among equal `until`: job id; clock one_by_one: number of its start
        ("heap", "i4"),  # place in the heap
        ("alloc", "i4"),  # first allocation
        ("previous", "i4"),  # running jobs in order of their (re)starts
        ("next", "i4"),  # also links the free slots
        ("is_stepping", "i1"),  # 0 while in overhead or pause
        ("is_spread", "i1"),
    ],
    align=True,
)
"""[B, R]."""

END = np.dtype(
    [
        ("believed_s", "f8"),  # when the work believed left would be done at the present rate, as of the last change of it
        ("per_weight", "f8"),  # 1 / weight of the request
        ("job", "i4"),  # that may be preempted, or NONE
        ("instant", "i4"),  # of its last command
    ]
)
"""[B, R], 24 bytes: what is asked of all running jobs at once."""

NODE = np.dtype(
    [
        ("until", "f8"),  # next own instant: end of repair or of a hazard budget
        ("busy_s", "f8"),  # as of busy_since
        ("busy_since", "f8"),
        ("idle_since", "f8"),  # while up and empty
        ("speed", "f8"),  # factor on compute
        ("leaves_s", "f8"),  # announced time of its leaving (inf: none)
        ("tie", "i4"),  # among equal `until`: node index
        ("heap", "i4"),
        ("alloc", "i4"),  # first allocation on this node
        ("next_event", "i4"),  # first NODE_BUSY row that has not fired
        ("pool", "i4"),
        ("free", "i4"),  # GPUs not allocated (0 while down)
        ("free_cpus", "i4"),
        ("free_mbytes", "i4"),
        ("is_up", "i1"),
        ("is_asleep", "i1"),
    ],
    align=True,
)
"""[B, N]."""

POOL = np.dtype(
    [
        ("power_w", "f8"),  # IT power now
        ("intra_factor", "f8"),  # on the bandwidth inside nodes
        ("inter_factor", "f8"),  # between nodes
        ("idle_w", "f8"),  # of a GPU
        ("overhead_w", "f8"),  # of a node
        ("rent_usd_per_gpu_s", "f8"),
        ("level", "f8"),  # most that one job gets of what joins the nodes, in LINK_PARTS (inf: all get what they ask)
        ("links", "i8"),  # what joins the nodes carries, in LINK_PARTS
        ("demand", "i8"),  # of stepping jobs together
        ("sleep_after_s", "f8"),  # inf: never
        ("sleep_w", "f8"),
        ("wake_s", "f8"),
        ("free_gpus", "i4"),
        ("up_gpus", "i4"),
        ("held_gpus", "i4"),
        ("leaving_gpus", "i4"),  # of nodes announced to leave
        ("site", "i4"),
        ("first_node", "i4"),
        ("n_nodes", "i4"),
        ("gpus_per_node", "i4"),
        ("cpus_per_node", "i4"),
        ("mbytes_per_node", "i4"),
        ("first_count", "i4"),  # of its gpus_per_node + 1 rows in free_counts
        ("first_word", "i4"),  # of its gpus_per_node + 1 bit sets in free_bits
        ("words", "i4"),  # of one of these bit sets
        ("is_stale", "i1"),  # level must be found anew
    ],
    align=True,
)
"""[B, P]."""

SITE = np.dtype(
    [
        ("it_w", "f8"),  # sum over its pools, uncapped
        ("dynamic_w", "f8"),  # what stepping jobs draw of it beyond their GPUs' idle power
        ("power_factor", "f8"),  # on dynamic_w and on speed, under a cap
        ("pue", "f8"),  # at the present temperature
        ("renewable_w", "f8"),
        ("carbon_kg_per_j", "f8"),
        ("marginal_kg_per_j", "f8"),
        ("price_usd_per_j", "f8"),
        ("temperature_c", "f8"),
        ("cap_w", "f8"),
        ("grid_limit_w", "f8"),
        ("base_pue", "f8"),
        ("pue_per_c", "f8"),
        ("cooling_from_c", "f8"),
        ("charge_j", "f8"),  # of the battery
        ("capacity_j", "f8"),  # 0: no battery
        ("charge_w", "f8"),
        ("discharge_w", "f8"),
        ("efficiency", "f8"),
        ("discharge_from", "f8"),  # USD/J
        ("export_limit_w", "f8"),
        ("export_usd_per_j", "f8"),
        ("peak_w", "f8"),  # highest grid power so far
        ("demand_usd_per_w", "f8"),
        ("is_stale", "i1"),  # power_factor must be found anew
    ],
    align=True,
)
"""[B, S]."""

ALLOC = np.dtype(
    [
        ("run", "i4"),
        ("node", "i4"),
        ("gpus", "i4"),
        ("next_of_run", "i4"),  # also links the free rows
        ("next_of_node", "i4"),
    ],
    align=True,
)
"""[B, G]: one row per (running job, node)."""

CLOCK = np.dtype(
    [
        ("now", "f8"),
        ("forced_s", "f8"),  # next decision by max_interval_s, round_s or a wake-up; inf
        ("weight_in_system", "f8"),
        ("weight_queued", "f8"),
        ("round", "i8"),
        ("decisions", "i8"),
        ("world", "i4"),  # row of the world tables
        ("n_requests", "i4"),
        ("n_wall", "i4"),
        ("next_request", "i4"),
        ("next_wall", "i4"),
        ("n_queued", "i4"),
        ("n_running", "i4"),
        ("held_gpus", "i4"),
        ("overhead_gpus", "i4"),
        ("up_gpus", "i4"),
        ("instant", "i4"),
        ("n_starts", "i4"),  # from the queue, so far
        ("commands_left", "i4"),
        ("first_run", "i4"),
        ("last_run", "i4"),
        ("free_run", "i4"),
        ("free_alloc", "i4"),
        ("n_run_heap", "i4"),
        ("n_node_heap", "i4"),
        ("status", "i1"),  # Status
        ("is_measuring", "i1"),
        ("is_stale", "i1"),  # some site or pool is
    ],
    align=True,
)
"""[B]."""

RULES = np.dtype(
    [
        ("limit_s", "f8"),
        ("max_interval_s", "f8"),  # inf: none
        ("round_s", "f8"),  # 0: event clock
        ("measure_from_s", "f8"),
        ("measure_to_s", "f8"),
        ("warm_until_s", "f8"),
        ("max_commands", "i4"),
        ("one_by_one", "i1"),
        ("without", "i1"),  # bits of Without
    ],
    align=True,
)
"""[1]: the scenario's clock, window and limits."""


class State(NamedTuple):
    """Everything that changes in a batch."""

    clock: NDArray[np.void]
    jobs: NDArray[np.void]
    runs: NDArray[np.void]
    ends: NDArray[np.void]
    nodes: NDArray[np.void]
    pools: NDArray[np.void]
    sites: NDArray[np.void]
    allocs: NDArray[np.void]
    free_bits: NDArray[np.int64]
    """[B, words] per pool and k = 0..gpus_per_node: which up nodes have exactly k free GPUs."""
    free_counts: NDArray[np.int32]
    """[B, counts] per pool and k: how many up nodes have at least k free GPUs."""
    queue_bits: NDArray[np.int64]
    """[B, O, words] which requests are queued, by place in each window order."""
    run_heap: NDArray[np.int32]
    """[B, R]."""
    node_heap: NDArray[np.int32]
    """[B, N]."""
    backlog: NDArray[np.int32]
    """[B, N_BACKLOG_BINS] queued jobs per bin."""
    ledger: NDArray[np.float64]
    """[B, 2, N_ACCOUNTS] rows DELTA and TOTAL."""


class Facts(NamedTuple):
    """Everything that does not change in an episode. W worlds; CLOCK.world picks the row."""

    requests: NDArray[np.void]
    """[W, J]."""
    events: NDArray[np.void]
    """[W, E]."""
    ranks: NDArray[np.int32]
    """[W, O, J]."""
    ranked: NDArray[np.int32]
    """[W, O, J] request at each place: the inverse of ranks."""
    node_event: NDArray[np.int32]
    """[W, N + 1]."""
    configs: NDArray[np.void]
    """[C]."""
    sizes: NDArray[np.void]
    """[C] where each configuration fits."""
    footprint: NDArray[np.int16]
    """[C] which of the distinct footprints each configuration has."""
    footprints: NDArray[np.int32]
    """[F] a configuration of each distinct footprint."""
    fastest: NDArray[np.int32]
    """[C] configurations by class, first pool and rate, the fastest first."""
    first_fastest: NDArray[np.int32]
    """[K, P + 1] where those of a class and a pool begin."""
    classes: NDArray[np.void]
    """[K]."""
    wan: NDArray[np.void]
    """[S, S]."""
    moves: NDArray[np.float64]
    """Transfers of live changes (Configurations.moves)."""
    rules: NDArray[np.void]
    """[1]."""


LEDGER_SHAPE: Final = (2, N_ACCOUNTS)

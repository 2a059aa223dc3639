"""What an agent sees: fixed-shape float32 tables, finite and in [-1, 1] by construction.

Unbounded quantities x >= 0 are squashed to x / (x + scale), signed ones to x / (|x| + scale); the scales stand beside the names.
The fields below are the documentation of the observation; `layout` gives their places in the flat buffer.
"""

from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.beliefs import N_BACKLOG_BINS
from hetenv.env.candidates import NO_NOTICE_S, n_rows
from hetenv.jit import kernel
from hetenv.scenario import Compiled
from hetenv.sim.commands import Command
from hetenv.sim.power import site_power_w
from hetenv.sim.tables import Facts, Rows, State

ROW_FIELDS: Final = (
    "is_legal",
    "is_wait",
    "is_start",
    "is_change",
    "is_preempt",
    "is_running",
    "gpus",  # n_gpus, scale 8
    "gpus_change",  # signed, scale 8
    "speed",  # rate over the job's fastest
    "efficiency",  # work per GPU second over the class's best
    "advantage",  # scale 1
    "left",  # believed time left under this row, scale 1 h
    "best",  # at the job's fastest configuration, scale 1 h
    "present",  # in its present configuration, scale 1 h; 0 for queued jobs
    "gain",  # present - left, signed, scale 1 h; 0 for queued jobs
    "age",  # scale 1 h
    "attained",  # GPU hours, scale 8
    "change_share",  # cost of the change over (cost + time left)
    "weight",  # scale 1
    "slack",  # signed, scale 1 h
    "energy",  # kWh, scale 100
    "carbon",  # kg, scale 40
    "cost",  # USD, signed, scale 10
    "memory_margin",
    "free_share",  # of the pool
    "tier",  # over 4
    "notice",  # running: how soon a node it holds is announced to leave, 1 h / (1 h + time); none is: 0
    "leaving_share",  # of the pool's up GPUs, those announced to leave
    "phase",  # place in the class's cycle, signed, scale 4
    "waiting",  # preempt: least believed time over weight of a visible job in GPUs that include the freed, scale 1 h; none: 0
)
POOL_FIELDS: Final = (
    "free_share",  # of up GPUs
    "held_share",  # of nominal GPUs
    "up_share",  # of nominal GPUs
    "size_share",  # of the cluster's GPUs
    "intra_factor",  # scale 1
    "inter_factor",  # scale 1
    "leaving_share",  # of up GPUs, those announced to leave
    "contended",  # 1 - the most that one job gets of what joins the nodes, over all of it; 0: nobody is bounded
)
SITE_FIELDS: Final = (
    "renewable_share",  # of the site's power that its renewables cover now
    "surplus",  # renewable power not used over the site's power, scale 1
    "carbon",  # g/kWh, scale 400
    "price",  # USD/MWh, signed, scale 80
    "marginal_carbon",  # g/kWh, scale 400
    "power_factor",  # on dynamic power and speed, under a cap
    "temperature",  # deg C, signed, scale 20
    "charge",  # of the battery over its capacity; none: 0
)
CLUSTER_FIELDS: Final = (
    "day_sin",  # of the time of day
    "day_cos",
    "progress",  # of the horizon
    "queued",  # jobs, scale 16
    "running",  # jobs, scale 16
    "beyond_window",  # queued jobs that are not visible, scale 16
    "weight_in_system",  # scale 16
    "commands_left",  # of this instant, scale 8
)
BACKLOG_SCALE: Final = 4.0

N_ROW: Final = len(ROW_FIELDS)
N_POOL: Final = len(POOL_FIELDS)
N_SITE: Final = len(SITE_FIELDS)
N_CLUSTER: Final = len(CLUSTER_FIELDS)


@dataclass(frozen=True)
class Layout:
    """Shapes of the observation's parts, in the order in which they lie in the flat buffer."""

    parts: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def size(self) -> int:
        """D: length of the flat buffer."""
        return sum(prod(shape) for _, shape in self.parts)

    def views(self, flat: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """The parts as views into flat buffers [..., D], each [..., *shape]."""
        views, first = {}, 0
        for name, shape in self.parts:
            last = first + prod(shape)
            views[name] = flat[..., first:last].reshape(*flat.shape[:-1], *shape)
            first = last
        return views


def layout(compiled: Compiled) -> Layout:
    """The observation layout of a scenario."""
    cluster = compiled.cluster
    return Layout(
        (
            ("candidates", (n_rows(compiled.scenario.candidates), N_ROW)),
            ("pools", (len(cluster.pool_names), N_POOL)),
            ("sites", (len(cluster.site_names), N_SITE)),
            ("backlog", (N_BACKLOG_BINS,)),
            ("cluster", (N_CLUSTER,)),
        )
    )


@kernel
def _squash(x: float, scale: float) -> float:
    """x / (|x| + scale): in (-1, 1), monotone, 0 at 0."""
    wide = np.float64(x)  # plain numpy would divide a narrow column in its own precision
    return wide / (abs(wide) + scale)


@kernel
def observe(state: State, facts: Facts, b: int, table: Rows, out: NDArray[np.float32]) -> None:
    """Write the flat observation [D] of simulation b; every element is written."""
    for index in range(table.shape[0]):
        _row(table[index], out[index * N_ROW : (index + 1) * N_ROW])
    at = table.shape[0] * N_ROW
    for p in range(state.pools.shape[1]):
        _pool(state, b, p, out[at : at + N_POOL])
        at += N_POOL
    for s in range(state.sites.shape[1]):
        _site(state.sites[b, s], out[at : at + N_SITE])
        at += N_SITE
    for bin_index in range(state.backlog.shape[1]):
        out[at] = _squash(state.backlog[b, bin_index], BACKLOG_SCALE)
        at += 1
    _cluster(state, facts, b, table, out[at : at + N_CLUSTER])


@kernel
def _row(row: Rows, out: NDArray[np.float32]) -> None:
    if row["is_legal"] == 0 or row["command"] == Command.WAIT:
        for k in range(N_ROW):
            out[k] = 0.0
        if row["is_legal"] == 1:
            out[0] = out[1] = 1.0
        return
    command = row["command"]
    out[0], out[1] = 1.0, 0.0
    out[2] = 1.0 if command == Command.START else 0.0
    out[3] = 1.0 if command == Command.CHANGE else 0.0
    out[4] = 1.0 if command == Command.PREEMPT else 0.0
    out[5] = row["is_running"]
    out[6] = _squash(row["n_gpus"], 8.0)
    out[7] = _squash(row["gpus_change"], 8.0)
    out[8], out[9] = row["speed"], row["efficiency"]
    out[10] = _squash(row["advantage"], 1.0)
    out[11] = _squash(row["left_s"], 3600.0)
    out[12] = _squash(row["best_s"], 3600.0)
    out[13] = _squash(row["present_s"], 3600.0)
    out[14] = _squash(row["present_s"] - row["left_s"], 3600.0) if row["is_running"] == 1 else 0.0
    out[15] = _squash(row["age_s"], 3600.0)
    out[16] = _squash(row["attained_gpu_s"], 8.0 * 3600.0)
    out[17] = row["change_s"] / np.float64(max(1e-9, row["change_s"] + row["best_s"]))
    out[18] = _squash(row["weight"], 1.0)
    out[19] = _squash(row["slack_s"], 3600.0)
    out[20] = _squash(row["energy_j"], 100.0 * 3.6e6)
    out[21] = _squash(row["carbon_kg"], 40.0)
    out[22] = _squash(row["cost_usd"], 10.0)
    out[23], out[24] = row["memory_margin"], row["free_share"]
    out[25] = row["tier"] / 4.0
    out[26] = 3600.0 / (3600.0 + np.float64(row["notice_s"])) if row["notice_s"] < NO_NOTICE_S else 0.0
    out[27] = row["leaving_share"]
    out[28] = _squash(row["phase"], 4.0)
    out[29] = _squash(row["waiting_s"], 3600.0)


@kernel
def _pool(state: State, b: int, p: int, out: NDArray[np.float32]) -> None:
    pool = state.pools[b, p]
    nominal = pool["n_nodes"] * pool["gpus_per_node"]
    total = 0
    for other in range(state.pools.shape[1]):
        total += state.pools[b, other]["n_nodes"] * state.pools[b, other]["gpus_per_node"]
    out[0] = pool["free_gpus"] / max(1, pool["up_gpus"])
    out[1], out[2], out[3] = pool["held_gpus"] / nominal, pool["up_gpus"] / nominal, nominal / total
    out[4], out[5] = _squash(pool["intra_factor"], 1.0), _squash(pool["inter_factor"], 1.0)
    out[6] = min(1.0, pool["leaving_gpus"] / max(1, pool["up_gpus"]))
    out[7] = 1.0 - min(1.0, pool["level"] / pool["links"])


@kernel
def _site(site: Rows, out: NDArray[np.float32]) -> None:
    power_w = site_power_w(site)
    used_w = min(power_w, site["renewable_w"])
    out[0] = used_w / max(power_w, 1e-9)
    out[1] = _squash((site["renewable_w"] - used_w) / max(power_w, 1.0), 1.0)
    out[2] = _squash(site["carbon_kg_per_j"] * 3.6e9, 400.0)
    out[3] = _squash(site["price_usd_per_j"] * 3.6e9, 80.0)
    out[4] = _squash(site["marginal_kg_per_j"] * 3.6e9, 400.0)
    out[5], out[6] = site["power_factor"], _squash(site["temperature_c"], 20.0)
    out[7] = site["charge_j"] / site["capacity_j"] if site["capacity_j"] > 0.0 else 0.0


@kernel
def _cluster(state: State, facts: Facts, b: int, table: Rows, out: NDArray[np.float32]) -> None:
    clock = state.clock[b]
    angle = 2.0 * np.pi * (clock["now"] % 86400.0) / 86400.0
    out[0], out[1] = np.sin(angle), np.cos(angle)
    out[2] = min(1.0, clock["now"] / facts.rules[0]["limit_s"])
    out[3], out[4] = _squash(clock["n_queued"], 16.0), _squash(clock["n_running"], 16.0)
    visible, slot = 0, -1
    for index in range(1, table.shape[0]):
        row = table[index]
        if row["is_legal"] == 1 and row["command"] == Command.START and row["slot"] != slot:
            slot = row["slot"]
            visible += 1
    out[5] = _squash(clock["n_queued"] - visible, 16.0)
    out[6] = _squash(clock["weight_in_system"], 16.0)
    out[7] = _squash(clock["commands_left"], 8.0)

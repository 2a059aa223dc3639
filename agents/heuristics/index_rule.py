"""The `index` rule: one score per candidate row from a dozen parameters, and the pick of the best row.

With w the job's weight, h its believed hours left at its fastest configuration, a its age in hours, and for a row t the hours left
under it, g GPUs, e efficiency, v speed, m comparative advantage, Q the number of queued jobs, and the row's impact
I = carbon_price x kg + energy_price x kWh + money_price x USD (in weighted job-hours):

    cost  = (w t (1 + (gpu_base + gpu_price Q) g) + I) x g^gpu_power / (e^efficiency_power m^advantage_power)
    start = w^weight_power (1 + a)^age_power h^-time_power x w h / cost

A job starts on the row of the highest `start` among those with e and v above their floors (which fade with age and do not hold while
nothing runs) and whose job has waited at least patience x I / w hours: clean rows at once, dirty ones after a wait in
proportion to what they
cost, as in ski rental. Where no row may start a job, the running job is preempted whose time left over weight exceeds most that of the
job that waits for its GPUs (`waiting_s`, with what the change costs), if by a factor of preempt_ratio. Else a running job changes to the
row with the highest cost now over cost then, if that exceeds change_gain. Else the rule waits.
"""

from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.jit import kernel
from hetenv.sim.commands import Command
from hetenv.sim.tables import NONE, Rows
from hetenv.units import HOUR_S, JOULE_PER_KWH


class Parameter(IntEnum):
    """Places in the parameter vector."""

    TIME_POWER = 0
    WEIGHT_POWER = 1
    AGE_POWER = 2
    GPU_PRICE = 3
    """Per queued job and GPU."""
    GPU_POWER = 4
    EFFICIENCY_POWER = 5
    ADVANTAGE_POWER = 6
    EFFICIENCY_FLOOR = 7
    SPEED_FLOOR = 8
    CARBON_PRICE = 9
    """Weighted job-hours per kg of CO2."""
    ENERGY_PRICE = 10
    """Weighted job-hours per kWh."""
    MONEY_PRICE = 11
    """Weighted job-hours per USD of grid energy."""
    PATIENCE = 12
    PREEMPT_RATIO = 13
    CHANGE_GAIN = 14
    GPU_BASE = 15
    """Per GPU, whoever waits: what those cost who are still to come."""


N_PARAMETERS: Final = len(Parameter)
TIER: Final = 1e9
"""Starts score in (2, 3) TIER, preemptions in (1, 2), changes in (0, 1), `wait` 0, all else REFUSED."""
REFUSED: Final = -1.0
LEAST_H: Final = 1.0 / 60.0
"""Times below a minute count as a minute."""
FADE_H: Final = 12.0
"""Age at which the floors have halved."""
LEAST_COST: Final = 1e-6

CONTEXT = np.dtype([("n_queued", "i8"), ("n_running", "i8")])
"""What the rule knows beside the rows."""


@kernel
def config_factor(efficiency: float, advantage: float, n_gpus: int, parameters: NDArray[np.float64]) -> float:
    """The factor of a configuration on its cost: g^gpu_power / (e^efficiency_power m^advantage_power)."""
    factor = max(efficiency, 1e-3) ** -parameters[Parameter.EFFICIENCY_POWER]
    factor *= max(advantage, 1e-3) ** -parameters[Parameter.ADVANTAGE_POWER]
    return factor * n_gpus ** parameters[Parameter.GPU_POWER]


@kernel
def _cost(row: Rows, hours: float, n_gpus: int, factor: float, n_queued: int, parameters: NDArray[np.float64]) -> float:
    """Weighted job-hours that a configuration costs: the job's own, its neighbours' and its impact, times the factor."""
    held = 1.0 + (parameters[Parameter.GPU_BASE] + parameters[Parameter.GPU_PRICE] * n_queued) * n_gpus
    return max(LEAST_COST, row["weight"] * max(hours, LEAST_H) * held + impact(row, parameters)) * factor


@kernel
def impact(row: Rows, parameters: NDArray[np.float64]) -> float:
    """Weighted job-hours that the row's carbon, energy and money are worth; negative where power earns money."""
    total = parameters[Parameter.CARBON_PRICE] * row["carbon_kg"]
    total += parameters[Parameter.ENERGY_PRICE] * row["energy_j"] / JOULE_PER_KWH
    return total + parameters[Parameter.MONEY_PRICE] * row["cost_usd"]


@kernel
def job_factor(row: Rows, parameters: NDArray[np.float64]) -> float:
    """The part of `start` that all rows of a job share."""
    hours = max(row["best_s"] / HOUR_S, LEAST_H)
    value = row["weight"] ** (1.0 + parameters[Parameter.WEIGHT_POWER]) * hours ** (1.0 - parameters[Parameter.TIME_POWER])
    if parameters[Parameter.AGE_POWER] != 0.0:
        value *= (1.0 + row["age_s"] / HOUR_S) ** parameters[Parameter.AGE_POWER]
    return value


@kernel
def may_start(row: Rows, n_running: int, parameters: NDArray[np.float64]) -> bool:
    """Whether a start row is above the floors and need not wait for cleaner power."""
    age_h = row["age_s"] / HOUR_S
    if n_running > 0:
        fade = FADE_H / (FADE_H + age_h)
        if row["efficiency"] < parameters[Parameter.EFFICIENCY_FLOOR] * fade:
            return False
        if row["speed"] < parameters[Parameter.SPEED_FLOOR] * fade:
            return False
    patience = parameters[Parameter.PATIENCE]
    return patience <= 0.0 or age_h * row["weight"] >= patience * impact(row, parameters)


@kernel
def preempt_gain(row: Rows, parameters: NDArray[np.float64]) -> float:
    """Time left over weight of a running job, over that of the one that waits for its GPUs; 0 if it should go on."""
    if row["waiting_s"] <= 0.0:
        return 0.0
    gain = row["present_s"] / row["weight"] / (row["waiting_s"] + row["change_s"])
    return gain if gain > parameters[Parameter.PREEMPT_RATIO] else 0.0


@kernel
def _squashed(value: float) -> float:
    """A positive value as a share of TIER below 1, order kept."""
    return TIER * value / (1.0 + value)


@kernel
def score_rows(
    table: Rows,
    context: Rows,
    factors: NDArray[np.float64],
    parameters: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> int:
    """Score the legal rows of one simulation; returns the best (ties: the first).

    Args:
        table: [A] CANDIDATE rows.
        context: CONTEXT row.
        factors: [>= C] `config_factor` of each configuration that occurs in the table.
        parameters: [N_PARAMETERS].
        scores: [A], written where legal.
    """
    n_queued, n_running = context["n_queued"], context["n_running"]
    best, slot, of_job, can_start = 0, NONE, 0.0, False
    present_cost = 0.0
    scores[0] = 0.0
    for index in range(1, table.shape[0]):
        row = table[index]
        if row["is_legal"] == 0:
            continue
        command, score = row["command"], REFUSED
        if command == Command.START:
            if row["slot"] != slot:
                slot, of_job = row["slot"], job_factor(row, parameters)
            if may_start(row, n_running, parameters):
                can_start = True
                cost = _cost(row, row["left_s"] / HOUR_S, row["n_gpus"], factors[row["config"]], n_queued, parameters)
                score = 2.0 * TIER + _squashed(of_job / cost)
        elif command == Command.PREEMPT:
            slot, n_gpus = row["slot"], -row["gpus_change"]
            factor = config_factor(row["efficiency"], row["advantage"], n_gpus, parameters)
            present_cost = _cost(row, row["present_s"] / HOUR_S, n_gpus, factor, n_queued, parameters)
            gain = 0.0 if can_start else preempt_gain(row, parameters)
            if gain > 0.0:
                score = TIER + _squashed(gain)
        elif row["slot"] == slot:
            cost = _cost(row, row["left_s"] / HOUR_S, row["n_gpus"], factors[row["config"]], n_queued, parameters)
            gain = present_cost / cost
            if gain > parameters[Parameter.CHANGE_GAIN]:
                score = _squashed(gain)
        scores[index] = score
        if score > scores[best]:
            best = index
    return best

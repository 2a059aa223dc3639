"""What random worlds have besides jobs and GPUs: batteries, caps, shared networks, phases, paid checkpoints, distance.

In exact worlds nothing here changes a rate by an arbitrary factor: caps, shared networks, wide-area links and live changes
are left to rough ones.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hetenv.cluster import BatteryConfig, Cluster, WanConfig
from hetenv.configurations import NO_CONFIG, Configurations
from hetenv.events.stream import Effect

if TYPE_CHECKING:
    from tests.random_worlds import Dice


def site_extras(dice: "Dice") -> dict[str, Any]:
    """Fields of a SiteConfig."""
    battery = BatteryConfig(
        capacity_kwh=dice.pick(0.02, 0.5),
        charge_w=dice.pick(300.0, 5000.0),
        discharge_w=dice.pick(300.0, 5000.0),
        efficiency=dice.pick(1.0, 0.8),
        start_share=dice.pick(0.0, 0.5, 1.0),
        discharge_from_usd_per_mwh=dice.pick(None, 50.0),
    )
    capped = dice.chance(0.4) and not dice.exact
    return {
        "battery": battery if dice.chance(0.4) else None,
        "marginal_carbon_g_per_kwh": dice.pick(None, 700.0),
        "temperature_c": dice.pick(10.0, 30.0),
        "pue_per_c": dice.pick(0.0, 0.01),
        "export_limit_w": dice.pick(0.0, 800.0),
        "export_usd_per_mwh": dice.pick(0.0, 20.0, -5.0),
        "demand_usd_per_kw": dice.pick(0.0, 3.0),
        "power_cap_w": dice.pick(3000.0, 8000.0, 20_000.0) if capped else np.inf,
        "grid_limit_w": dice.pick(np.inf, 4000.0) if capped else np.inf,
    }


def pool_extras(dice: "Dice") -> dict[str, Any]:
    """Fields of a PoolConfig."""
    return {
        "oversubscription": dice.pick(1.0, 2.0, 3.0),
        "sleep_after_s": dice.pick(None, None, 0.0, 60.0, 180.0),
        "sleep_w": dice.pick(0.0, 20.0),
        "wake_s": dice.pick(0.0, 30.0),
    }


def wan_extras(dice: "Dice", sites: list[str]) -> tuple[WanConfig, ...]:
    """Links between some pairs of sites; exact worlds have none that take time."""
    pairs = [(a, b) for i, a in enumerate(sites) for b in sites[i + 1 :]]
    if dice.exact:
        return ()
    speed = {"gbytes_per_s": dice.pick(0.5, 2.0), "latency_s": dice.pick(0.0, 0.1), "usd_per_gbyte": dice.pick(0.0, 0.05)}
    return tuple(WanConfig(sites=pair, **speed) for pair in pairs if dice.chance(0.7))


def config_extras(dice: "Dice") -> dict[str, Any]:
    """Columns of a CONFIG row."""
    return {
        "save_every": dice.pick(np.inf, np.inf, dice.amount(120)),
        "survives": dice.whole(0, 1),
        "demand_a": 0 if dice.exact else dice.pick(0, 300, 900, 1700),
        "demand_b": 0 if dice.exact else dice.pick(0, 400),
    }


def class_extras(dice: "Dice") -> dict[str, Any]:
    """Fields that every kind of class has."""
    pays = dice.chance(0.4)
    return {
        "checkpoint_pause_s": dice.pick(0.0, 30.0, dice.amount(60)) if pays else 0.0,
        "checkpoint_persist_s": dice.pick(0.0, 30.0, dice.amount(120)) if pays else 0.0,
        "degrades": dice.chance(0.5),
        "degrade_s": dice.pick(0.0, 30.0),
        "data_gbytes": dice.pick(0.0, 40.0),
    }


def connect(dice: "Dice", configurations: Configurations, cluster: Cluster) -> Configurations:
    """Hand-made configurations with sites, phases that follow each other, and live changes; in place."""
    table, classes = configurations.table, configurations.classes
    table["site"] = cluster.pool_site[table["pool_a"]]
    classes["state_bytes"] = dice.pick(0.0, 2e10)
    n = classes.size
    if n > 1 and dice.chance(0.5):
        classes["next_class"] = np.roll(np.arange(n), -1)
        for row in table:
            following = classes[classes["next_class"][row["job_class"]]]
            others = range(int(following["first_config"]), int(following["last_config"]))
            same = [k for k in others if _places(table[k]) == _places(row)]
            row["next_config"] = dice.pick(*same) if same and dice.chance(0.8) else NO_CONFIG
    if dice.exact or dice.chance(0.5):
        return configurations
    moves: list[NDArray[np.float64]] = [np.zeros(0)]
    for row in classes:
        row["first_move"], row["commit_s"], row["exposed"] = sum(part.size for part in moves), 2.0, dice.pick(0.0, 0.5, 1.0)
        moves.append(dice.rng.uniform(0.0, 60.0, int(row["last_config"] - row["first_config"]) ** 2))
    return replace(configurations, moves=np.concatenate(moves))


def _places(row: np.void) -> tuple[int, ...]:
    return tuple(int(row[column]) for column in ("pool_a", "pool_b", "gpus_a", "gpus_b"))


def extra_value(dice: "Dice", effect: Effect) -> float:
    """A value for one of the effects on announcements, ranges and sites."""
    match effect:
        case Effect.NODE_NOTICE:
            return float(dice.whole(0, 4) * 30)
        case Effect.JOB_RANGE:
            return dice.pick(0.0, 1.0, 2.0, 5.5, 12.0)
        case Effect.SITE_MARGINAL_CARBON:
            return dice.pick(0.0, 2e-7)
        case Effect.SITE_TEMPERATURE:
            return dice.pick(-5.0, 22.0, 35.0)
        case Effect.SITE_POWER_CAP:
            return np.inf if dice.exact else dice.pick(np.inf, 2000.0, 6000.0)
    return 0.0

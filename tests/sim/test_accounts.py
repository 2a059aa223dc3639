"""Identities of the ledger on random worlds under random commands, batteries, caps and all."""

import numpy as np
import pytest

from hetenv.objective import Account
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import TOTAL, Status
from tests.random_worlds import Dice, random_command, random_world
from tests.sim.test_differential import COMMANDS

CLOSE = {"rel": 1e-9, "abs": 1e-6}


def _played(seed: int) -> Simulator:
    """The end of a random episode; between instants the battery stays within its capacity and no sum falls."""
    compiled, world = random_world(seed)
    simulator = Simulator(compiled)
    simulator.reset(world)
    dice = Dice(np.random.default_rng(seed), exact=True)
    n_configs = simulator.facts.configs.size
    grows = [Account.GRID_J, Account.ENERGY_J, Account.RENEWABLE_J, Account.CURTAILED_J, Account.DEMAND_USD, Account.WAN_BYTES]
    while simulator.status() == Status.OPEN:
        before = simulator.state.ledger[0, TOTAL].copy()
        legal = [
            (name, job, config)
            for name in ("start", "change")
            for job in range(world.requests.size)
            for config in range(n_configs)
            if simulator.is_legal(COMMANDS[name], job, config)
        ]
        name, *rest = random_command(legal, world.requests.size, n_configs, dice)
        simulator.give(COMMANDS[name], *rest)
        sites = simulator.state.sites[0]
        assert (sites["charge_j"] >= 0.0).all() and (sites["charge_j"] <= sites["capacity_j"]).all()
        assert ((sites["power_factor"] >= 0.3) & (sites["power_factor"] <= 1.0)).all()
        assert (simulator.state.ledger[0, TOTAL][grows] >= before[grows]).all()
    return simulator


@pytest.mark.parametrize("seeds", [range(k, 40, 4) for k in range(4)], ids=lambda seeds: f"from_{seeds.start}")
def test_energy_and_gpu_time_add_up(seeds: range) -> None:
    for seed in seeds:
        ledger = _played(seed).state.ledger[0, TOTAL]
        covered = ledger[Account.RENEWABLE_J] + ledger[Account.BATTERY_J] + ledger[Account.GRID_J]
        assert ledger[Account.ENERGY_J] == pytest.approx(covered, **CLOSE)
        assert ledger[Account.HELD_GPU_S] == pytest.approx(ledger[Account.OVERHEAD_GPU_S] + ledger[Account.PRODUCTIVE_GPU_S], **CLOSE)
        assert ledger[Account.LOST_GPU_S] <= ledger[Account.PRODUCTIVE_GPU_S] + 1e-6
        assert ledger[Account.HELD_GPU_S] <= ledger[Account.AVAILABLE_GPU_S] + 1e-6

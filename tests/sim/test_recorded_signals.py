"""Recorded signals through the simulator's accounts: energy, carbon and money of one job, with published figures."""

from pathlib import Path
from typing import Any

import pytest

from hetenv.objective import Account
from hetenv.scenario import parse
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import Status
from hetenv.traces.paths import shared_folder
from tests.sim.test_cases import start_when_possible, total

KWH = 3.6e6


def one_job(folder: Path, work_s: float, watts: float, site: dict[str, Any], pue: float = 1.0, gpus: int = 1, **more: Any) -> Simulator:
    """Runs a scenario file with one job that draws `watts` for `work_s` from time 0, and nothing else that draws power."""
    folder.joinpath("one.csv").write_text(
        f"timestamp,duration,num_gpus,gpu_time,cluster\n2020-01-01 00:00:00,{work_s},{gpus},{work_s * gpus},x\n"
    )
    data = {
        "name": "replay",
        "summary": "one job under recorded signals",
        "horizon_s": work_s,
        "cluster": {
            "sites": [{"name": "site", "pue": pue}],
            "pools": [{"name": "a", "accelerator": "H100-SXM-80", "nodes": 1, "gpus_per_node": gpus, "idle_w": 0, "node_overhead_w": 0}],
        },
        "classes": {"train": {"kind": "fixed", "gpu_counts": [gpus], "power_w": watts / gpus}},
        "workload": {"kind": "trace", "format": "philly_csv", "path": "one.csv", "job_class": "train", "window": "all"},
        "events": [{"kind": "series", "sites": {"site": site}, **more}],
    }
    compiled = parse(data, folder / "replay.yaml").compile()
    simulator = Simulator(compiled)
    simulator.reset(compiled.sample(0))
    start_when_possible(simulator)
    assert simulator.status() == Status.TERMINATED and simulator.now() == work_s
    return simulator


@pytest.fixture
def mci() -> str:
    if not (shared_folder() / "data/energy/watttime_mci/mci.csv").is_file():
        pytest.skip("the shared data folder is absent; set HETENV_SHARED")
    return "shared:data/energy/watttime_mci/mci.csv"


@pytest.mark.parametrize("region, kg", [("CAISO_NORTH", 11.41), ("SPP_TX", 14.55)])
def test_training_through_marginal_carbon(tmp_path: Path, mci: str, region: str, kg: float) -> None:
    """arXiv 2602.22760: 64,025 s from the record's begin at 2.024 kW are 36.00 kWh."""
    carbon = {"path": mci, "format": "watttime_mci", "column": region}
    it = one_job(tmp_path, 64_025.0, 2024.0, {"carbon": carbon}, start={"kind": "at", "utc": "2026-01-11T17:00:00Z"})
    assert total(it, Account.ENERGY_J) / KWH == pytest.approx(36.00, abs=0.005)
    assert total(it, Account.CARBON_KG) == pytest.approx(kg, abs=0.005)
    start = {"kind": "at", "utc": "2026-01-11T17:00:00Z"}
    beside = one_job(tmp_path, 64_025.0, 2024.0, {"marginal_carbon": carbon}, start=start)
    assert total(beside, Account.MARGINAL_CARBON_KG) == pytest.approx(kg, abs=0.005)
    assert total(beside, Account.CARBON_KG) == pytest.approx(36.00 * 0.4, abs=0.005)


def test_p28_eight_gpus_for_ten_hours(tmp_path: Path) -> None:
    """8 x 700 W x 10 h = 56 kWh of IT; PUE 1.2 and 400 g/kWh: 26.88 kg."""
    hours = [f"2024-07-01 {h:02}:00:00+00:00,1,400" for h in range(24)]
    tmp_path.joinpath("mix.csv").write_text("\n".join(["timestamp,NG,avg_CI", *hours]))
    site = {"carbon": {"path": "mix.csv", "format": "eia_mix"}}
    it = one_job(tmp_path, 36_000.0, 5600.0, site, 1.2, 8, start={"kind": "at", "utc": "2024-07-01T05:00:00Z"})
    assert total(it, Account.ENERGY_J) / KWH == pytest.approx(56 * 1.2, rel=1e-12)
    assert total(it, Account.CARBON_KG) == pytest.approx(26.88, rel=1e-9)


@pytest.mark.parametrize("price, usd", [(-20.0, -20.0), (5.0, 5.0)])
def test_p28_a_negative_price_is_income(tmp_path: Path, price: float, usd: float) -> None:
    """1 MWh at -20 USD/MWh: -20 USD, less than at +5."""
    tmp_path.joinpath("p.csv").write_text(f"Datetime (UTC),Price (USD/MWh)\n2024-07-01 00:00:00+00:00,{price}\n")
    site = {"price": {"path": "p.csv", "format": "prices"}}
    it = one_job(tmp_path, 3600.0, 1e6, site, start={"kind": "at", "utc": "2024-07-01T00:00:00Z"})
    assert total(it, Account.ENERGY_J) / KWH == pytest.approx(1000.0, rel=1e-9)
    assert total(it, Account.GRID_COST_USD) == pytest.approx(usd, rel=1e-9)


def test_energy_is_renewable_first_then_grid_under_recorded_power(tmp_path: Path) -> None:
    """2 kW for 4 hours, of which the site makes 0, 1, 3 and 2 kW: 5 kWh of its own, 3 from the grid, 1 left over."""
    tmp_path.joinpath("solar.csv").write_text("time,A\n0,0\n3600,0.1\n7200,0.3\n10800,0.2\n")
    site = {"power": {"path": "solar.csv", "format": "vessim", "first_utc": "2024-07-01T00:00:00Z", "peak_w": 1e4}}
    it = one_job(tmp_path, 4 * 3600.0, 2000.0, site, start={"kind": "at", "utc": "2024-07-01T00:00:00Z"})
    energy, own, left = (total(it, account) / KWH for account in (Account.ENERGY_J, Account.RENEWABLE_J, Account.CURTAILED_J))
    assert (energy, own, left) == pytest.approx((8, 5, 1), rel=1e-12)
    assert total(it, Account.CARBON_KG) == pytest.approx(3 * 0.4, rel=1e-9)

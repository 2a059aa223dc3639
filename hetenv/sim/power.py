"""Site power: what is drawn, stored, bought and sold over a stretch (docs/design.md, Energy and money)."""

from hetenv.jit import kernel
from hetenv.objective import Account
from hetenv.sim.tables import Rows, State


@kernel
def site_power_w(site: Rows) -> float:
    """What a site draws now."""
    return site["pue"] * (site["it_w"] - (1.0 - site["power_factor"]) * site["dynamic_w"])


@kernel
def account_sites(state: State, b: int, n_rows: int, seconds: float) -> None:
    """Energy, carbon and money of all sites over `seconds`, in the first n_rows rows of the ledger."""
    for s in range(state.sites.shape[1]):
        site = state.sites[b, s]
        power_w = site_power_w(site)
        renewable_w = min(power_w, site["renewable_w"])
        deficit_w, surplus_w = power_w - renewable_w, site["renewable_w"] - renewable_w
        given_j, charged_j, exported_j = 0.0, 0.0, 0.0
        peak_w = deficit_w
        if site["capacity_j"] > 0.0:
            given_j = _discharge(site, deficit_w, seconds)
            if given_j > 0.0 and given_j >= min(deficit_w, site["discharge_w"]) * seconds:
                peak_w = deficit_w - min(deficit_w, site["discharge_w"])
            charged_j, exported_j = _charge(site, surplus_w, seconds)
        elif site["export_limit_w"] > 0.0:
            exported_j = min(surplus_w, site["export_limit_w"]) * seconds
        grid_j = max(0.0, deficit_w * seconds - given_j)
        demand_usd = 0.0
        if peak_w > site["peak_w"]:
            demand_usd = (peak_w - site["peak_w"]) * site["demand_usd_per_w"]
            site["peak_w"] = peak_w
        for row in range(n_rows):
            ledger = state.ledger[b, row]
            ledger[Account.ENERGY_J] += power_w * seconds
            ledger[Account.RENEWABLE_J] += renewable_w * seconds
            ledger[Account.CURTAILED_J] += max(0.0, surplus_w * seconds - charged_j - exported_j)
            ledger[Account.GRID_J] += grid_j
            ledger[Account.CARBON_KG] += grid_j * site["carbon_kg_per_j"]
            ledger[Account.MARGINAL_CARBON_KG] += grid_j * site["marginal_kg_per_j"]
            ledger[Account.GRID_COST_USD] += grid_j * site["price_usd_per_j"]
            ledger[Account.BATTERY_J] += given_j
            ledger[Account.CHARGED_J] += charged_j
            ledger[Account.EXPORTED_J] += exported_j
            ledger[Account.EXPORT_USD] += exported_j * site["export_usd_per_j"]
            ledger[Account.DEMAND_USD] += demand_usd


@kernel
def _discharge(site: Rows, deficit_w: float, seconds: float) -> float:
    """Energy that the battery gives towards a deficit."""
    watts = min(deficit_w, site["discharge_w"])
    if watts <= 0.0 or site["charge_j"] <= 0.0 or site["price_usd_per_j"] < site["discharge_from"]:
        return 0.0
    given_j = watts * seconds
    if given_j >= site["charge_j"]:
        given_j = site["charge_j"]
    site["charge_j"] -= given_j
    return given_j


@kernel
def _charge(site: Rows, surplus_w: float, seconds: float) -> tuple[float, float]:
    """Energy of a surplus that goes into the battery, and that is sold."""
    watts = min(surplus_w, site["charge_w"])
    stretch_s = 0.0
    if watts > 0.0 and site["charge_j"] < site["capacity_j"]:
        stretch_s = seconds
        stored_j = watts * site["efficiency"] * seconds
        if site["charge_j"] + stored_j >= site["capacity_j"]:
            stretch_s = min(seconds, (site["capacity_j"] - site["charge_j"]) / (watts * site["efficiency"]))
            site["charge_j"] = site["capacity_j"]
        else:
            site["charge_j"] += stored_j
    export_w = min(surplus_w - watts, site["export_limit_w"])
    full_w = min(surplus_w, site["export_limit_w"])
    return watts * stretch_s, export_w * stretch_s + full_w * (seconds - stretch_s)

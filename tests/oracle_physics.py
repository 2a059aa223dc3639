"""The oracle's physics: speed, the network, power and its caps, energy and money, by the rules of docs/design.md."""

from math import inf

from hetenv.objective import Account
from hetenv.units import quantise_power
from tests.oracle_parts import Job, Row


class Physics:
    """The part of the oracle that knows how fast jobs step and what sites draw."""

    def _stepping(self) -> list[Job]:
        return [job for job in self.jobs if job.is_stepping]

    def _rate(self, job: Job) -> float:
        config = self.configs[job.config]
        speed = min(self.nodes[id].speed for id in job.allocation)
        speed *= min(self.sites[self.pools[pool].site].factor for pool in config.gpus_in)
        intra = min(self.pools[pool].factors[0] for pool in config.gpus_in)
        inter = min(self.pools[pool].factors[1] * self._share(config, pool) for pool in config.gpus_in)
        rate = config.rate
        if (speed, intra, inter) != (1.0, 1.0, 1.0):
            step_s = config.compute_s * (1 + config.straggler_share * (1 / speed - 1))
            step_s += max(0.0, config.intra_s / intra - config.intra_hideable_s)
            step_s += max(0.0, config.inter_s / inter - config.inter_hideable_s)
            rate = config.work_per_step / step_s
        return rate * config.spread_penalty if job.is_spread else rate

    def _replan(self) -> None:
        """Let stepping jobs take the rates that now hold."""
        for job in self._stepping():
            if self._rate(job) != job.rate:
                self._plan(job)

    # The network

    def _share(self, config: Row, pool: int) -> float:
        """What a job gets of what it asks of the network of a pool."""
        demand = _demand(config, pool)
        level = self._level(pool)
        return level / demand if demand > level else 1.0

    def _level(self, pool: int) -> float:
        """The max-min fair level: sorted by what they ask, each in turn gets that or an even part of what is left."""
        asked = sorted(_demand(self.configs[job.config], pool) for job in self._stepping())
        asked = [demand for demand in asked if demand > 0]
        left = self.pools[pool].links
        if sum(asked) <= left:
            return inf
        for place, demand in enumerate(asked):
            even = left / (len(asked) - place)
            if demand > even:
                return even
            left -= demand
        raise AssertionError("more is asked than there is, and all get what they ask")

    # Power

    def _balance(self) -> None:
        """Bring each site under its cap, evicting jobs where speed alone does not."""
        before = None
        while before != [site.factor for site in self.sites]:
            before = [site.factor for site in self.sites]
            for index, site in enumerate(self.sites):
                site.factor = self._power_factor(index)
                while site.factor < 0.3 and (here := [job for job in self._stepping() if self._draws_at(job, index)]):
                    self._evict(min(here, key=lambda job: (job.request.weight, -job.id)))
                    self.something_happened = True
                    site.factor = self._power_factor(index)
                site.factor = max(site.factor, 0.3)
        self._replan()

    def _power_factor(self, index: int) -> float:
        site = self.sites[index]
        total_w, dynamic_w = self._it_power_w(index)
        allowed_w = min(site.cap_w, site.renewable_w + site.config.grid_limit_w) / self._pue(site)
        if dynamic_w <= 0 or total_w <= allowed_w:
            return 1.0
        return (allowed_w - (total_w - dynamic_w)) / dynamic_w

    def _draws_at(self, job: Job, index: int) -> bool:
        return any(self.pools[pool].site == index for pool in self.configs[job.config].gpus_in)

    def _pue(self, site: Row) -> float:
        config = site.config
        return config.pue + config.pue_per_c * max(0.0, site.temperature_c - config.cooling_from_c)

    def _it_power_w(self, index: int) -> tuple[float, float]:
        """Uncapped IT power of a site, and the dynamic part of it."""
        total_w = dynamic_w = 0.0
        for node in self.nodes:
            if node.pool.site == index and node.up:
                total_w += node.pool.sleep_w if node.asleep else node.pool.overhead_w + node.pool.gpus * node.pool.idle_w
        for job in self._stepping():
            config = self.configs[job.config]
            part_a_w = config.power_w
            if config.pool_b in config.gpus_in:
                part_a_w = quantise_power(config.power_w * config.gpus_a / config.n_gpus)
            for pool, part_w in ((config.pool_a, part_a_w), (config.pool_b, config.power_w - part_a_w)):
                if pool in config.gpus_in and self.pools[pool].site == index:
                    dynamic_w += part_w - config.gpus_in[pool] * self.pools[pool].idle_w
        return total_w + dynamic_w, dynamic_w

    def _account_sites(self, seconds: float) -> None:
        """Energy, carbon and money over a stretch in which nothing happens."""
        for index, site in enumerate(self.sites):
            total_w, dynamic_w = self._it_power_w(index)
            power_w = self._pue(site) * (total_w - (1 - site.factor) * dynamic_w)
            used_w = min(power_w, site.renewable_w)
            deficit_w, surplus_w = power_w - used_w, site.renewable_w - used_w
            charge_w, charging_s, give_w, giving_s = self._battery(site, deficit_w, surplus_w, seconds)
            limit_w = site.config.export_limit_w
            exported_j = min(surplus_w - charge_w, limit_w) * charging_s + min(surplus_w, limit_w) * (seconds - charging_s)
            stretches = [(deficit_w - give_w, giving_s), (deficit_w, seconds - giving_s)]
            grid_j = sum(watts * stretch_s for watts, stretch_s in stretches)
            peak_w = max([watts for watts, stretch_s in stretches if stretch_s > 0], default=0.0)
            self._add(Account.DEMAND_USD, max(0.0, peak_w - site.peak_w) * site.config.demand_usd_per_kw / 1000)
            site.peak_w = max(site.peak_w, peak_w)
            self._add(Account.ENERGY_J, power_w * seconds)
            self._add(Account.RENEWABLE_J, used_w * seconds)
            self._add(Account.BATTERY_J, give_w * giving_s)
            self._add(Account.CHARGED_J, charge_w * charging_s)
            self._add(Account.EXPORTED_J, exported_j)
            self._add(Account.EXPORT_USD, exported_j * site.config.export_usd_per_mwh / 3.6e9)
            self._add(Account.CURTAILED_J, max(0.0, surplus_w * seconds - charge_w * charging_s - exported_j))
            self._add(Account.GRID_J, grid_j)
            self._add(Account.CARBON_KG, grid_j * site.carbon)
            self._add(Account.MARGINAL_CARBON_KG, grid_j * site.marginal)
            self._add(Account.GRID_COST_USD, grid_j * site.price)

    def _battery(self, site: Row, deficit_w: float, surplus_w: float, seconds: float) -> tuple[float, float, float, float]:
        """W and s of charging and of giving in a stretch; moves the charge."""
        battery = site.config.battery
        if battery is None:
            return 0.0, 0.0, 0.0, 0.0
        capacity_j = battery.capacity_kwh * 3.6e6
        charge_w, give_w = min(surplus_w, battery.charge_w), min(deficit_w, battery.discharge_w)
        charging_s = giving_s = 0.0
        least = battery.discharge_from_usd_per_mwh
        if charge_w > 0:
            charging_s = min(seconds, (capacity_j - site.charge_j) / (charge_w * battery.efficiency))
            site.charge_j = min(capacity_j, site.charge_j + charge_w * battery.efficiency * charging_s)
        elif give_w > 0 and (least is None or site.price >= least / 3.6e9):
            giving_s = min(seconds, site.charge_j / give_w)
            site.charge_j = max(0.0, site.charge_j - give_w * giving_s)
        return charge_w, charging_s, give_w, giving_s

    def _add(self, account: Account, amount: float) -> None:
        self.accounts[account] += amount


def _demand(config: Row, pool: int) -> int:
    """What a configuration asks of the network of a pool."""
    return config.demand_a if config.pool_a == pool else config.demand_b if config.pool_b == pool else 0

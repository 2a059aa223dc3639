"""Clusters: sites hold pools, a pool is a row of equal nodes, a node holds equal GPUs. Config and the arrays built from it."""

from dataclasses import dataclass
from math import inf
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from hetenv import catalog
from hetenv.errors import ScenarioError, unknown
from hetenv.units import GIGA, HOUR_S, JOULE_PER_KWH, JOULE_PER_MWH, KILO, quantise_power

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$")]
MAX_POOLS = 62
NO_POOL: Final = -1


class BatteryConfig(BaseModel):
    """A battery that takes a site's renewable surplus and covers its deficit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    capacity_kwh: float = Field(gt=0.0, allow_inf_nan=False)
    charge_w: float = Field(gt=0.0, allow_inf_nan=False, description="most power taken")
    discharge_w: float = Field(gt=0.0, allow_inf_nan=False, description="most power given")
    efficiency: float = Field(default=0.9, gt=0.0, le=1.0, description="energy stored over energy taken")
    start_share: float = Field(default=0.5, ge=0.0, le=1.0, description="charge at time 0 over capacity")
    discharge_from_usd_per_mwh: float | None = Field(
        default=None, allow_inf_nan=False, description="gives only while the grid's price is at least this; default: always"
    )


class SiteConfig(BaseModel):
    """A place with one grid connection."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    pue: float = Field(default=1.2, ge=1.0, description="facility power over IT power")
    carbon_g_per_kwh: float = Field(default=400.0, ge=0.0, description="until a signal says otherwise")
    price_usd_per_mwh: float = Field(default=80.0, description="until a signal says otherwise; may be negative")
    renewable_w: float = Field(default=0.0, ge=0.0, description="own renewable power until a signal says otherwise")
    marginal_carbon_g_per_kwh: float | None = Field(
        default=None, ge=0.0, description="until a signal says otherwise; default: carbon_g_per_kwh"
    )
    temperature_c: float = Field(default=20.0, ge=-90.0, le=60.0, description="outside, until a signal says otherwise")
    cooling_from_c: float = Field(default=20.0, ge=-90.0, le=60.0, description="outside temperature from which PUE rises")
    pue_per_c: float = Field(default=0.0, ge=0.0, le=1.0, description="rise of PUE per degree above cooling_from_c")
    power_cap_w: float = Field(default=inf, gt=0.0, description="until a signal says otherwise")
    grid_limit_w: float = Field(default=inf, ge=0.0, description="most power from the grid; jobs slow down to keep it")
    battery: BatteryConfig | None = None
    export_limit_w: float = Field(default=0.0, ge=0.0, description="most surplus power that may be sold")
    export_usd_per_mwh: float = Field(default=0.0, allow_inf_nan=False, description="tariff of what is sold")
    demand_usd_per_kw: float = Field(default=0.0, ge=0.0, allow_inf_nan=False, description="of an episode's highest grid power")


class PoolConfig(BaseModel):
    """Equal nodes with equal GPUs at one site."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    accelerator: str
    nodes: int = Field(gt=0)
    gpus_per_node: int = Field(default=8, gt=0, le=1024)
    site: Name | None = Field(default=None, description="needed only with several sites")
    intra_link: str | None = Field(default=None, description="link inside a node; default: the accelerator's")
    inter_link: str = Field(default="IB-NDR-8x", description="a node's links to the others, all together")
    cpus_per_node: int = Field(default=0, ge=0, description="0: CPUs are not accounted")
    host_memory_gbytes_per_node: int = Field(default=0, ge=0, description="0: host memory is not accounted")
    node_overhead_w: float | None = Field(default=None, ge=0.0, description="default: 30 % of the node's GPU power")
    idle_w: float | None = Field(default=None, ge=0.0, description="of one idle GPU; default: the accelerator's")
    rent_usd_per_gpu_hour: float = Field(default=0.0, ge=0.0)
    oversubscription: float = Field(
        default=1.0, ge=1.0, description="links of all nodes together over what the network between them carries at once"
    )
    sleep_after_s: float | None = Field(default=None, ge=0.0, description="an idle node sleeps after this; default: never")
    sleep_w: float = Field(default=0.0, ge=0.0, description="of a sleeping node")
    wake_s: float = Field(default=60.0, ge=0.0, description="what a job waits, holding its GPUs, for sleeping nodes to wake")


class WanConfig(BaseModel):
    """A link between two sites, the same in both directions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sites: tuple[Name, Name]
    gbytes_per_s: float = Field(gt=0.0, allow_inf_nan=False)
    latency_s: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    usd_per_gbyte: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)


class ClusterConfig(BaseModel):
    """Sites and pools. One site may be left out: it is then called `site`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pools: tuple[PoolConfig, ...] = Field(min_length=1, max_length=MAX_POOLS)
    sites: tuple[SiteConfig, ...] = (SiteConfig(name="site"),)
    wan: tuple[WanConfig, ...] = Field(default=(), description="between sites; pairs left out move everything at once, for nothing")


WAN = np.dtype([("s_per_byte", "f8"), ("latency_s", "f8"), ("usd_per_byte", "f8")])


@dataclass(frozen=True)
class Cluster:
    """What `build` makes of a ClusterConfig. Axes: N nodes, P pools, S sites; nodes are numbered pool by pool."""

    site_names: tuple[str, ...]
    pool_names: tuple[str, ...]
    pool_configs: tuple[PoolConfig, ...]
    site_configs: tuple[SiteConfig, ...]
    pue: NDArray[np.float64]
    """[S], >= 1, at time 0."""
    site_start: NDArray[np.float64]
    """[S, 6] before any signal, in order of SIGNAL_EFFECTS: renewable W, carbon and marginal carbon kg/J, price USD/J,
    temperature deg C, power cap W."""
    pool_site: NDArray[np.int32]
    """[P]."""
    pool_first_node: NDArray[np.int32]
    """[P]."""
    pool_nodes: NDArray[np.int32]
    """[P] number of nodes."""
    gpus_per_node: NDArray[np.int32]
    """[P]."""
    cpus_per_node: NDArray[np.int32]
    """[P], 0 where CPUs are not accounted."""
    host_mbytes_per_node: NDArray[np.int64]
    """[P], 0 where host memory is not accounted; MB."""
    idle_w: NDArray[np.float64]
    """[P] of one idle GPU, a multiple of POWER_QUANTUM_W."""
    overhead_w: NDArray[np.float64]
    """[P] of one node that is up, besides its GPUs."""
    rent_usd_per_gpu_s: NDArray[np.float64]
    """[P]."""
    node_pool: NDArray[np.int32]
    """[N]."""
    wan: NDArray[np.void]
    """[S, S] of dtype WAN, zeros on the diagonal."""

    @property
    def n_nodes(self) -> int:
        return int(self.node_pool.size)

    @property
    def n_gpus(self) -> int:
        return int((self.pool_nodes * self.gpus_per_node).sum())

    def pool(self, name: str) -> int:
        """Index of a pool by name."""
        if name not in self.pool_names:
            raise ScenarioError(unknown("pool", name, self.pool_names))
        return self.pool_names.index(name)

    def site(self, name: str) -> int:
        """Index of a site by name."""
        if name not in self.site_names:
            raise ScenarioError(unknown("site", name, self.site_names))
        return self.site_names.index(name)


def build(config: ClusterConfig) -> Cluster:
    """Arrays of a cluster; ScenarioError names an unknown accelerator, link or site, or a name used twice."""
    site_names = tuple(site.name for site in config.sites)
    pool_names = tuple(pool.name for pool in config.pools)
    for kind, names in (("sites", site_names), ("pools", pool_names)):
        doubled = {name for name in names if names.count(name) > 1}
        if doubled:
            raise ScenarioError(f"cluster.{kind}: name {sorted(doubled)[0]!r} is used twice; give each its own")
    pools = config.pools
    nodes = np.array([pool.nodes for pool in pools], np.int32)
    gpus = np.array([pool.gpus_per_node for pool in pools], np.int32)
    idle_w, overhead_w = _node_power(pools)
    return Cluster(
        site_names=site_names,
        pool_names=pool_names,
        pool_configs=pools,
        site_configs=config.sites,
        pue=np.array([s.pue + s.pue_per_c * max(0.0, s.temperature_c - s.cooling_from_c) for s in config.sites]),
        site_start=np.array([_start_of(site) for site in config.sites]),
        pool_site=np.array([_site_of(i, pool, site_names) for i, pool in enumerate(pools)], np.int32),
        pool_first_node=np.concatenate([[0], np.cumsum(nodes)[:-1]]).astype(np.int32),
        pool_nodes=nodes,
        gpus_per_node=gpus,
        cpus_per_node=np.array([pool.cpus_per_node for pool in pools], np.int32),
        host_mbytes_per_node=np.array([pool.host_memory_gbytes_per_node * 1000 for pool in pools], np.int64),
        idle_w=idle_w,
        overhead_w=overhead_w,
        rent_usd_per_gpu_s=np.array([pool.rent_usd_per_gpu_hour / HOUR_S for pool in pools]),
        node_pool=np.repeat(np.arange(len(pools), dtype=np.int32), nodes),
        wan=_wan(config, site_names),
    )


def _wan(config: ClusterConfig, site_names: tuple[str, ...]) -> NDArray[np.void]:
    links = np.zeros((len(site_names), len(site_names)), WAN)
    for index, link in enumerate(config.wan):
        for name in link.sites:
            if name not in site_names:
                raise ScenarioError(f"cluster.wan[{index}].sites: " + unknown("site", name, site_names))
        a, b = (site_names.index(name) for name in link.sites)
        if a == b:
            raise ScenarioError(f"cluster.wan[{index}].sites: {link.sites[0]!r} twice; name two sites")
        row = (1.0 / (link.gbytes_per_s * GIGA), link.latency_s, link.usd_per_gbyte / GIGA)
        links[a, b] = links[b, a] = row
    return links


def _start_of(site: SiteConfig) -> list[float]:
    """[6] a row of Cluster.site_start."""
    marginal = site.carbon_g_per_kwh if site.marginal_carbon_g_per_kwh is None else site.marginal_carbon_g_per_kwh
    carbon_kg_per_j, marginal_kg_per_j = (grams / KILO / JOULE_PER_KWH for grams in (site.carbon_g_per_kwh, marginal))
    price_usd_per_j = site.price_usd_per_mwh / JOULE_PER_MWH
    return [site.renewable_w, carbon_kg_per_j, marginal_kg_per_j, price_usd_per_j, site.temperature_c, site.power_cap_w]


def _site_of(index: int, pool: PoolConfig, site_names: tuple[str, ...]) -> int:
    if pool.site is None and len(site_names) == 1:
        return 0
    if pool.site is None:
        raise ScenarioError(f"cluster.pools[{index}].site: missing; name one of {', '.join(site_names)}")
    if pool.site not in site_names:
        raise ScenarioError(f"cluster.pools[{index}].site: " + unknown("site", pool.site, site_names))
    return site_names.index(pool.site)


def _node_power(pools: tuple[PoolConfig, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Idle W of a GPU and overhead W of a node, [P] each."""
    idle, overhead = [], []
    for index, pool in enumerate(pools):
        try:
            accelerator = catalog.accelerator(pool.accelerator)
            for link in (pool.intra_link, pool.inter_link):
                if link is not None:
                    catalog.link(link)
        except ScenarioError as error:
            raise ScenarioError(f"cluster.pools[{index}]: {error}") from None
        idle.append(quantise_power(accelerator.idle_w if pool.idle_w is None else pool.idle_w))
        default = 0.3 * accelerator.tdp_w * pool.gpus_per_node  # DGX A100 and H100: 25-35 % besides the GPUs
        overhead.append(quantise_power(default if pool.node_overhead_w is None else pool.node_overhead_w))
    return np.array(idle), np.array(overhead)

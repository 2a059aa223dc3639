"""Tables of a batch: allocation, and the empty cluster that every episode starts from."""

import numpy as np
from numpy.typing import NDArray

from hetenv.beliefs import N_BACKLOG_BINS
from hetenv.class_rows import LINK_PARTS
from hetenv.cluster import Cluster, SiteConfig
from hetenv.events.stream import EVENT
from hetenv.scenario import Compiled, EventClockConfig, OneByOneClockConfig, RoundClockConfig, WarmStart
from hetenv.sim import tables
from hetenv.sim.bitset import insert, n_words, summary_words
from hetenv.sim.tables import LEDGER_SHAPE, NONE, Facts, State
from hetenv.units import JOULE_PER_KWH, JOULE_PER_MWH, KILO, quantise_power
from hetenv.workload.requests import REQUEST

UNLIMITED_LINKS = 2**62
SIGNAL_COLUMNS = ("renewable_w", "carbon_kg_per_j", "marginal_kg_per_j", "price_usd_per_j", "temperature_c", "cap_w")
"""Columns of SITE in order of SIGNAL_EFFECTS."""


def initial_state(compiled: Compiled, n_requests: int) -> State:
    """[1, ...] tables of an empty cluster at time 0, with room for n_requests."""
    cluster = compiled.cluster
    n_gpus, n_nodes = cluster.n_gpus, cluster.n_nodes
    n_runs = max(1, min(n_requests, n_gpus))
    orders = len(compiled.scenario.candidates.window_orders)
    pools, n_counts, n_bits = _pools(compiled)
    state = State(
        clock=np.zeros(1, tables.CLOCK),
        jobs=_jobs(n_requests),
        runs=_runs(n_runs),
        ends=np.zeros((1, n_runs), tables.END),
        nodes=_nodes(cluster),
        pools=pools,
        sites=_sites(cluster),
        allocs=_allocs(n_gpus),
        free_bits=np.zeros((1, n_bits), np.int64),
        free_counts=np.zeros((1, n_counts), np.int32),
        queue_bits=np.zeros((1, orders, n_words(max(1, n_requests))), np.int64),
        run_heap=np.full((1, n_runs), NONE, np.int32),
        node_heap=np.full((1, n_nodes), NONE, np.int32),
        backlog=np.zeros((1, N_BACKLOG_BINS), np.int32),
        ledger=np.zeros((1, *LEDGER_SHAPE)),
    )
    clock = state.clock[0]
    clock["up_gpus"] = n_gpus
    clock["first_run"] = clock["last_run"] = NONE
    clock["is_stale"] = state.sites["is_stale"].any()
    _list_free_nodes(state)
    return state


def _jobs(n_requests: int) -> NDArray[np.void]:
    jobs = np.zeros((1, max(1, n_requests)), tables.JOB)
    jobs["first_start_s"] = jobs["end_s"] = np.inf
    jobs["config"] = jobs["run"] = jobs["instant"] = NONE
    jobs["most_gpus"] = tables.UNBOUNDED
    return jobs


def _chained(rows: NDArray[np.void], column: str) -> None:
    """Link all rows into a free list through `column`."""
    rows[column] = np.arange(1, rows.shape[1] + 1)
    rows[column][:, -1] = NONE


def _runs(n_runs: int) -> NDArray[np.void]:
    runs = np.zeros((1, n_runs), tables.RUN)
    runs["order"] = runs["heap"] = runs["alloc"] = runs["previous"] = NONE
    _chained(runs, "next")
    return runs


def _allocs(n_gpus: int) -> NDArray[np.void]:
    allocs = np.zeros((1, n_gpus), tables.ALLOC)
    allocs["run"] = allocs["node"] = allocs["next_of_node"] = NONE
    _chained(allocs, "next_of_run")
    return allocs


def _nodes(cluster: Cluster) -> NDArray[np.void]:
    nodes = np.zeros((1, cluster.n_nodes), tables.NODE)
    nodes["until"] = nodes["leaves_s"] = np.inf
    nodes["speed"] = 1.0
    nodes["tie"], nodes["pool"], nodes["is_up"] = np.arange(cluster.n_nodes), cluster.node_pool, 1
    nodes["heap"] = nodes["alloc"] = NONE
    nodes["free"] = cluster.gpus_per_node[cluster.node_pool]
    nodes["free_cpus"] = cluster.cpus_per_node[cluster.node_pool]
    nodes["free_mbytes"] = cluster.host_mbytes_per_node[cluster.node_pool]
    return nodes


def _sleep_after_s(cluster: Cluster) -> NDArray[np.float64]:
    """[P]."""
    configs = cluster.pool_configs
    return np.array([np.inf if config.sleep_after_s is None else config.sleep_after_s for config in configs])


def _pools(compiled: Compiled) -> tuple[NDArray[np.void], int, int]:
    """[1, P] rows, and the total lengths of free_counts and free_bits."""
    cluster = compiled.cluster
    pools = np.zeros((1, len(cluster.pool_names)), tables.POOL)
    pools["site"], pools["first_node"] = cluster.pool_site, cluster.pool_first_node
    pools["n_nodes"], pools["gpus_per_node"] = cluster.pool_nodes, cluster.gpus_per_node
    pools["cpus_per_node"], pools["mbytes_per_node"] = cluster.cpus_per_node, cluster.host_mbytes_per_node
    pools["idle_w"], pools["overhead_w"] = cluster.idle_w, cluster.overhead_w
    pools["rent_usd_per_gpu_s"] = cluster.rent_usd_per_gpu_s
    pools["intra_factor"] = pools["inter_factor"] = 1.0
    pools["level"], pools["links"] = np.inf, UNLIMITED_LINKS
    if compiled.scenario.contention == "fair_share":
        oversubscription = np.array([config.oversubscription for config in cluster.pool_configs])
        pools["links"] = np.maximum(1, LINK_PARTS * cluster.pool_nodes / oversubscription)
    pools["sleep_after_s"] = _sleep_after_s(cluster)
    pools["sleep_w"] = [quantise_power(config.sleep_w) for config in cluster.pool_configs]
    pools["wake_s"] = [config.wake_s for config in cluster.pool_configs]
    pools["up_gpus"] = cluster.pool_nodes * cluster.gpus_per_node
    pools["power_w"] = cluster.pool_nodes * (cluster.overhead_w + cluster.gpus_per_node * cluster.idle_w)
    n_counts = n_bits = 0
    for pool in pools[0]:
        pool["first_count"], pool["first_word"] = n_counts, n_bits
        pool["words"] = n_words(int(pool["n_nodes"]))
        n_counts += pool["gpus_per_node"] + 1
        n_bits += (pool["gpus_per_node"] + 1) * pool["words"]
    return pools, int(n_counts), int(n_bits)


def _sites(cluster: Cluster) -> NDArray[np.void]:
    sites = np.zeros((1, len(cluster.site_names)), tables.SITE)
    sites["pue"], sites["power_factor"] = cluster.pue, 1.0
    for column, name in enumerate(SIGNAL_COLUMNS):
        sites[name] = cluster.site_start[:, column]
    for site, config in zip(sites[0], cluster.site_configs):
        _equip(site, config)
    sites["is_stale"] = np.isfinite(sites["cap_w"]) | np.isfinite(sites["grid_limit_w"])
    pool_w = cluster.pool_nodes * (cluster.overhead_w + cluster.gpus_per_node * cluster.idle_w)
    sites["it_w"][0] = np.bincount(cluster.pool_site, pool_w, len(cluster.site_names))
    return sites


def _equip(site: np.void, config: SiteConfig) -> None:
    """Write what a site has besides its signals."""
    site["base_pue"], site["pue_per_c"], site["cooling_from_c"] = config.pue, config.pue_per_c, config.cooling_from_c
    site["grid_limit_w"], site["export_limit_w"] = config.grid_limit_w, config.export_limit_w
    site["export_usd_per_j"] = config.export_usd_per_mwh / JOULE_PER_MWH
    site["demand_usd_per_w"] = config.demand_usd_per_kw / KILO
    site["discharge_from"], site["efficiency"] = -np.inf, 1.0
    battery = config.battery
    if battery is not None:
        site["capacity_j"] = battery.capacity_kwh * JOULE_PER_KWH
        site["charge_j"] = battery.start_share * site["capacity_j"]
        site["charge_w"], site["discharge_w"] = battery.charge_w, battery.discharge_w
        site["efficiency"] = battery.efficiency
        if battery.discharge_from_usd_per_mwh is not None:
            site["discharge_from"] = battery.discharge_from_usd_per_mwh / JOULE_PER_MWH


def _list_free_nodes(state: State) -> None:
    """Enter all nodes, empty, into the free tables."""
    for pool in state.pools[0]:
        n_nodes, per_node = int(pool["n_nodes"]), int(pool["gpus_per_node"])
        first = int(pool["first_word"] + per_node * pool["words"])
        for member in range(n_nodes):
            insert(state.free_bits[0], first, summary_words(n_nodes), member)
        count = int(pool["first_count"])
        state.free_counts[0, count : count + per_node + 1] = n_nodes
        pool["free_gpus"] = n_nodes * per_node


def rules_of(compiled: Compiled) -> NDArray[np.void]:
    """[1] the scenario's RULES row."""
    scenario = compiled.scenario
    rules = np.zeros(1, tables.RULES)
    clock, measure = scenario.clock, scenario.measure
    rules["limit_s"] = scenario.limit_s
    rules["max_interval_s"] = np.inf
    if isinstance(clock, EventClockConfig) and clock.max_interval_s is not None:
        rules["max_interval_s"] = clock.max_interval_s
    if isinstance(clock, RoundClockConfig):
        rules["round_s"] = clock.round_s
    rules["one_by_one"] = isinstance(clock, OneByOneClockConfig)
    rules["without"] = sum(tables.Without[name.upper()] for name in set(scenario.without))
    rules["measure_from_s"] = measure.from_s
    rules["measure_to_s"] = np.inf if measure.to_s is None else measure.to_s
    if isinstance(scenario.start, WarmStart):
        rules["warm_until_s"] = scenario.start.until_s
    rules["max_commands"] = scenario.candidates.max_commands_per_instant
    return rules


def empty_facts(compiled: Compiled, n_worlds: int, n_requests: int, n_events: int) -> Facts:
    """World tables with room for n_worlds worlds of these sizes."""
    orders = len(compiled.scenario.candidates.window_orders)
    cluster, configurations = compiled.cluster, compiled.configurations
    footprint, footprints = configurations.footprints()
    fastest, first_fastest = configurations.fastest(len(cluster.pool_names))
    return Facts(
        requests=np.zeros((n_worlds, n_requests), REQUEST),
        events=np.zeros((n_worlds, n_events), EVENT),
        ranks=np.zeros((n_worlds, orders, n_requests), np.int32),
        ranked=np.zeros((n_worlds, orders, n_requests), np.int32),
        node_event=np.zeros((n_worlds, cluster.n_nodes + 1), np.int32),
        configs=configurations.table,
        sizes=configurations.sizes(cluster.gpus_per_node),
        footprint=footprint,
        footprints=footprints,
        fastest=fastest,
        first_fastest=first_fastest,
        classes=configurations.classes,
        wan=cluster.wan,
        moves=configurations.moves,
        rules=rules_of(compiled),
    )



"""Live changes: seconds in which the bytes that change owner between two configurations of a class cross the network."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hetenv import catalog
from hetenv.class_rows import state_bytes
from hetenv.cluster import NO_POOL, Cluster
from hetenv.configurations import Configurations
from hetenv.perf import Estimate, Plan, Training
from hetenv.perf.reconfigure import received_bytes
from hetenv.workload.job_class import AnalyticClass, PlainClass


def transfer_s(configurations: Configurations, job_class: int, config: AnalyticClass, cluster: Cluster) -> NDArray[np.float64]:
    """[n * n] from row i to row j of a class: the busiest rank's bytes over its part of its node's links.

    Between plans on one pool each rank keeps what it holds (DynaTrain, arXiv 2605.18815). A move to other pools, or to
    or from a mixed plan, brings every rank its part of the whole state.
    """
    first, last = (int(configurations.classes[job_class][name]) for name in ("first_config", "last_config"))
    rows, plans = configurations.table[first:last], configurations.estimates[first:last]
    training = Training(config.model, config.global_batch, config.seq_len or 0, config.precision, config.stack)
    path = np.array([_path_bytes_per_s(cluster, row) for row in rows])
    whole = state_bytes(config) / rows["n_gpus"]
    found = np.empty((rows.size, rows.size))
    for i, old in enumerate(plans):
        for j, new in enumerate(plans):
            most = float(whole[j])
            if _on_one_pool(old) and _on_one_pool(new) and rows["pool_a"][i] == rows["pool_a"][j]:
                most = float(received_bytes(training, old.plan, new.plan).max(initial=0.0))  # type: ignore[union-attr, arg-type]
            found[i, j] = most / path[j]
    return found.ravel()


def _on_one_pool(estimate: Estimate | None) -> bool:
    return estimate is not None and isinstance(estimate.plan, Plan)


def _path_bytes_per_s(cluster: Cluster, row: np.void) -> float:
    """What one rank receives over its node's links, all ranks at once: in the slower of the row's pools."""
    pools = [int(row["pool_a"])] + ([int(row["pool_b"])] if row["pool_b"] != NO_POOL else [])
    configs = [cluster.pool_configs[pool] for pool in pools]
    return min(catalog.link(config.inter_link).bytes_per_s / config.gpus_per_node for config in configs)


def add_moves(configurations: Configurations, flat: Mapping[str, PlainClass], cluster: Cluster) -> NDArray[np.float64]:
    """All classes' transfers one after the other; writes `first_move` of those that change live."""
    tables: list[NDArray[np.float64]] = [np.zeros(0)]
    size = 0
    for index, job_class in enumerate(flat.values()):
        if isinstance(job_class, AnalyticClass) and job_class.change == "live":
            tables.append(transfer_s(configurations, index, job_class, cluster))
            configurations.classes[index]["first_move"] = size
            size += tables[-1].size
    return np.concatenate(tables)

"""A compact text picture of one simulation."""

import numpy as np

from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import JobState

BAR = 32


def picture(simulator: Simulator, b: int) -> str:
    """Pools with their held, free and down GPUs, then the queue and the running jobs."""
    state, cluster = simulator.state, simulator.compiled.cluster
    clock = state.clock[b]
    lines = [f"t = {clock['now'] / 3600.0:.2f} h   queued {clock['n_queued']}   running {clock['n_running']}"]
    width = max(len(name) for name in cluster.pool_names)
    for name, pool in zip(cluster.pool_names, state.pools[b]):
        total = int(pool["n_nodes"] * pool["gpus_per_node"])
        held, down = int(pool["held_gpus"]), total - int(pool["up_gpus"])
        bar = "#" * round(BAR * held / total) + "x" * round(BAR * down / total)
        lines.append(f"{name:>{width}} [{bar:.<{BAR}}] {held}/{total} held, {down} down")
    for label, code in (("running", JobState.RUNNING), ("queued", JobState.QUEUED)):
        jobs = np.flatnonzero(state.jobs["state"][b] == code)[:BAR]
        if jobs.size:
            lines.append(f"{label}: " + " ".join(str(job) for job in jobs))
    return "\n".join(lines)

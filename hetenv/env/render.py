"""Pictures of one simulation: a compact text, and bars of the pools as pixels."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv.errors import ScenarioError, unknown
from hetenv.sim.simulator import Simulator
from hetenv.sim.tables import JobState, Rows

RENDER_MODES: Final = ("ansi", "human", "rgb_array")
BAR: Final = 32
MOST_JOBS: Final = 8
"""Lines per list of jobs."""
BAND: Final = 16
"""Pixels of a bar, and between two."""
FREE, HELD, DOWN, BORDER = (205, 205, 205), (40, 90, 170), (190, 60, 50), (255, 255, 255)


def checked_mode(mode: str | None, known: tuple[str, ...] = RENDER_MODES) -> str | None:
    """The render mode, if there is one of that name."""
    if mode is not None and mode not in known:
        raise ScenarioError("render_mode: " + unknown("mode", mode, known))
    return mode


def picture(simulator: Simulator, b: int = 0) -> str:
    """Pools with their held (#), down (x) and free (.) GPUs, then running and queued jobs in order of their submit."""
    state, clock = simulator.state, simulator.state.clock[b]
    lines = [f"{_span(clock['now'])}  {simulator.status(b).name.lower()}, {clock['n_running']} running, {clock['n_queued']} queued"]
    names = simulator.compiled.cluster.pool_names
    width = max(map(len, names))
    for name, pool in zip(names, state.pools[b]):
        total = int(pool["n_nodes"] * pool["gpus_per_node"])
        held, down = int(pool["held_gpus"]), total - int(pool["up_gpus"])
        bar = "#" * round(BAR * held / total) + "x" * round(BAR * down / total)
        lines.append(f"{name:>{width}} [{bar[:BAR]:.<{BAR}}] {held} held, {down} down of {total}")
    jobs = state.jobs[b]["state"]
    for title, code, line in (("running", JobState.RUNNING, _running), ("queued", JobState.QUEUED, _queued)):
        found = np.flatnonzero(jobs == code)
        lines += [f"{title:>7} {line(simulator, b, int(job))}" for job in found[:MOST_JOBS]]
        if found.size > MOST_JOBS:
            lines.append(f"{title:>7} and {found.size - MOST_JOBS} more")
    return "\n".join(lines)


def pixels(simulator: Simulator, b: int = 0, width: int = 256) -> NDArray[np.uint8]:
    """[2 BAND x pools, width, 3]: one bar per pool, in order: held GPUs blue, down red, free grey."""
    pools = simulator.state.pools[b]
    image = np.full((2 * BAND * pools.size, width, 3), BORDER, np.uint8)
    for place, pool in enumerate(pools):
        total = int(pool["n_nodes"] * pool["gpus_per_node"])
        held = round(width * int(pool["held_gpus"]) / total)
        up = round(width * int(pool["up_gpus"]) / total)
        bar = image[2 * BAND * place + BAND // 2 :][:BAND]
        bar[:, :held], bar[:, held:up], bar[:, up:] = HELD, FREE, DOWN
    return image


def _running(simulator: Simulator, b: int, job: int) -> str:
    config = simulator.facts.configs[simulator.state.jobs[b, job]["config"]]
    names = simulator.compiled.cluster.pool_names
    pools = "+".join(names[p] for p in (config["pool_a"], config["pool_b"]) if p >= 0)
    return f"{_job(simulator, b, job)} on {config['n_gpus']} {pools}"


def _queued(simulator: Simulator, b: int, job: int) -> str:
    request = _request(simulator, b, job)
    least, most = request["min_gpus"], request["max_gpus"]
    return f"{_job(simulator, b, job)} wants {least if least == most else f'{least}-{most}'} GPUs"


def _job(simulator: Simulator, b: int, job: int) -> str:
    request = _request(simulator, b, job)
    name = simulator.compiled.configurations.class_names[request["job_class"]]
    age_s = max(0.0, simulator.now(b) - request["submit_s"])
    return f"#{job:<4} {name}, {_span(age_s)} old, believed {_span(request['believed_s'])}, weight {request['weight']:g},"


def _request(simulator: Simulator, b: int, job: int) -> Rows:
    return simulator.facts.requests[simulator.state.clock[b]["world"], job]


def _span(seconds: float) -> str:
    """`27:05:09`."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"

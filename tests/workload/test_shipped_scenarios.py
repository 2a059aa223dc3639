"""The shipped scenarios' workloads are what their headers say: size, offered load, disjoint days."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from hetenv import scenario
from hetenv.configurations import legal_rows
from hetenv.scenario import Compiled
from hetenv.traces.paths import shared_folder
from hetenv.workload import TraceWorkload
from hetenv.workload.trace import split_of

NAMES = ("smoke", "mixed_gpus", "solar_sites", "philly_day")
DAY_S = 86_400.0


def compiled(name: str) -> Compiled:
    if name == "philly_day" and not (shared_folder() / "data/workloads/philly_sia").is_dir():
        pytest.skip("the shared data folder is absent; set HETENV_SHARED")
    return scenario.load(name).compile()


def offered_load(made: Compiled, requests: NDArray[np.void]) -> float:
    """Work of an episode over the most that could be done of it within the horizon.

    A linear program: GPU shares of each pool go to job kinds (class, GPU range), each at its best work per GPU second
    there; all kinds are served in proportion to their work.
    """
    gpus = (made.cluster.pool_nodes * made.cluster.gpus_per_node).astype(float)
    kinds, which = np.unique(requests[["job_class", "min_gpus", "max_gpus", "pools"]], return_inverse=True)
    work_per_s = np.bincount(which.reshape(-1), requests["work"]) / made.scenario.horizon_s
    uses: list[tuple[int, int, float]] = []
    for index, kind in enumerate(kinds):
        rows = made.configurations.rows_of(int(kind["job_class"]))
        rows = rows[legal_rows(rows, int(kind["min_gpus"]), int(kind["max_gpus"]), int(kind["pools"]))]
        for pool in np.unique(rows["pool_a"]):
            per_gpu = (rows["rate"] / rows["n_gpus"])[rows["pool_a"] == pool].max()
            uses.append((index, int(pool), float(per_gpu / work_per_s[index])))
    served, held = np.zeros((kinds.size, len(uses) + 1)), np.zeros((gpus.size, len(uses) + 1))
    for column, (kind_index, pool, share_per_gpu) in enumerate(uses):
        served[kind_index, column], held[pool, column] = share_per_gpu, 1.0
    served[:, -1] = -1.0
    cost = np.append(np.zeros(len(uses)), -1.0)
    best = linprog(cost, A_ub=held, b_ub=gpus, A_eq=served, b_eq=np.zeros(kinds.size))
    return float(1.0 / best.x[-1])


@pytest.mark.parametrize("name", NAMES)
def test_the_header_says_what_the_scenario_is_for(name: str) -> None:
    header = []
    for line in Path(scenario.find(name)).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        header.append(line)
    text = "\n".join(header)
    assert text.startswith("# For: ") and "# Policies differ by: " in text and "# Primary metric: " in text
    assert scenario.load(name).name == name


@pytest.mark.parametrize(
    ("name", "jobs", "load"),
    [("smoke", (30, 60), (0.8, 1.2)), ("mixed_gpus", (240, 330), (0.9, 1.1)), ("solar_sites", (150, 240), (0.4, 0.6))],
)
def test_offered_load_is_the_stated_one(name: str, jobs: tuple[int, int], load: tuple[float, float]) -> None:
    made = compiled(name)
    worlds = [made.sample(seed) for seed in made.scenario.seeds.numbers("test", 30)]
    assert jobs[0] < np.mean([world.requests.size for world in worlds]) < jobs[1]
    assert load[0] < np.mean([offered_load(made, world.requests) for world in worlds]) < load[1]
    assert not any(world.requests["rejected"].any() for world in worlds)


def test_the_median_window_of_philly_day_loads_the_pool_once() -> None:
    made = compiled("philly_day")
    workload = made.scenario.workload
    assert isinstance(workload, TraceWorkload) and workload.splits is not None
    for split, low, high in (("test", 0.9, 1.1), ("validation", 0.9, 1.1), ("train", 0.9, 1.1)):
        loads = []
        for seed in made.scenario.seeds.numbers(split, 100):  # type: ignore[arg-type]
            requests = made.sample(seed).requests
            assert requests.size <= 500 and not requests["rejected"].any()
            assert np.all((requests["submit_s"] >= 0) & (requests["submit_s"] < DAY_S))
            loads.append((requests["work"] * requests["min_gpus"]).sum() / (made.cluster.n_gpus * DAY_S))
        assert low <= np.median(loads) <= high, split


def test_the_seed_ranges_of_a_scenario_read_the_split_of_their_name() -> None:
    seeds = scenario.load("philly_day").seeds
    for split in ("train", "validation", "test"):
        numbers = seeds.numbers(split)  # type: ignore[arg-type]
        assert split_of(numbers[0]) == split_of(numbers[-1]) == split

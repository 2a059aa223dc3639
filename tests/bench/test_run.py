"""Single runs and benchmarks: reproducible, resumable, equal in one process and in several."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from hetenv.bench.bench import bench
from hetenv.bench.episodes import EpisodeFile
from hetenv.bench.golden import golden_hash
from hetenv.bench.run import RESULT_KEYS, TIMES, run
from hetenv.errors import ScenarioError, TraceError
from hetenv.scenario import Scenario, load

from .policies import Dice, FirstRow
from .worlds import compiled

PROMISED = """scenario, policy, seed, n_jobs, n_finished, n_rejected, jct_mean_s, jct_p99_s, jct_lower_bound_mean_s, makespan_s,
wait_mean_s, utilisation_available, utilisation_nominal, n_preempted, n_reconfigured, lost_gpu_s, energy_kwh, renewable_kwh, carbon_kg,
cost_usd, objective, n_illegal, decisions, wall_s""".replace(",", " ").split()


@pytest.fixture(scope="module")
def smoke() -> Scenario:
    return load("smoke")


def timeless(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key not in TIMES}


def test_a_result_has_the_promised_keys_and_is_plain_data(smoke: Scenario) -> None:
    result = run(smoke, FirstRow(), 3)
    assert set(PROMISED) <= set(result)
    assert tuple(result) == RESULT_KEYS
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert (result["scenario"], result["policy"], result["seed"]) == ("smoke", "first_row", 3)
    assert result["decisions"] > 0 and result["wall_s"] > 0 and result["decision_max_s"] >= result["decision_mean_s"]


def test_runs_are_reproducible_and_seeds_differ(smoke: Scenario) -> None:
    first, again, other = run(smoke, Dice("dice"), 5), run(smoke, Dice("dice"), 5), run(smoke, Dice("dice"), 6)
    assert timeless(first) == timeless(again)
    assert first["objective"] != other["objective"]


def test_all_policies_meet_the_same_jobs(smoke: Scenario) -> None:
    assert run(smoke, Dice("dice"), 5)["n_jobs"] == run(smoke, FirstRow(), 5)["n_jobs"]


@pytest.mark.parametrize(("policy", "seed"), [("no_such_rule", 0), ("first_row", -1)])
def test_unknown_policies_and_bad_seeds_are_named(smoke: Scenario, policy: str, seed: int) -> None:
    with pytest.raises(ScenarioError):
        run(smoke, policy if policy == "no_such_rule" else FirstRow(), seed)


def test_golden_hash_follows_the_dynamics(smoke: Scenario) -> None:
    base = golden_hash(smoke.compile())
    assert base == golden_hash(load("smoke").compile())
    slower = smoke.model_copy(update={"horizon_s": 20000.0})
    assert golden_hash(slower.compile()) != base
    golden_hash(compiled(horizon_s=500.0))


def test_benchmark_is_the_same_in_one_process_and_in_two(smoke: Scenario, tmp_path: Path) -> None:
    policies = [FirstRow(), Dice("dice")]
    here = bench([smoke], policies, range(3), processes=1)
    there = bench([smoke], policies, range(3), processes=2, folder=tmp_path)
    assert [timeless(row) for row in here.episodes] == [timeless(row) for row in there.episodes]
    assert {(row.policy, row.n) for row in here.rows if row.metric == "objective"} == {("first_row", 3), ("dice", 3)}
    assert "first_row" in here.table and (tmp_path / "table.md").read_text().startswith("### smoke")
    with (tmp_path / "comparison.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(here.rows)


def test_an_interrupted_benchmark_goes_on_where_it_was(smoke: Scenario, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(row: object, n_finished: int, n_tasks: int) -> None:
        if n_finished == 2:
            raise Stop

    with pytest.raises(Stop):
        bench([smoke], [FirstRow(), Dice("dice")], range(2), processes=1, folder=tmp_path, on_episode=stop)
    path = tmp_path / "episodes.csv"
    assert len(path.read_text().splitlines()) == 1 + 2
    path.write_text(path.read_text() + "smoke,0,half-wri")  # killed while writing
    run_again: list[Any] = []
    found = bench(
        [smoke], [FirstRow(), Dice("dice")], range(2), processes=1, folder=tmp_path, on_episode=lambda row, *_: run_again.append(row)
    )
    assert [(row["policy"], row["seed"]) for row in run_again] == [("dice", 0), ("dice", 1)]
    fresh = bench([smoke], [FirstRow(), Dice("dice")], range(2), processes=1)
    assert [timeless(row) for row in found.episodes] == [timeless(row) for row in fresh.episodes]


def test_episodes_of_other_dynamics_are_run_again(smoke: Scenario, tmp_path: Path) -> None:
    bench([smoke], [FirstRow()], range(2), processes=1, folder=tmp_path)
    path = tmp_path / "episodes.csv"
    path.write_text(path.read_text().replace(golden_hash(smoke.compile()), "0" * 12))
    found = bench([smoke], [FirstRow()], range(2), processes=1, folder=tmp_path)
    assert {row["golden"] for row in found.episodes} == {golden_hash(smoke.compile())}


def test_a_file_of_another_kind_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "episodes.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TraceError, match=r"episodes\.csv"):
        EpisodeFile(tmp_path / "episodes.csv")
    assert (tmp_path / "episodes.csv").read_text() == "a,b\n1,2\n"


def test_bad_benchmarks_are_named(smoke: Scenario) -> None:
    for policies, seeds, baseline, match in (
        ([], [0], None, "policy"),
        ([FirstRow()], [], None, "seeds"),
        ([FirstRow(), FirstRow()], [0], None, "twice"),
        ([FirstRow()], [0], "fifo", "baseline"),
    ):
        with pytest.raises(ScenarioError, match=match):
            bench([smoke], policies, seeds, baseline=baseline, processes=1)

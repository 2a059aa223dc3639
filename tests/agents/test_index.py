"""The `index` rule: the search loop and the policy are one rule, whatever the parameters."""

from pathlib import Path

import numpy as np
import pytest

from agents.heuristics import index as module
from agents.heuristics.index import DEFAULT, Index, index, named, tuned, vector
from agents.heuristics.index_episodes import Episodes
from agents.heuristics.tune import _Draws
from hetenv.bench.run import run
from hetenv.errors import ScenarioError
from hetenv.sim.tables import TOTAL

from .episodes import play
from .short import NAMES, compiled, short_world

pytestmark = pytest.mark.compiled
N_SETTINGS = 8


@pytest.mark.parametrize("name", NAMES)
def test_search_and_policy_make_the_same_decisions(name: str) -> None:
    made, worlds = compiled(name), [short_world(name, seed) for seed in range(2)]
    draws, searched = _Draws(made.scenario, 1), Episodes(made, worlds)
    weights = made.scenario.objective.vector()
    for parameters in (draws.start, index(name).parameters, *(draws.afresh() for _ in range(N_SETTINGS))):
        objectives, decisions = searched.play(parameters)
        states = [play(made, world, Index(named(parameters))).simulator.state for world in worlds]
        assert objectives.tolist() == [float(state.ledger[0, TOTAL] @ weights) for state in states]
        assert decisions == sum(int(state.clock["decisions"][0]) for state in states)


def test_search_scores_whole_worlds_as_the_benchmark_does() -> None:
    made = compiled("smoke")
    seeds = list(made.scenario.seeds.numbers("validation", 3))
    searched = Episodes(made, [made.sample(seed) for seed in seeds])
    for parameters in (vector(DEFAULT), index("smoke").parameters):
        expected = [run(made.scenario, Index(named(parameters)), seed)["objective"] for seed in seeds]
        assert searched.play(parameters)[0] == pytest.approx(expected, rel=1e-12)


def test_a_trial_leaves_nothing_behind() -> None:
    made = compiled("smoke")
    searched = Episodes(made, [short_world("smoke", seed) for seed in range(3)])
    draws = _Draws(made.scenario, 2)
    first, second = draws.afresh(), draws.afresh()
    alone, _ = searched.play(first)
    searched.play(second)
    assert searched.play(first)[0].tolist() == alone.tolist()
    assert searched.play(first, 1, 2)[0].tolist() == alone[1:2].tolist()


def test_parameters_have_names() -> None:
    assert named(vector(DEFAULT)) == DEFAULT
    for scenario, parameters in tuned().items():
        assert set(parameters) == set(DEFAULT) and scenario in NAMES
    with pytest.raises(ScenarioError, match="'patience' is missing"):
        vector({name: value for name, value in DEFAULT.items() if name != "patience"})
    with pytest.raises(ScenarioError, match="'patients' is unknown"):
        vector({**DEFAULT, "patients": 1.0})


def test_scenarios_without_tuned_parameters_use_the_defaults() -> None:
    assert np.array_equal(index(None).parameters, vector(DEFAULT))
    assert np.array_equal(index("no_such_scenario").parameters, vector(DEFAULT))


def test_kept_parameters_are_what_the_rule_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TUNED", tmp_path / "tuned.csv")
    tuned.cache_clear()
    found = {"trials": 3, "seed": 0, "train_worlds": 1, "validation_worlds": 1, "validation_objective": 2.0}
    module.keep({**found, "scenario": "smoke", "parameters": {**DEFAULT, "time_power": 0.25}})
    module.keep({**found, "scenario": "mixed_gpus", "parameters": DEFAULT})
    module.keep({**found, "scenario": "smoke", "parameters": {**DEFAULT, "time_power": 0.5}})
    try:
        assert sorted(tuned()) == ["mixed_gpus", "smoke"]
        assert named(index("smoke").parameters) == {**DEFAULT, "time_power": 0.5}
    finally:
        tuned.cache_clear()

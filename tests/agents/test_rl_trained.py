"""Trained networks as policies: files, greedy legal play, and the same episodes in the benchmark as in training's validation."""
# ruff: noqa: E402

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from agents.rl import load_trained
from agents.rl.network import CandidateNetwork, NetworkConfig
from agents.rl.play import play
from agents.rl.trained import TrainedPolicy, save
from agents.rl.untrained import save_untrained
from hetenv import scenario as scenarios
from hetenv.bench.run import run_compiled
from hetenv.errors import ScenarioError
from hetenv.policy import Policy, make_policy
from hetenv.scenario import Compiled


@pytest.fixture(scope="module")
def smoke() -> Compiled:
    return scenarios.load("smoke").compile()


def network(seed: int = 0) -> CandidateNetwork:
    torch.manual_seed(seed)
    found = CandidateNetwork(NetworkConfig())
    for parameter in found.actor.score.parameters():
        torch.nn.init.normal_(parameter)
    return found


def test_saved_and_loaded_it_decides_alike(tmp_path: Path, smoke: Compiled) -> None:
    policy = TrainedPolicy("some", network())
    save(tmp_path / "policy.pt", policy.network, {"name": "some", "scenario": "smoke", "rule": "", "steps": 1})
    loaded = load_trained(str(tmp_path))
    assert loaded.name == "some" and isinstance(loaded, Policy)
    for name, weights in policy.network.state_dict().items():
        assert torch.equal(loaded.network.state_dict()[name], weights)
    seeds = range(3)
    np.testing.assert_array_equal(play(smoke, loaded, seeds).objective, play(smoke, policy, seeds).objective)


def test_the_benchmark_sees_the_same_episodes_without_an_illegal_command(smoke: Compiled) -> None:
    policy = TrainedPolicy("some", network(1))
    played = play(smoke, policy, range(12))
    decisions = 0
    for seed in range(12):
        result = run_compiled(smoke, policy, seed)
        assert result["objective"] == pytest.approx(played.objective[seed], rel=1e-9)
        assert result["n_illegal"] == 0
        decisions += int(result["decisions"])
    assert decisions == played.decisions.sum() > 1000


def test_one_network_plays_other_scenarios() -> None:
    policy = TrainedPolicy("some", network(2))
    mixed = scenarios.load("mixed_gpus").compile()
    result = run_compiled(mixed, policy, 0)
    assert result["n_illegal"] == 0 and result["decisions"] > 100


def test_an_untrained_network_is_found_by_its_folder(tmp_path: Path) -> None:
    save_untrained(tmp_path / "run", "smoke", seed=3)
    assert make_policy(f"rl:{tmp_path / 'run'}").name == "untrained"


def test_what_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no run folder of this name"):
        load_trained("no_such_thing")
    with pytest.raises(ScenarioError, match="no trained network there"):
        load_trained(str(tmp_path))
    (tmp_path / "policy.pt").write_bytes(b"nonsense")
    with pytest.raises(ScenarioError, match="not a network of this version"):
        load_trained(str(tmp_path))

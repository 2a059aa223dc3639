"""Trained networks as policies: files, greedy legal play, and the same episodes in the benchmark as in training's validation."""
# ruff: noqa: E402

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from agents.rl import load_trained
from agents.rl.network import CandidateNetwork, NetworkConfig, actor_weights
from agents.rl.play import play
from agents.rl.scorer import Scorer
from agents.rl.trained import TrainedPolicy, save
from agents.rl.untrained import save_untrained
from hetenv import scenario as scenarios
from hetenv.adapters.sb3 import HetVecEnv
from hetenv.bench.run import run_compiled
from hetenv.errors import ScenarioError
from hetenv.policy import Policy, make_policy
from hetenv.scenario import Compiled


@pytest.fixture(scope="module")
def smoke() -> Compiled:
    return scenarios.load("smoke").compile()


def network(seed: int = 0, rule_bonus: float = 0.0) -> CandidateNetwork:
    torch.manual_seed(seed)
    found = CandidateNetwork(NetworkConfig(rule_bonus=rule_bonus))
    for parameter in found.actor.score.parameters():
        torch.nn.init.normal_(parameter)
    return found


def scorer(seed: int = 0, rule_bonus: float = 0.0) -> Scorer:
    return Scorer(actor_weights(network(seed, rule_bonus)))


def test_saved_and_loaded_it_decides_alike(tmp_path: Path, smoke: Compiled) -> None:
    policy = TrainedPolicy("some", scorer())
    save(tmp_path / "policy.npz", policy.scorer.weights, {"name": "some", "scenario": "smoke", "rule": "", "steps": 1})
    loaded = load_trained(str(tmp_path))
    assert loaded.name == "some" and isinstance(loaded, Policy)
    for name, weights in policy.scorer.weights.items():
        np.testing.assert_array_equal(loaded.scorer.weights[name], weights)
    seeds = range(3)
    np.testing.assert_array_equal(play(smoke, loaded, seeds).objective, play(smoke, policy, seeds).objective)


def test_the_benchmark_sees_the_same_episodes_without_an_illegal_command(smoke: Compiled) -> None:
    policy = TrainedPolicy("some", scorer(1, 4.0), make_policy("index", "smoke"))
    played = play(smoke, policy, range(12))
    decisions = 0
    for seed in range(12):
        result = run_compiled(smoke, policy, seed)
        assert result["objective"] == pytest.approx(played.objective[seed], rel=1e-9)
        assert result["n_illegal"] == 0
        decisions += int(result["decisions"])
    assert decisions == played.decisions.sum() > 500


def test_numpy_scores_as_torch_does(smoke: Compiled) -> None:
    actor, env = network(3, 2.0), HetVecEnv(smoke, 4, rule=make_policy("index", "smoke"))
    obs = env.reset()
    for _ in range(60):
        legal = env.action_masks()
        with torch.no_grad():
            expected = actor.actor({name: torch.as_tensor(table) for name, table in obs.items()}).numpy()
        found = Scorer(actor_weights(actor)).scores(obs, legal)
        np.testing.assert_allclose(found[legal], expected[legal], rtol=1e-4, atol=1e-5)
        assert (found[~legal] == -np.inf).all()
        obs, _, _, _ = env.step(found.argmax(1))


def test_playing_needs_no_torch(tmp_path: Path) -> None:
    save_untrained(tmp_path, "smoke", seed=0)
    code = f"import sys; from hetenv.policy import make_policy; make_policy('rl:{tmp_path}'); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).resolve().parents[2])


def test_one_network_plays_other_scenarios() -> None:
    policy = TrainedPolicy("some", scorer(2))
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
    (tmp_path / "policy.npz").write_bytes(b"nonsense")
    with pytest.raises(ScenarioError, match="not a trained network"):
        load_trained(str(tmp_path))

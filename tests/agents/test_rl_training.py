"""Training: the scales it starts with, exact resumption, and what it leaves behind."""
# ruff: noqa: E402

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sb3_contrib")

from agents.rl.maskable_ppo import TimedMaskablePPO
from agents.rl.sb3_trainer import CHECKPOINT, FirstRow, Settings, train
from agents.rl.scales import bonus_for_entropy, mean_entropy, measure
from agents.rl.validation import Curve, Task
from hetenv import scenario as scenarios
from hetenv.scenario import Compiled

SETTINGS = Settings(n_envs=4, group_size=2, n_steps=16, batch_size=32, n_epochs=1, critic_updates=1, validate_every=2)


@pytest.fixture(scope="module")
def smoke() -> Compiled:
    return scenarios.load("smoke").compile()


def task(smoke: Compiled, folder: Path) -> Task:
    return Task(smoke, FirstRow(), "", "tiny", 0, folder, n_validation=3)


def weights(folder: Path) -> dict[str, "torch.Tensor"]:
    return TimedMaskablePPO.load(folder / CHECKPOINT / "model.zip", device="cpu").policy.state_dict()


def test_the_rule_bonus_gives_the_wanted_entropy() -> None:
    n_legal = np.array([2, 5, 30, 60])
    for ranked in (True, False):
        assert mean_entropy(n_legal, bonus_for_entropy(n_legal, 0.3, ranked), ranked) == pytest.approx(0.3, abs=1e-6)
        assert mean_entropy(np.array([8]), 0.0, ranked) == pytest.approx(np.log(8))
    expected = torch.distributions.Categorical(logits=3.0 * torch.tensor([1.0, 7 / 8, 6 / 8])).entropy()
    assert mean_entropy(np.array([3]), 3.0) == pytest.approx(float(expected), abs=1e-6)


def test_scales_bring_the_rules_return_to_order_one(smoke: Compiled) -> None:
    scales = measure(smoke, FirstRow(), 7200.0, 0.3)
    assert scales.reward_scale > 0 and scales.value_centre == pytest.approx(-2.0)
    assert scales.decisions_per_episode > 10 and scales.mean_legal_rows > 1


def test_resumed_training_equals_uninterrupted_training(smoke: Compiled, tmp_path: Path) -> None:
    train(task(smoke, tmp_path / "one"), SETTINGS, 256)
    train(task(smoke, tmp_path / "two"), SETTINGS, 128)
    curve = train(task(smoke, tmp_path / "two"), SETTINGS, 256, resume=True)
    assert [point.steps for point in curve.points] == [0, 128, 256]
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_first_updates_move_the_critic_only(smoke: Compiled, tmp_path: Path) -> None:
    train(task(smoke, tmp_path / "one"), SETTINGS, 64)
    train(task(smoke, tmp_path / "two"), SETTINGS, 128)
    model = TimedMaskablePPO.load(tmp_path / "one" / CHECKPOINT / "model.zip", device="cpu")
    moved = {model.policy.optimizer.state[p] != {} for p in model.policy.network.critic.parameters()}
    still = {model.policy.optimizer.state[p] == {} for p in model.policy.network.actor.parameters()}
    assert moved == still == {True}
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    assert any(not torch.equal(one[name], two[name]) for name in one if "actor" in name)


def test_the_best_validation_is_kept_and_earlier_ones_win_ties(smoke: Compiled) -> None:
    from agents.rl.play import Played

    def played(*objective: float) -> Played:
        n = len(objective)
        return Played(np.array(objective), np.zeros(n, bool), np.ones(n, np.int64), np.ones(n), np.ones(1, np.int64))

    curve = Curve({})
    assert curve.add(0, 0.0, played(3.0, 5.0))
    assert not curve.add(10, 1.0, played(5.0, 3.0))
    assert curve.add(20, 2.0, played(2.0, 5.0))
    assert curve.best.steps == 20 and curve.best.versus_start == -0.5

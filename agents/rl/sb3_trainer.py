"""Trains a MaskablePPO on one scenario: checkpoints that resume exactly, validation on fixed worlds, the best network kept."""

import pickle
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure

from hetenv.adapters.sb3 import HetVecEnv
from hetenv.errors import ScenarioError
from hetenv.policy import Decision

from .maskable_ppo import CandidatePolicy, TimedMaskablePPO, TimedRolloutBuffer
from .network import NetworkConfig
from .scales import measure
from .validation import Curve, Task, validate

CHECKPOINT: Final = "checkpoint"


@dataclass(frozen=True)
class Settings:
    """Knobs of MaskablePPO; docs/agents.md tells what was tried."""

    n_envs: int = 64
    """Episodes in step."""
    group_size: int = 8
    """Of these, how many begin each rollout from one common state (1: all on their own)."""
    n_steps: int = 128
    """Decisions of each between updates."""
    batch_size: int = 512
    n_epochs: int = 3
    learning_rate: float = 1e-3
    clip_range: float = 0.2
    target_kl: float = 0.03
    """An update stops at 1.5 times this divergence."""
    entropy_bonus: float = 0.0
    tau_s: float = 7200.0
    """Time constant of the discount."""
    decay_s: float = 3600.0
    """Time constant of the advantages' traces."""
    start_entropy: float = 0.5
    """Mean entropy (nats) at which the policy starts around its rule."""
    critic_updates: int = 2
    """Updates at the start that move only the critic."""
    validate_every: int = 4
    """Updates between validations (and checkpoints)."""


OnStep = Callable[[int, str], None]
"""Called with the decisions so far and a short note."""


def train(task: Task, settings: Settings, steps: int, resume: bool = False, on_step: OnStep | None = None) -> Curve:
    """Train until `steps` decisions are made in all (whole rollouts: rounded up); leaves the best network in `folder/policy.npz`.

    Args:
        resume: go on from the folder's checkpoint, exactly as if training had not stopped.
    """
    torch.set_num_threads(1)
    model, curve = _resumed(task.folder / CHECKPOINT) if resume else _begun(task, settings, steps)
    model.set_logger(configure(str(task.folder / "tensorboard"), ["tensorboard"]))
    remaining = steps - model.num_timesteps
    if remaining > 0:
        model.learn(
            remaining, _Keeper(task, curve, settings.validate_every, on_step), log_interval=1, reset_num_timesteps=False
        )
    return curve


def _begun(task: Task, settings: Settings, steps: int) -> tuple[TimedMaskablePPO, Curve]:
    if settings.n_envs % settings.group_size:
        raise ScenarioError(f"n_envs: must be a multiple of group_size {settings.group_size} (got {settings.n_envs})")
    scales = measure(task.compiled, task.rule or FirstRow(), settings.tau_s, settings.start_entropy)
    env = HetVecEnv(task.compiled, settings.n_envs, reward_scale=scales.reward_scale, rule=task.rule, seed=task.seed)
    network = NetworkConfig(
        rule_bonus=scales.rule_bonus if task.rule is not None else 0.0, value_centre=scales.value_centre
    )
    n_steps = min(settings.n_steps, max(1, -(-steps // settings.n_envs)))
    model = TimedMaskablePPO(
        CandidatePolicy,
        env,
        learning_rate=settings.learning_rate,
        n_steps=n_steps,
        batch_size=min(settings.batch_size, n_steps * settings.n_envs),
        n_epochs=settings.n_epochs,
        gamma=1.0,
        clip_range=settings.clip_range,
        target_kl=settings.target_kl,
        ent_coef=settings.entropy_bonus,
        max_grad_norm=1.0,
        critic_updates=settings.critic_updates,
        policy_kwargs={"network": network.asdict()},
        rollout_buffer_class=TimedRolloutBuffer,
        rollout_buffer_kwargs={
            "tau_s": settings.tau_s,
            "decay_s": settings.decay_s,
            "group_size": settings.group_size,
        },
        seed=task.seed,
        device="cpu",
    )
    return model, Curve(scales.asdict())


def _resumed(folder: Path) -> tuple[TimedMaskablePPO, Curve]:
    with (folder / "progress.pkl").open("rb") as file:
        progress = pickle.load(file)  # our own file, in the run folder
    model = TimedMaskablePPO.load(folder / "model.zip", env=progress["env"], device="cpu", force_reset=False)
    torch.set_rng_state(progress["torch"])  # SB3 samples actions from torch's state and minibatches from numpy's
    np.random.set_state(progress["numpy"])  # noqa: NPY002
    random.setstate(progress["python"])
    return model, progress["curve"]


def _checkpoint(model: TimedMaskablePPO, curve: Curve, folder: Path) -> None:
    """Write everything that goes on: weights, optimiser, environments, random states, curve. The old one stays until the new is whole."""
    fresh = folder / f"{CHECKPOINT}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    model.save(fresh / "model.zip")
    progress = {
        "env": model.get_env(),
        "curve": curve,
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state(),  # noqa: NPY002
        "python": random.getstate(),
    }
    with (fresh / "progress.pkl").open("wb") as file:
        pickle.dump(progress, file)
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    fresh.rename(folder / CHECKPOINT)


class FirstRow:
    """Picks the first legal row other than `wait`: what scales are measured with where there is no rule."""

    name = "first_row"

    def reset(self, seed: int) -> None:
        """Nothing to begin."""

    def act(self, decision: Decision) -> np.ndarray:
        """[B]."""
        return decision.legal[:, 1:].argmax(1) + 1


class _Keeper(BaseCallback):
    """Between updates: progress, and every so often a validation and a checkpoint."""

    def __init__(self, task: Task, curve: Curve, validate_every: int, on_step: OnStep | None) -> None:
        super().__init__()
        self._validate_every = validate_every
        self._task, self._curve, self._on_step_done = task, curve, on_step
        self._train_s = curve.points[-1].train_s if curve.points else 0.0
        self._since_s = time.perf_counter()

    def _on_rollout_start(self) -> None:
        if self.model.updates % self._validate_every == 0:
            self._validate()

    def _on_training_end(self) -> None:
        self._validate()

    def _on_step(self) -> bool:
        if self._on_step_done is not None:
            self._on_step_done(self.num_timesteps, self._note())
        return True

    def _note(self) -> str:
        last = self._curve.points[-1]
        return f"validation {last.objective:.1f} ({100 * last.versus_start / max(1e-9, last.objective - last.versus_start):+.1f} %)"

    def _validate(self) -> None:
        steps = self.model.num_timesteps
        if self._curve.points and self._curve.points[-1].steps == steps:
            return
        self._train_s += time.perf_counter() - self._since_s
        model = self.model
        point = validate(self._task, model.policy.network, self._curve, steps, self._train_s)
        self.logger.record("validation/objective", point.objective)
        self.logger.record("validation/versus_start", point.versus_start)
        self.logger.record("validation/truncated_episodes", point.truncated_episodes)
        self.logger.record("time/decisions_per_s", steps / max(1e-9, self._train_s))
        self.logger.dump(steps)
        _checkpoint(model, self._curve, self._task.folder)
        self._since_s = time.perf_counter()

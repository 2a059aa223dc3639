"""HetVectorEnv: B simulations of one scenario stepped in one compiled call, as a Gymnasium vector environment."""

from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hetenv.env.core import KEEP, EnvCore, RewardLike
from hetenv.env.episodes import Episodes
from hetenv.env.spaces import Observation, ObservationKind, Observer, copied, observation_space
from hetenv.objective import Account
from hetenv.scenario import Scenario, load
from hetenv.sim.tables import DELTA, NONE, Status


class HetVectorEnv(VectorEnv[Observation, NDArray[np.int64], NDArray[Any]]):
    """B independent simulations; each equals a HetEnv of the same seed, bit for bit, in every autoreset mode.

    Args:
        num_envs: B.
        autoreset_mode: NEXT_STEP (default), SAME_STEP or DISABLED, as AutoresetMode or its name or value.
        max_episode_steps: truncates an episode after so many steps; default: never.
        The others as HetEnv's. With a seed s, simulation b has seed s + b.
    """

    def __init__(
        self,
        num_envs: int = 1,
        scenario: "str | Path | Scenario" = "smoke",
        seed: int | None = None,
        observation: ObservationKind = "dict",
        reward: RewardLike = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.scenario = load(scenario)
        compiled = self.scenario.compile()
        self.num_envs, self.render_mode = num_envs, render_mode
        self.core = EnvCore(compiled, num_envs, reward)
        self.autoreset_mode = _mode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self._episodes = [Episodes(compiled, None if seed is None else seed + b) for b in range(num_envs)]
        self._observer = Observer(self.core.layout, observation)
        self.single_observation_space = observation_space(self.core.layout, self.core.n_actions, observation)
        self.single_action_space = spaces.Discrete(self.core.n_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._max_steps = max_episode_steps
        self._steps = np.zeros(num_envs, np.int64)
        self._mask = np.zeros((num_envs, self.core.n_actions), np.int8)
        self._over = np.ones(num_envs, bool)
        self._discount_per_s = self.scenario.objective.discount_per_s

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin episodes in all simulations, or in those of `options["reset_mask"]` ([B] bool)."""
        chosen = np.ones(self.num_envs, bool)
        if options is not None and "reset_mask" in options:
            chosen = np.asarray(options["reset_mask"], bool)
        if isinstance(seed, int | np.integer):
            seed = [int(seed) + b for b in range(self.num_envs)]
        seeds = [None] * self.num_envs if seed is None else seed
        if seed is not None:
            super().reset(seed=seeds[0])
        flat, mask = self._begin({int(b): seeds[b] for b in np.flatnonzero(chosen)})
        return self._observer.batch(flat, mask), self._info()

    def _begin(self, seeds: dict[int, int | None]) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        flat, mask = self.core.reset_many({b: self._episodes[b].begin(seed) for b, seed in seeds.items()})
        chosen = list(seeds)
        self._steps[chosen] = 0
        self._mask = mask
        self._over[chosen] = False
        return flat, mask

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Observation, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """One step of all simulations; those that are over begin anew as the autoreset mode says.

        Raises:
            ResetNeeded: a simulation is over and autoreset is disabled.
        """
        actions = np.maximum(np.asarray(actions, np.int64), NONE)
        stale = self._over.copy()
        if stale.any() and self.autoreset_mode == AutoresetMode.DISABLED:
            raise ResetNeeded(f"simulations {np.flatnonzero(stale).tolist()} are over; reset them with a reset_mask")
        actions[stale] = KEEP
        flat, mask, rewards = self.core.step(actions)
        self._steps += ~stale
        status = self.core.simulator.state.clock["status"]
        terminated, truncated = status == Status.TERMINATED, status == Status.TRUNCATED
        if self._max_steps is not None:
            truncated |= (self._steps >= self._max_steps) & ~terminated
        terminated, truncated = terminated & ~stale, truncated & ~stale
        self._mask, self._over = mask, terminated | truncated
        ended = self._over.copy()
        if self.autoreset_mode == AutoresetMode.NEXT_STEP and stale.any():
            fresh, masks = self._begin({int(b): None for b in np.flatnonzero(stale)})
            flat[stale], mask[stale] = fresh[stale], masks[stale]
            self._mask = mask
        info = self._info(stale)
        if self.autoreset_mode == AutoresetMode.SAME_STEP and ended.any():
            info |= self._final(self._observer.batch(flat, mask), ended, info)
            fresh, masks = self._begin({int(b): None for b in np.flatnonzero(ended)})
            flat[ended], mask[ended] = fresh[ended], masks[ended]
            self._mask = mask
            info["action_mask"] = mask.copy()
        return self._observer.batch(flat, mask), rewards, terminated, truncated, info

    def _final(self, observation: Observation, ended: NDArray[np.bool_], info: dict[str, Any]) -> dict[str, Any]:
        """`final_obs` and `final_info` of the simulations that ended in this step."""
        finals = np.full(self.num_envs, None, dtype=object)
        for b in np.flatnonzero(ended):
            finals[b] = copied(observation, int(b))
        last = {name: value for name, value in info.items() if not name.startswith("_")}
        return {"final_obs": finals, "_final_obs": ended.copy(), "final_info": last, "_final_info": ended.copy()}

    def action_masks(self) -> NDArray[np.bool_]:
        """[B, A] legal rows of the present decisions."""
        return self._mask == 1

    def _info(self, began: NDArray[np.bool_] | None = None) -> dict[str, Any]:
        ledger = self.core.simulator.state.ledger[:, DELTA]
        elapsed_s = ledger[:, Account.ELAPSED_S].copy()
        if began is not None:
            elapsed_s[began] = 0.0
        return {
            "action_mask": self._mask.copy(),
            "elapsed_s": elapsed_s,
            "discount": np.exp(-self._discount_per_s * elapsed_s),
        }

    def close_extras(self, **kwargs: Any) -> None:
        """Nothing to close."""


def _mode(mode: AutoresetMode | str) -> AutoresetMode:
    if isinstance(mode, AutoresetMode):
        return mode
    for known in AutoresetMode:
        if mode in (known.name, known.value, known.name.lower()):
            return known
    raise ValueError(f"autoreset_mode: unknown {mode!r} (known: {', '.join(known.name for known in AutoresetMode)})")

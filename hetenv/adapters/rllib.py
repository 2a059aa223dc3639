"""RLlib (new API stack): environments whose observation has exactly the keys `observations` and `action_mask` (float32).

    config.environment(hetenv_vector, env_config={"scenario": "mixed_gpus"})
    config.env_runners(gym_env_vectorize_mode="vector_entry_point", num_envs_per_env_runner=64)

ray itself is not imported here. RLlib needs the autoreset mode NEXT_STEP of a vector environment; no other is offered.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv, VectorObservationWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hetenv.env.single import HetEnv
from hetenv.env.vector import HetVectorEnv

MaskedObservation = dict[str, NDArray[np.float32]]


class HetRLlibEnv(gymnasium.ObservationWrapper[MaskedObservation, Any, Any]):
    """One simulation, made from RLlib's config mapping: HetEnv's arguments but `observation`."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(HetEnv(**{**(config or {}), "observation": "flat"}))
        self._n_actions = n_actions(self.env.action_space)
        self.observation_space = masked_space(self.env.observation_space, self._n_actions)

    def observation(self, observation: NDArray[np.float32]) -> MaskedObservation:
        """Split the flat observation."""
        return split(observation, self._n_actions)


class HetRLlibVectorEnv(VectorObservationWrapper):
    """B simulations in one compiled call, in autoreset mode NEXT_STEP."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        arguments = {**config, "observation": "flat", "autoreset_mode": AutoresetMode.NEXT_STEP}
        env = HetVectorEnv(**arguments)
        super().__init__(env)
        self._n_actions = n_actions(env.single_action_space)
        self.single_observation_space = masked_space(env.single_observation_space, self._n_actions)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def observations(self, observations: NDArray[np.float32]) -> MaskedObservation:  # type: ignore[override]
        """Split the flat observations."""
        return split(observations, self._n_actions)


def hetenv_vector(config: Mapping[str, Any]) -> VectorEnv[Any, Any, Any]:
    """Creator for `gym_env_vectorize_mode="vector_entry_point"`: RLlib calls it with the config and `num_envs`."""
    return HetRLlibVectorEnv(config)


def n_actions(space: spaces.Space[Any]) -> int:
    """A: actions of a Discrete space."""
    assert isinstance(space, spaces.Discrete)
    return int(space.n)


def masked_space(flat: spaces.Space[Any], size: int) -> spaces.Dict:
    """The space of a flat observation [D + A], split."""
    assert flat.shape is not None
    return spaces.Dict(
        {
            "observations": spaces.Box(-1.0, 1.0, (flat.shape[0] - size,), np.float32),
            "action_mask": spaces.Box(0.0, 1.0, (size,), np.float32),
        }
    )


def split(flat: NDArray[np.float32], size: int) -> MaskedObservation:
    """Observations and masks from flat [..., D + A]."""
    return {"observations": flat[..., :-size].copy(), "action_mask": flat[..., -size:].copy()}

"""sb3-contrib's MaskablePPO with the candidate-scoring network and with time instead of decisions as the measure of delay.

Most decisions take no simulated time, so a discount per decision would mean nothing. Rewards are discounted by exp(-elapsed / tau) and the
advantages' traces decay by exp(-elapsed / decay), with the `elapsed_s` that the adapter reports for each step.
"""

from typing import Any, Final

import numpy as np
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor, nn

from .advantages import advantages_by_time, without_group_mean
from .network import CandidateNetwork, NetworkConfig

GROUP_BIN_S: Final = 900.0
"""Simulated time over which the advantages of replicas are compared."""


class Tables(BaseFeaturesExtractor):
    """Hands the observation tables on as they are."""

    def __init__(self, observation_space: spaces.Dict) -> None:
        super().__init__(observation_space, features_dim=1)

    def forward(self, observations: dict[str, Tensor]) -> dict[str, Tensor]:
        return observations


class _Extractor(CandidateNetwork):
    """The network under the names by which SB3 policies call it."""

    def forward_actor(self, features: dict[str, Tensor]) -> Tensor:
        return self.actor(features)

    def forward_critic(self, features: dict[str, Tensor]) -> Tensor:
        return self.critic(features)


class CandidatePolicy(MaskableActorCriticPolicy):
    """MaskablePPO policy whose logits are the scores of candidate rows.

    Args:
        network: fields of NetworkConfig.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Discrete,
        lr_schedule: Schedule,
        network: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.network_config = NetworkConfig(**(network or {}))
        kwargs = {**kwargs, "features_extractor_class": Tables}
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        self.mlp_extractor = _Extractor(self.network_config)
        self.action_net, self.value_net = nn.Identity(), nn.Identity()
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "network": self.network_config.asdict()}

    @property
    def network(self) -> CandidateNetwork:
        """The network with its present weights."""
        return self.mlp_extractor


class TimedRolloutBuffer(MaskableDictRolloutBuffer):
    """Rollouts whose discount and trace decay follow the simulated time of each step.

    Args:
        tau_s: time constant of the discount.
        decay_s: time constant of the advantages' traces.
        group_size: environments that begin each rollout from one state; their common advantage is taken out. 1: none.
    """

    def __init__(self, *args: Any, tau_s: float, decay_s: float, group_size: int = 1, **kwargs: Any) -> None:
        self.tau_s, self.decay_s, self.group_size = tau_s, decay_s, group_size
        super().__init__(*args, **kwargs)

    def reset(self) -> None:
        super().reset()
        self.elapsed_s = np.full((self.buffer_size, self.n_envs), np.nan)

    def note(self, infos: list[dict[str, Any]]) -> None:
        """Keep the elapsed time of the step that `add` will store next."""
        self.elapsed_s[self.pos] = [info["elapsed_s"] for info in infos]

    def compute_returns_and_advantage(self, last_values: Tensor, dones: np.ndarray) -> None:
        """Advantages [steps, B] by time, returns = advantages + values."""
        assert not np.isnan(self.elapsed_s).any(), "steps without elapsed_s: collect rollouts with TimedMaskablePPO"
        ends = np.concatenate([self.episode_starts[1:], dones[None].astype(np.float32)])
        values = np.concatenate([self.values, last_values.cpu().numpy().reshape(1, -1)])
        self.advantages = advantages_by_time(self.rewards, values, ends, self.elapsed_s, self.tau_s, self.decay_s)
        self.returns = self.advantages + self.values
        if self.group_size > 1:
            self.advantages = without_group_mean(self.advantages, self.elapsed_s, ends, self.group_size, GROUP_BIN_S)


class TimedMaskablePPO(MaskablePPO):
    """MaskablePPO over a HetVecEnv with a TimedRolloutBuffer. The value of a truncated state is added undiscounted over its last step.

    Args:
        critic_updates: updates at the start that move only the critic.
    """

    def __init__(self, *args: Any, critic_updates: int = 0, **kwargs: Any) -> None:
        self.critic_updates = critic_updates
        self.updates = 0
        super().__init__(*args, **kwargs)

    def _update_info_buffer(self, infos: list[dict[str, Any]], dones: np.ndarray | None = None) -> None:
        self.rollout_buffer.note(infos)
        super()._update_info_buffer(infos, dones)

    def collect_rollouts(self, env: VecEnv, *args: Any, **kwargs: Any) -> bool:
        """One rollout, begun from common states where the buffer has groups."""
        if self.rollout_buffer.group_size > 1:
            self._last_obs = env.synchronise(self.rollout_buffer.group_size)
        return super().collect_rollouts(env, *args, **kwargs)

    def train(self) -> None:
        """One update; the first `critic_updates` leave the actor as it is."""
        actor_moves = self.updates >= self.critic_updates
        self.policy.network.actor.requires_grad_(actor_moves)
        super().train()
        self.policy.network.actor.requires_grad_(True)
        self.updates += 1
        self.logger.record("train/rule_bonus", self.policy.network.actor.rule_bonus.item())

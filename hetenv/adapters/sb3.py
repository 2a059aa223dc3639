"""Stable-Baselines3: the batched environment as an SB3 `VecEnv`, with SB3's own same-step resets.

It works with sb3-contrib's MaskablePPO as it is (`env_method("action_masks")`), and with anything else of SB3 that takes Discrete actions.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from gymnasium import Wrapper, spaces
from numpy.typing import NDArray

from hetenv import scenario as scenarios
from hetenv.adapters.rule_rank import rule_rank
from hetenv.env.core import EnvCore, RewardLike
from hetenv.errors import HetenvError, ScenarioError
from hetenv.policy import Decision, Policy
from hetenv.scenario import Compiled, Scenario, World
from hetenv.sim.tables import Status

try:
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn
except ImportError as error:
    raise HetenvError("hetenv.adapters.sb3 needs Stable-Baselines3: pip install 'hetenv[train]'") from error

Observation = dict[str, NDArray[np.float32]]
MOST_EMPTY_WORLDS: Final = 100
"""Worlds drawn in search of one with a decision before the scenario is declared empty."""


class HetVecEnv(VecEnv):
    """B episodes of one scenario in one compiled call a step.

    Observation: the tables of `hetenv.env.observation` by name, and with a `rule` also `rule_rank` [A]: 1 at the row that the rule picks,
    less at its second choice and so on (`hetenv.adapters.rule_rank`); all 0 in a terminal observation.
    `infos[b]` holds `elapsed_s` and `discount` of the step, at the end of an episode also `terminal_observation`,
    `TimeLimit.truncated`, `world_seed` and `objective`, the unscaled sum of the episode.

    Args:
        scenario: a shipped name, a YAML file or an object, compiled or not.
        worlds: world seeds to draw episodes from, at random; default: the scenario's training seeds.
        reward: terms and weights in place of the scenario's objective, as in `HetEnv`.
        reward_scale: factor on every reward; fixed, so that returns never change their meaning.
        discount_per_s: rate of `discount` = exp(-rate x elapsed); default: the scenario's.
        rule: a policy without memory whose choice is shown in the observation.
        seed: of the draw of worlds, until `seed()` gives another.
    """

    def __init__(
        self,
        scenario: str | Path | Scenario | Compiled,
        n_envs: int = 1,
        *,
        worlds: Sequence[int] | None = None,
        reward: RewardLike = None,
        reward_scale: float = 1.0,
        discount_per_s: float | None = None,
        rule: Policy | None = None,
        seed: int = 0,
    ) -> None:
        self.compiled = scenario if isinstance(scenario, Compiled) else scenarios.load(scenario).compile()
        self.core = EnvCore(self.compiled, n_envs, reward)
        self.rule = rule
        self.reward_scale = reward_scale
        config = self.compiled.scenario
        self.discount_per_s = config.objective.discount_per_s if discount_per_s is None else discount_per_s
        self._worlds = config.seeds.numbers("train") if worlds is None else worlds
        self.world_seeds = [0] * n_envs
        self._rng = np.random.default_rng(seed)
        self._actions = np.zeros(n_envs, np.int64)
        self._mask = np.zeros((n_envs, self.core.n_actions), np.int8)
        self._objective = np.zeros(n_envs)
        self.render_mode = None
        super().__init__(n_envs, self._space(), spaces.Discrete(self.core.n_actions))

    def _space(self) -> spaces.Dict:
        parts: dict[str, spaces.Space[Any]] = {
            name: spaces.Box(-1.0, 1.0, shape, np.float32) for name, shape in self.core.layout.parts
        }
        if self.rule is not None:
            parts["rule_rank"] = spaces.Box(0.0, 1.0, (self.core.n_actions,), np.float32)
        return spaces.Dict(parts)

    def reset(self) -> Observation:
        """Begin a new episode everywhere; seeds given by `seed()` restart the draw of worlds."""
        if self._seeds[0] is not None:
            self._rng = np.random.default_rng(self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{} for _ in range(self.num_envs)]
        return self._observation(self._begin(range(self.num_envs)))

    def _begin(self, envs: Iterable[int]) -> NDArray[np.float32]:
        """Begin episodes in some environments; returns the flat observations [B, D] of all."""
        empty = list(envs)
        self._objective[empty] = 0.0
        for _ in range(MOST_EMPTY_WORLDS):
            flat, self._mask = self.core.reset_many({b: self._draw(b) for b in empty})
            empty = [b for b in empty if self.core.simulator.status(b) != Status.OPEN]
            if not empty:
                return flat
        raise ScenarioError(f"{self.compiled.scenario.name}: {MOST_EMPTY_WORLDS} worlds in a row offer no decision")

    def _draw(self, b: int) -> World:
        self.world_seeds[b] = self._worlds[int(self._rng.integers(len(self._worlds)))]
        return self.compiled.sample(self.world_seeds[b])

    def _observation(self, flat: NDArray[np.float32]) -> Observation:
        observation = self.core.layout.views(flat)
        if self.rule is not None:
            now_s = self.core.simulator.state.clock["now"].copy()
            observation["rule_rank"] = rule_rank(self.rule, Decision(self.core.candidates, lambda: observation, now_s))
        return observation

    def synchronise(self, group_size: int) -> Observation:
        """Put all environments of each group of `group_size` neighbours into the state (and world) of one of them, drawn at random.

        From there they differ by actions only, which makes their returns comparable. Episodes keep their length, not their past.
        """
        state, facts = self.core.simulator.state, self.core.simulator.facts
        for first in range(0, self.num_envs, group_size):
            source = first + int(self._rng.integers(group_size))
            for b in range(first, first + group_size):
                if b == source:
                    continue
                for table in (*state, facts.requests, facts.events, facts.ranks, facts.ranked, facts.node_event):
                    table[b] = table[source]
                state.clock["world"][b] = b
                self._objective[b], self.world_seeds[b] = self._objective[source], self.world_seeds[source]
        flat, self._mask = self.core.look()
        return self._observation(flat)

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Keep the actions [B] for `step_wait`."""
        self._actions = np.asarray(actions, np.int64).reshape(self.num_envs)

    def step_wait(self) -> VecEnvStepReturn:
        """Carry out the actions; episodes that end are followed by the first decision of the next."""
        before_s = self.core.simulator.state.clock["now"].copy()
        flat, self._mask, rewards = self.core.step(self._actions)
        clock = self.core.simulator.state.clock
        elapsed_s = clock["now"] - before_s
        discounts = np.exp(-self.discount_per_s * elapsed_s)
        infos: list[dict[str, Any]] = [
            {"elapsed_s": dt, "discount": discount} for dt, discount in zip(elapsed_s.tolist(), discounts.tolist())
        ]
        self._objective -= rewards
        dones = clock["status"] != Status.OPEN
        ended = np.flatnonzero(dones).tolist()
        if ended:
            for b in ended:
                infos[b] |= self._ending(b, flat[b])
            flat = self._begin(ended)
        return self._observation(flat), (rewards * self.reward_scale).astype(np.float32), dones, infos

    def _ending(self, b: int, flat: NDArray[np.float32]) -> dict[str, Any]:
        last = {name: table.copy() for name, table in self.core.layout.views(flat).items()}
        if self.rule is not None:
            last["rule_rank"] = np.zeros(self.core.n_actions, np.float32)
        return {
            "terminal_observation": last,
            "TimeLimit.truncated": self.core.simulator.status(b) == Status.TRUNCATED,
            "world_seed": self.world_seeds[b],
            "objective": float(self._objective[b]),
        }

    def action_masks(self) -> NDArray[np.bool_]:
        """[B, A]; `env_method("action_masks")` gives one row each."""
        return self._mask.astype(bool)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of this object; its result [B, ...] is dealt out to the environments."""
        result = getattr(self, method_name)(*method_args, **method_kwargs)
        return [result[b] for b in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The attribute of this object, once per environment."""
        value = getattr(self, attr_name)
        return [value for _ in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        """Whether this object has the attribute."""
        return hasattr(self, attr_name)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of this object, for all environments alike."""
        if indices is not None:
            raise HetenvError("HetVecEnv.set_attr: the environments share their attributes; leave `indices` out")
        setattr(self, attr_name, value)

    def env_is_wrapped(self, wrapper_class: type[Wrapper], indices: VecEnvIndices = None) -> list[bool]:  # type: ignore[type-arg]
        """Never."""
        return [False for _ in self._get_indices(indices)]

    def close(self) -> None:
        """Nothing to release."""

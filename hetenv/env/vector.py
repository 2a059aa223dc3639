"""HetVectorEnv: B simulations of one scenario stepped in one compiled call, as a Gymnasium vector environment."""

from collections.abc import Mapping, Sequence
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hetenv.env.core import KEEP, OPEN, EnvCore, RewardLike
from hetenv.env.episodes import Episodes
from hetenv.env.render import checked_mode, picture
from hetenv.env.single import DEFAULT_SCENARIO
from hetenv.env.spaces import Observation, ObservationKind, Observer, row_of
from hetenv.errors import ScenarioError, unknown
from hetenv.objective import REWARD_TERMS, Account
from hetenv.scenario import Scenario, load
from hetenv.sim.tables import DELTA, NONE, Status

_TERMINATED, _TRUNCATED, _ELAPSED_S = int(Status.TERMINATED), int(Status.TRUNCATED), int(Account.ELAPSED_S)
Step = tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class HetVectorEnv(VectorEnv[Observation, NDArray[np.int64], NDArray[Any]]):
    """B independent simulations. Each equals a HetEnv of the same seed bit for bit, and the whole a `SyncVectorEnv` of such, infos
    included, in every autoreset mode.

    Args:
        num_envs: B; a mapping of all arguments in its place is what RLlib passes.
        scenario, seed, observation, reward: as HetEnv's. With a seed s, simulation b has seed s + b.
        autoreset_mode: NEXT_STEP (default), SAME_STEP or DISABLED, as AutoresetMode, its name or its value. When disabled, the caller
            begins new episodes by `reset(options={"reset_mask": over})`.
        max_episode_steps: truncates an episode after so many steps; default: never.
        render_mode: "ansi": `render()` returns a text per simulation.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int | Mapping[str, Any] = 1,
        scenario: "str | Path | Scenario" = DEFAULT_SCENARIO,
        seed: int | None = None,
        observation: ObservationKind = "dict",
        reward: RewardLike = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if isinstance(num_envs, Mapping):
            others: dict[str, Any] = {"scenario": scenario, "seed": seed, "observation": observation, "reward": reward}
            others |= {"autoreset_mode": autoreset_mode, "max_episode_steps": max_episode_steps, "render_mode": render_mode}
            HetVectorEnv.__init__(self, **{**others, **num_envs})
            return
        self.render_mode = checked_mode(render_mode, ("ansi",))
        self.autoreset_mode = _mode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self._same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        compiled = load(scenario).compile()
        self.num_envs = num_envs
        self.core = EnvCore(compiled, num_envs, reward)
        self._episodes = [Episodes(compiled, None if seed is None else seed + b) for b in range(num_envs)]
        self._observer = Observer(self.core.layout, self.core.n_actions, observation)
        self.single_observation_space = self._observer.space
        self.single_action_space = spaces.Discrete(self.core.n_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._terms = {name: int(REWARD_TERMS[name]) for name in self.core.terms(0)}
        self._discount_per_s = compiled.scenario.objective.discount_per_s
        self._max_steps = max_episode_steps
        self._steps = np.zeros(num_envs, np.int64)
        self._is_over = np.ones(num_envs, bool)
        self._is_begun = np.zeros(num_envs, bool)

    @property
    def scenario(self) -> Scenario:
        """The scenario that is played."""
        return self.core.compiled.scenario

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin episodes in all simulations, or in those of `options["reset_mask"]` ([B] bool).

        Args:
            seed: simulation b gets seed + b, or the b-th of a sequence; None: the next episode of its present seed.
        """
        chosen, seeds = self._chosen(options), self._seeds(seed)
        super().reset(seed=seeds[0])
        actions = np.full(self.num_envs, KEEP, np.int64)
        self._open(chosen, actions, seeds)
        flat, mask, _ = self.core.step(actions)
        return self._observer.batch(flat, mask), self._info(mask, chosen)

    def _chosen(self, options: dict[str, Any] | None) -> NDArray[np.bool_]:
        """[B] simulations that `reset` is to begin."""
        if not options:
            return np.ones(self.num_envs, bool)
        if options.keys() != {"reset_mask"}:
            raise ScenarioError("options: " + unknown("option", str(next(iter(options.keys() - {"reset_mask"}))), ["reset_mask"]))
        chosen = np.array(options["reset_mask"])
        if chosen.shape != (self.num_envs,) or chosen.dtype != np.bool_:
            raise ScenarioError(f"options.reset_mask: must be bool [{self.num_envs}] (got {chosen.dtype} {list(chosen.shape)})")
        return chosen

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        """[B] seed of each simulation, or None."""
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [int(seed) + b for b in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ScenarioError(f"seed: a sequence must have {self.num_envs} entries (got {len(seed)})")
        return seed

    def _open(
        self, chosen: NDArray[np.bool_], actions: NDArray[np.int64], seeds: Sequence[int | None] | None = None
    ) -> None:
        """Load the next worlds of the chosen simulations and have the coming core step begin them; actions: [B], written."""
        for b in np.flatnonzero(chosen).tolist():
            self.core.simulator.load(self._episodes[b].begin(None if seeds is None else seeds[b]), b)
        actions[chosen] = OPEN
        self._steps[chosen] = 0
        self._is_over[chosen], self._is_begun[chosen] = False, True

    def step(self, actions: NDArray[np.int64]) -> Step:
        """One step of all simulations; actions: [B]. Simulations that are over begin anew as the autoreset mode says.

        Raises:
            ResetNeeded: a simulation was never begun, or is over where nothing resets it.
        """
        actions = np.maximum(np.asarray(actions, np.int64), NONE)
        if actions.shape != (self.num_envs,):
            raise ScenarioError(f"actions: must be [{self.num_envs}] (got {list(actions.shape)})")
        begins = self._is_over.copy()
        if begins.any():
            self._require_reset(begins)
            self._open(begins, actions)
        flat, mask, rewards = self.core.step(actions)
        self._steps += ~begins
        status = self.core.simulator.state.clock["status"]
        terminated, truncated = (status == _TERMINATED) & ~begins, (status == _TRUNCATED) & ~begins
        if self._max_steps is not None:
            truncated |= (self._steps >= self._max_steps) & ~terminated
        self._is_over = terminated | truncated
        final: dict[str, Any] = {}
        if self._same_step and self._is_over.any():
            final = self._final(flat, mask, self._is_over.copy())
            actions[:] = KEEP
            self._open(self._is_over.copy(), actions)
            flat, mask, _ = self.core.step(actions)
        info = self._info(mask, np.ones(self.num_envs, bool))
        return self._observer.batch(flat, mask), rewards, terminated, truncated, final | info

    def _require_reset(self, over: NDArray[np.bool_]) -> None:
        if not self._is_begun.all():
            raise ResetNeeded(f"simulations {np.flatnonzero(~self._is_begun).tolist()} were never begun; call reset()")
        if self.autoreset_mode != AutoresetMode.NEXT_STEP:
            found = np.flatnonzero(over).tolist()
            raise ResetNeeded(f"simulations {found} are over; call reset(options={{'reset_mask': ...}}) before step()")

    def _final(self, flat: NDArray[np.float32], mask: NDArray[np.int8], ended: NDArray[np.bool_]) -> dict[str, Any]:
        """Last observation and info of the simulations that ended in this step."""
        observation = self._observer.batch(flat, mask)
        finals = np.full(self.num_envs, None, dtype=object)
        for b in np.flatnonzero(ended).tolist():
            finals[b] = row_of(observation, b)
        return _marked({"final_obs": finals, "final_info": self._info(mask, ended)}, ended)

    def _info(self, mask: NDArray[np.int8], which: NDArray[np.bool_]) -> dict[str, Any]:
        """Info of some simulations, in Gymnasium's form; mask: [B, A], copied."""
        delta, mask = self.core.simulator.state.ledger[:, DELTA], mask.copy()
        if not which.all():
            delta = np.where(which[:, None], delta, 0.0)
            mask[~which] = 0
        elapsed_s, discounts = delta[:, _ELAPSED_S].copy(), which.astype(np.float64)
        if self._discount_per_s > 0.0:
            discounts *= [exp(-self._discount_per_s * seconds) for seconds in elapsed_s.tolist()]
        terms = _marked({name: delta[:, account].copy() for name, account in self._terms.items()}, which)
        return _marked({"action_mask": mask, "terms": terms, "elapsed_s": elapsed_s, "discount": discounts}, which)

    def action_masks(self) -> NDArray[np.bool_]:
        """[B, A] legal rows of the present decisions."""
        legal: NDArray[np.bool_] = self.core.choices["is_legal"] == 1
        legal[:, 0] = True
        return legal

    def render(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """A text picture of each simulation."""
        if self.render_mode is None:
            return None
        return tuple(picture(self.core.simulator, b) for b in range(self.num_envs))

    def check_invariants(self) -> None:
        """Raise AssertionError where the simulators' state contradicts itself (debugging)."""
        self.core.simulator.check_invariants()


def _marked(values: dict[str, Any], which: NDArray[np.bool_]) -> dict[str, Any]:
    """Gymnasium's form of vector infos: beside each entry `_entry` [B], whose it is."""
    return {**values, **{f"_{name}": which.copy() for name in values}}


def _mode(mode: AutoresetMode | str) -> AutoresetMode:
    if isinstance(mode, AutoresetMode):
        return mode
    known = {known.name: known for known in AutoresetMode} | {str(known.value): known for known in AutoresetMode}
    if mode not in known:
        raise ScenarioError("autoreset_mode: " + unknown("mode", str(mode), [known.name for known in AutoresetMode]))
    return known[mode]

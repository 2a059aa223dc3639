"""HetEnv: one simulation as a Gymnasium environment."""

from collections.abc import Mapping
from math import exp
from pathlib import Path
from typing import Any, Self, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from hetenv.env.core import EnvCore, RewardLike
from hetenv.env.episodes import Episodes
from hetenv.env.observation import CLUSTER_FIELDS, POOL_FIELDS, ROW_FIELDS, SITE_FIELDS
from hetenv.env.render import picture
from hetenv.env.spaces import Observation, ObservationKind, Observer, observation_space
from hetenv.errors import ScenarioError
from hetenv.objective import Account
from hetenv.scenario import Scenario, load
from hetenv.sim.tables import DELTA, NONE, Status

DEFAULT_SCENARIO = "smoke"


class HetEnv(gymnasium.Env[Observation, Any]):
    __doc__ = f"""Jobs come to a cluster of mixed GPUs; the agent decides which runs where, and with which parallelism.

    ## Action space
    `Discrete(A)`: one row of the candidate table. Row 0 is `wait`; every other legal row starts, changes or preempts one visible
    job (`hetenv.env.candidates`). Illegal rows change nothing, are counted (`n_illegal`) and use up one of the instant's commands.

    ## Observation space
    A flat `Dict` of float32 boxes in [-1, 1], or with `observation="flat"` one Box with the mask appended:
    `candidates` [A, {len(ROW_FIELDS)}]: {", ".join(ROW_FIELDS)};
    `pools` [P, {len(POOL_FIELDS)}]: {", ".join(POOL_FIELDS)};
    `sites` [S, {len(SITE_FIELDS)}]: {", ".join(SITE_FIELDS)};
    `backlog` queued jobs by GPUs and believed run time;
    `cluster` [{len(CLUSTER_FIELDS)}]: {", ".join(CLUSTER_FIELDS)};
    `action_mask` [A] int8, 1 where a row is legal. It is in `info["action_mask"]` too, and `action_masks()` gives it as bool.

    ## Rewards
    Minus the scenario's objective: a weighted sum of what the simulator accounted in this step (`hetenv.objective`). `info` holds the
    terms by name, `elapsed_s` and `discount`. The sum over an episode does not depend on how many steps it took.

    ## Starting state
    Episode k of seed s is the world `sample(s, k)`; `reset(seed=s)` begins episode 0 of s, `reset()` the next one.

    ## Episode end
    Terminated when no job is left, truncated at the scenario's limit.

    ## Arguments
    `scenario` (name, path or Scenario), `seed`, `observation` ("dict" or "flat"), `reward` (None, a mapping of term weights, or a
    function of the ledger row), `render_mode`. A single mapping of these is accepted in place of `scenario`.

    ## Versions
    The id's number is the scenario's version; any change of dynamics raises it.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        scenario: "str | Path | Scenario | Mapping[str, Any]" = DEFAULT_SCENARIO,
        seed: int | None = None,
        observation: ObservationKind = "dict",
        reward: RewardLike = None,
        render_mode: str | None = None,
    ) -> None:
        if isinstance(scenario, Mapping):
            self.__init__(**scenario)  # type: ignore[misc]
            return
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ScenarioError(f"render_mode: unknown {render_mode!r} (known: ansi, human)")
        self.scenario = load(scenario)
        self.render_mode = render_mode
        compiled = self.scenario.compile()
        self.core = EnvCore(compiled, 1, reward)
        self._episodes = Episodes(compiled, seed)
        self._observer = Observer(self.core.layout, observation)
        self.observation_space = observation_space(self.core.layout, self.core.n_actions, observation)
        self.action_space = spaces.Discrete(self.core.n_actions)
        self._action = np.zeros(1, np.int64)
        self._mask = np.zeros(self.core.n_actions, np.int8)
        self._is_open = False
        self._discount_per_s = self.scenario.objective.discount_per_s

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode: the first of `seed`, or the next one."""
        if seed is not None:
            super().reset(seed=seed)
        flat, mask = self.core.reset_many({0: self._episodes.begin(seed)})
        self._mask, self._is_open = mask[0], True
        return self._observer.one(flat[0], mask[0]), self._info()

    def step(self, action: Any) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Carry out one candidate row; time moves to the next decision.

        Raises:
            ResetNeeded: the episode is over, or was never begun.
        """
        if not self._is_open:
            raise ResetNeeded("the episode is over; call reset() before step()")
        self._action[0] = action if action >= 0 else NONE
        flat, mask, rewards = self.core.step(self._action)
        status = int(self.core.simulator.state.clock["status"][0])
        self._mask, self._is_open = mask[0], status == Status.OPEN
        observation = self._observer.one(flat[0], mask[0])
        return observation, float(rewards[0]), status == Status.TERMINATED, status == Status.TRUNCATED, self._info()

    def action_masks(self) -> NDArray[np.bool_]:
        """[A] legal rows of the present decision."""
        return self._mask == 1

    def _info(self) -> dict[str, Any]:
        elapsed_s = float(self.core.simulator.state.ledger[0, DELTA, Account.ELAPSED_S])
        return {
            "action_mask": self._mask.copy(),
            "terms": self.core.terms(0),
            "elapsed_s": elapsed_s,
            "discount": exp(-self._discount_per_s * elapsed_s) if self._discount_per_s else 1.0,
        }

    def render(self) -> str | None:  # type: ignore[override]
        """A text picture of pools and jobs: returned ("ansi") or printed ("human")."""
        if self.render_mode is None:
            return None
        text = picture(self.core.simulator, 0)
        if self.render_mode == "human":
            print(text)
            return None
        return text

    def check_invariants(self) -> None:
        """Raise AssertionError where the simulator's state contradicts itself (debugging)."""
        self.core.simulator.check_invariants()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(self.__dict__)
        twin.core = self.core.__deepcopy__(memo)
        twin._episodes = Episodes(self.core.compiled)
        twin._episodes.__dict__.update(self._episodes.__dict__)
        twin._action, twin._mask = self._action.copy(), self._mask.copy()
        return twin



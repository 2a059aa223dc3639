"""HetEnv: one simulation as a Gymnasium environment."""

from collections.abc import Mapping
from math import exp
from pathlib import Path
from typing import Any, Final, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from hetenv.env.core import EnvCore, RewardLike
from hetenv.env.episodes import Episodes
from hetenv.env.observation import CLUSTER_FIELDS, POOL_FIELDS, ROW_FIELDS, SITE_FIELDS
from hetenv.env.render import RENDER_MODES, checked_mode, picture, pixels
from hetenv.env.spaces import Observation, ObservationKind, Observer
from hetenv.errors import ScenarioError, unknown
from hetenv.objective import Account
from hetenv.scenario import Scenario, load
from hetenv.sim.tables import DELTA, NONE, Status

DEFAULT_SCENARIO: Final = "smoke"
_ELAPSED: Final = (0, DELTA, int(Account.ELAPSED_S))


class HetEnv(gymnasium.Env[Observation, Any]):
    __doc__ = f"""Jobs come to a cluster of mixed GPUs; the agent decides which runs where, and with which parallelism.

    ## Action Space
    `Discrete(A)`: one row of the candidate table. Row 0 is `wait`, which lets time move and is always legal; every other legal row
    starts, changes or preempts one visible job. An action that is no legal row (in the mask or out of the space) changes nothing, is
    counted (`n_illegal`) and uses up one of the instant's commands; when they are used up, time moves.

    ## Observation Space
    A flat `Dict` of float32 boxes in [-1, 1]; with `observation="flat"` the same in one `Box`, in this order, the mask at its end.

    | part | shape | fields |
    |---|---|---|
    | `candidates` | A, {len(ROW_FIELDS)} | {", ".join(ROW_FIELDS)} |
    | `pools` | pools, {len(POOL_FIELDS)} | {", ".join(POOL_FIELDS)} |
    | `sites` | sites, {len(SITE_FIELDS)} | {", ".join(SITE_FIELDS)} |
    | `backlog` | bins | queued jobs by GPUs and believed work |
    | `cluster` | {len(CLUSTER_FIELDS)} | {", ".join(CLUSTER_FIELDS)} |
    | `action_mask` | A, int8 | 1 where the row is legal |

    Quantities without an upper limit are squashed (scales: `hetenv.env.observation`), so jobs beyond the visible ones show in
    `backlog` and `beyond_window` and never in a shape. `info["action_mask"]` is the same mask, `action_masks()` gives it as bool.

    ## Rewards
    Minus the scenario's objective: a weighted sum of what the simulator accounted in this step, so that the return of an episode does
    not depend on how many steps it took. `info` holds the summed amounts by name (`terms`), the step's `elapsed_s` and its `discount`,
    exp(-rate x elapsed_s) with the scenario's rate (0 by default).

    ## Starting State
    Episode k of seed s is the world `sample(s, k)` of the compiled scenario: `reset(seed=s)` begins episode 0 of s, `reset()` the next
    one. Without any seed one is drawn from the scenario's training range. Seeds below that range are validation and test worlds:
    begin training at `scenario.seeds.train[0]`. `options={{"world": w}}` plays a given World.

    ## Episode End
    Terminated when no job is left, truncated at the scenario's limit (both at once: terminated).

    ## Arguments
    - `scenario`: shipped name, path of a YAML file or Scenario; a mapping of these arguments in its place is what RLlib passes.
    - `seed`: of the first episode, until `reset` gives one.
    - `observation`: "dict" (default) or "flat".
    - `reward`: None for the scenario's objective, a mapping of term names to weights, or a function of the ledger row
      [{len(Account)}] (columns: `hetenv.objective.Account`).
    - `render_mode`: "ansi" (`render()` returns a text), "human" (it is printed at each step) or "rgb_array" (the pools as bars).

    ## Version History
    The number of a scenario's id is its version, raised by any change of dynamics; `hetenv/HetCluster-v0` takes any scenario.
    """

    metadata: dict[str, Any] = {"render_modes": [*RENDER_MODES], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        scenario: "str | Path | Scenario | Mapping[str, Any]" = DEFAULT_SCENARIO,
        seed: int | None = None,
        observation: ObservationKind = "dict",
        reward: RewardLike = None,
        render_mode: str | None = None,
    ) -> None:
        if isinstance(scenario, Mapping):
            others: dict[str, Any] = {"seed": seed, "observation": observation, "reward": reward, "render_mode": render_mode}
            HetEnv.__init__(self, **{**others, **scenario})
            return
        self.render_mode = checked_mode(render_mode)
        compiled = load(scenario).compile()
        self.core = EnvCore(compiled, 1, reward)
        self._episodes = Episodes(compiled, seed)
        self._observer = Observer(self.core.layout, self.core.n_actions, observation)
        self.observation_space = self._observer.space
        self.action_space = spaces.Discrete(self.core.n_actions)
        self._action = np.zeros(1, np.int64)
        self._discount_per_s = compiled.scenario.objective.discount_per_s
        self._prints = render_mode == "human"
        self._is_over = True

    @property
    def scenario(self) -> Scenario:
        """The scenario that is played."""
        return self.core.compiled.scenario

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode: the first of `seed`, or the next one; `options={"world": w}` plays World w instead."""
        if options is not None and not options.keys() <= {"world"}:
            raise ScenarioError("options: " + unknown("option", str(next(iter(options.keys() - {"world"}))), ["world"]))
        super().reset(seed=seed)
        world = self._episodes.begin(seed) if not options else options["world"]
        flat, mask = self.core.reset_many({0: world})
        self._is_over = False
        if self._prints:
            self.render()
        return self._observer.one(flat, mask), self._info(mask)

    def step(self, action: Any) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Carry out one candidate row; time moves to the next decision.

        Raises:
            ResetNeeded: the episode is over, or none was begun.
        """
        if self._is_over:
            raise ResetNeeded("the episode is over; call reset() before step()")
        self._action[0] = action if action >= 0 else NONE
        flat, mask, rewards = self.core.step(self._action)
        status = self.core.simulator.state.clock["status"].item()
        self._is_over = status != Status.OPEN
        if self._prints:
            self.render()
        return (
            self._observer.one(flat, mask),
            rewards.item(),
            status == Status.TERMINATED,
            status == Status.TRUNCATED,
            self._info(mask),
        )

    def action_masks(self) -> NDArray[np.bool_]:
        """[A] legal rows of the present decision."""
        legal: NDArray[np.bool_] = self.core.choices["is_legal"][0] == 1
        legal[0] = True
        return legal

    def _info(self, mask: NDArray[np.int8]) -> dict[str, Any]:
        elapsed_s = self.core.simulator.state.ledger.item(_ELAPSED)
        return {
            "action_mask": mask[0].copy(),
            "terms": self.core.terms(0),
            "elapsed_s": elapsed_s,
            "discount": exp(-self._discount_per_s * elapsed_s),
        }

    def render(self) -> str | NDArray[np.uint8] | None:  # type: ignore[override]
        """A picture of pools and jobs: a text returned ("ansi") or printed ("human"), or the pools as pixels ("rgb_array")."""
        if self.render_mode is None:
            return None
        if self.render_mode == "rgb_array":
            return pixels(self.core.simulator)
        text = picture(self.core.simulator)
        if self.render_mode == "ansi":
            return text
        print(text)
        return None

    def check_invariants(self) -> None:
        """Raise AssertionError where the simulator's state contradicts itself (debugging)."""
        self.core.simulator.check_invariants()

"""Trained networks as policies: saved as one file, loaded by `rl:FOLDER_OR_SCENARIO`, acting greedily on candidate rows."""

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hetenv.adapters.rule_rank import rule_rank
from hetenv.errors import ScenarioError
from hetenv.policy import Decision, Policy, make_policy

from .scorer import Scorer

FILE: Final = "policy.npz"
SHIPPED: Final = Path(__file__).parent / "weights"
"""Networks shipped with the package, one SCENARIO.npz each."""
_ABOUT: Final = "about"


@dataclass
class TrainedPolicy:
    """A network that picks the legal row of highest score; ties go to the first.

    Attributes:
        rule: the policy whose choice the network sees, or None.
    """

    name: str
    scorer: Scorer
    rule: Policy | None = None

    def reset(self, seed: int) -> None:
        """Nothing to begin: the network keeps no memory."""

    def act(self, decision: Decision) -> NDArray[np.int64]:
        """The best legal row of each simulation."""
        obs = decision.observation()
        if self.rule is not None:
            obs["rule_rank"] = rule_rank(self.rule, decision)
        return self.scorer.scores(obs, decision.legal).argmax(axis=1)


def save(path: Path, weights: Mapping[str, NDArray[np.float32]], about: Mapping[str, Any]) -> None:
    """Write an actor's weights and what must be known to use them.

    Args:
        about: plain data; `name`, `scenario` and `rule` (a policy's name or empty) are needed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{_ABOUT: np.array(json.dumps(dict(about)))}, **weights)  # type: ignore[arg-type]


def load(path: Path) -> TrainedPolicy:
    """The policy that `save` wrote.

    Raises:
        ScenarioError: no such file, or no network of this version in it.
    """
    try:
        with np.load(path, allow_pickle=False) as data:
            weights = {name: data[name] for name in data.files if name != _ABOUT}
            about = json.loads(str(data[_ABOUT]))
    except FileNotFoundError:
        raise ScenarioError(f"{path}: no trained network there; train one with train_agents.py") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ScenarioError(f"{path}: not a trained network ({type(error).__name__})") from None
    rule = make_policy(about["rule"], about["scenario"]) if about["rule"] else None
    assert rule is None or isinstance(rule, Policy)
    return TrainedPolicy(about["name"], Scorer(weights), rule)


def load_trained(name: str) -> TrainedPolicy:
    """A trained policy by run folder, file, or name of a scenario with a shipped network.

    Raises:
        ScenarioError: nothing of that name.
    """
    path = Path(name)
    if path.is_dir():
        return load(path / FILE)
    if path.suffix == ".npz" or "/" in name:
        return load(path)
    shipped = SHIPPED / f"{name}.npz"
    if not shipped.is_file():
        known = ", ".join(sorted(file.stem for file in SHIPPED.glob("*.npz"))) or "none"
        raise ScenarioError(f"rl:{name}: no run folder of this name and no shipped network (shipped: {known})")
    return load(shipped)

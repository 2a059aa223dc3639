"""Trained networks as policies: saved as one file, loaded by `rl:FOLDER_OR_SCENARIO`, acting greedily on candidate rows."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from hetenv.errors import ScenarioError
from hetenv.policy import Decision, Policy, make_policy

from .network import CandidateNetwork, NetworkConfig

FILE: Final = "policy.pt"
SHIPPED: Final = Path(__file__).parent / "weights"
"""Networks shipped with the package, one SCENARIO.pt each."""
_ILLEGAL: Final = -1e9


@dataclass
class TrainedPolicy:
    """A network that picks the legal row of highest score.

    Attributes:
        rule: the policy whose pick the network sees, or None.
    """

    name: str
    network: CandidateNetwork
    rule: Policy | None = None

    def reset(self, seed: int) -> None:
        """Nothing to begin: the network keeps no memory."""

    def act(self, decision: Decision) -> NDArray[np.int64]:
        """The best legal row by the network's score; ties go to the first."""
        obs = {name: torch.as_tensor(table) for name, table in decision.observation().items()}
        if self.rule is not None:
            rows = torch.as_tensor(np.asarray(self.rule.act(decision), np.int64))
            obs["rule_pick"] = torch.nn.functional.one_hot(rows, decision.candidates.shape[1]).float()
        with torch.inference_mode():
            scores = self.network.actor(obs).masked_fill(~torch.as_tensor(decision.legal), _ILLEGAL)
            return scores.argmax(1).numpy()


def save(path: Path, network: CandidateNetwork, about: dict[str, Any]) -> None:
    """Write a network and what must be known to use it.

    Args:
        about: plain data; `name`, `scenario` and `rule` (a policy's name or empty) are needed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"weights": network.state_dict(), "network": network.config.asdict(), "about": about}, path)


def load(path: Path) -> TrainedPolicy:
    """The policy that `save` wrote.

    Raises:
        ScenarioError: no such file, or no network of this version in it.
    """
    try:
        data = torch.load(path, map_location="cpu", weights_only=True)
        network = CandidateNetwork(NetworkConfig(**data["network"]))
        network.load_state_dict(data["weights"])
        about = data["about"]
        rule = make_policy(about["rule"], about["scenario"]) if about["rule"] else None
    except FileNotFoundError:
        raise ScenarioError(f"{path}: no trained network there; train one with train_agents.py") from None
    except (pickle.UnpicklingError, RuntimeError, KeyError, TypeError, EOFError, OSError, ValueError) as error:
        raise ScenarioError(f"{path}: not a network of this version of hetenv ({type(error).__name__})") from None
    network.eval()
    assert rule is None or isinstance(rule, Policy)
    return TrainedPolicy(about["name"], network, rule)


def load_trained(name: str) -> TrainedPolicy:
    """A trained policy by run folder, file, or name of a scenario with a shipped network.

    Raises:
        ScenarioError: nothing of that name.
    """
    path = Path(name)
    if path.is_dir():
        return load(path / FILE)
    if path.suffix == ".pt" or "/" in name:
        return load(path)
    shipped = SHIPPED / f"{name}.pt"
    if not shipped.is_file():
        known = ", ".join(sorted(file.stem for file in SHIPPED.glob("*.pt"))) or "none"
        raise ScenarioError(f"rl:{name}: no run folder of this name and no shipped network (shipped: {known})")
    return load(shipped)

"""The network before any training: random weights and no rule, the least that a trained one has to beat."""

from pathlib import Path

import torch

from .network import CandidateNetwork, NetworkConfig, actor_weights
from .trained import FILE, save


def save_untrained(folder: Path, scenario: str, seed: int, name: str = "untrained") -> None:
    """Write it to `folder`, where `rl:FOLDER` finds it."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = CandidateNetwork(NetworkConfig())
    save(folder / FILE, actor_weights(network), {"name": name, "scenario": scenario, "rule": "", "steps": 0})

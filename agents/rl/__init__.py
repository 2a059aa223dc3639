"""Trained schedulers. torch is imported on use only, so that heuristics run without it."""

from typing import TYPE_CHECKING

from hetenv.errors import HetenvError

if TYPE_CHECKING:
    from .trained import TrainedPolicy


def load_trained(name: str) -> "TrainedPolicy":
    """The policy behind `rl:NAME`: a run folder, a file, or a scenario that has a shipped network.

    Raises:
        ScenarioError: nothing of that name.
        HetenvError: torch is not installed.
    """
    try:
        from . import trained
    except ImportError as error:
        if error.name != "torch":
            raise
        raise HetenvError("trained policies need PyTorch: pip install 'hetenv[train]'") from None
    return trained.load_trained(name)

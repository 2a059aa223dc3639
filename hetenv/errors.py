"""Named errors. Each message names the object, the value and the remedy."""

from collections.abc import Iterable
from difflib import get_close_matches


class HetenvError(Exception):
    """Base of every error that hetenv raises on purpose."""


class ScenarioError(HetenvError, ValueError):
    """A scenario, or a name in it, cannot be used. The message starts with the path of the field."""


class TraceError(HetenvError, ValueError):
    """A trace or signal file cannot be read as its stated format."""


class PlanError(HetenvError, ValueError):
    """A parallel plan that cannot be built for its model or devices."""


class CommandError(HetenvError, ValueError):
    """A command that names no job or configuration of this world."""


class MissingExtraError(HetenvError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; install it with: pip install 'hetenv[{extra}]'")


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Message for a name that is in no registry: the value, the nearest known one, and all choices."""
    choices = sorted(known)
    near = get_close_matches(name, choices, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown {kind} {name!r}{hint} (known: {', '.join(choices)})"

"""hetenv: scheduling of training jobs, with their parallelism, on clusters of unlike GPUs. The public names, nothing else.

Importing it registers the Gymnasium ids: `hetenv/HetCluster-v0` takes any scenario, and each shipped scenario has its own, whose
number is the scenario's version (`hetenv/MixedGpus-v0`). Names are imported when they are first used.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gymnasium.envs.registration import register

if TYPE_CHECKING:
    from hetenv import perf
    from hetenv.bench.run import run
    from hetenv.env.single import HetEnv
    from hetenv.env.vector import HetVectorEnv
    from hetenv.errors import CommandError, HetenvError, MissingExtraError, PlanError, ScenarioError, TraceError
    from hetenv.policy import make_policy
    from hetenv.scenario import Scenario, load

_HOMES: Final = {
    "HetEnv": "hetenv.env.single",
    "HetVectorEnv": "hetenv.env.vector",
    "Scenario": "hetenv.scenario",
    "load": "hetenv.scenario",
    "make_policy": "hetenv.policy",
    "run": "hetenv.bench.run",
    **dict.fromkeys(
        ("CommandError", "HetenvError", "MissingExtraError", "PlanError", "ScenarioError", "TraceError"), "hetenv.errors"
    ),
}

__all__ = [
    "CommandError",
    "HetEnv",
    "HetVectorEnv",
    "HetenvError",
    "MissingExtraError",
    "PlanError",
    "Scenario",
    "ScenarioError",
    "TraceError",
    "load",
    "make_policy",
    "perf",
    "run",
]


def __getattr__(name: str) -> Any:
    if name == "perf":
        return import_module("hetenv.perf")
    if name == "__version__":
        return import_module("importlib.metadata").version("hetenv")
    if name not in _HOMES:
        raise AttributeError(f"module 'hetenv' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _register(name: str, version: int, **kwargs: str) -> None:
    register(
        f"hetenv/{name}-v{version}",
        entry_point="hetenv.env.single:HetEnv",
        vector_entry_point="hetenv.env.vector:HetVectorEnv",
        disable_env_checker=True,
        order_enforce=False,
        kwargs=kwargs,
    )


def _register_all() -> None:
    """Register the ids; of the scenario files only the version is read."""
    _register("HetCluster", 0)
    here = Path(__file__).parent
    for path in sorted({*here.glob("scenarios/*.yaml"), *here.parent.glob("scenarios/*.yaml")}):
        version = re.search(r"^version:\s*(\d+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        _register(path.stem.title().replace("_", ""), int(version[1]) if version else 0, scenario=path.stem)


_register_all()

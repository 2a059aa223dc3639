"""Compiled scenarios by name, path or object, kept so that many runs of one scenario compile it once."""

from functools import lru_cache
from pathlib import Path

from hetenv import scenario as scenarios
from hetenv.scenario import Compiled, Scenario


def compiled_scenario(source: str | Path | Scenario) -> Compiled:
    """The compiled scenario of a shipped name, a YAML file (read again when it has changed) or an object."""
    if isinstance(source, Scenario):
        return source.compile()
    is_file = isinstance(source, Path) or source.endswith((".yaml", ".yml")) or "/" in source
    path = Path(source) if is_file else scenarios.find(str(source))
    changed_ns = path.stat().st_mtime_ns if path.is_file() else 0
    return _compiled(path.resolve(), changed_ns)


@lru_cache(maxsize=32)
def _compiled(path: Path, changed_ns: int) -> Compiled:
    return scenarios.load(path).compile()

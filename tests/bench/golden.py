"""`python -m tests.bench.golden` writes golden.json: scenario -> version and hash. Do so when dynamics change on purpose."""

import json
from pathlib import Path

from hetenv import scenario as scenarios
from hetenv.bench.golden import golden_hash
from hetenv.errors import TraceError

PATH = Path(__file__).parent / "golden.json"


def found() -> dict[str, list[int | str]]:
    """Version and golden hash of every shipped scenario whose data are there."""
    hashes: dict[str, list[int | str]] = {}
    for name in scenarios.names():
        scenario = scenarios.load(name)
        try:
            hashes[name] = [scenario.version, golden_hash(scenario.compile())]
        except TraceError:
            continue
    return hashes


if __name__ == "__main__":
    known = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    PATH.write_text(json.dumps({**known, **found()}, indent=2, sort_keys=True) + "\n", encoding="utf-8")

"""Dynamics move only on purpose: every shipped scenario has its golden hash."""

import json

from .golden import PATH, found


def test_every_shipped_scenario_has_its_golden_hash() -> None:
    known = json.loads(PATH.read_text(encoding="utf-8"))
    moved = {name: (known.get(name), entry) for name, entry in found().items() if known.get(name) != entry}
    assert not moved, (
        "dynamics changed; if on purpose raise the scenario's version, run `python -m tests.bench.golden` and tell CHANGELOG.md: "
        f"{moved}"
    )

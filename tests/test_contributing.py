"""The walks of CONTRIBUTING.md, run as a newcomer would: each file as printed there and its registry line, in a copy of the project."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def printed_file(path: str) -> str:
    """The code block that follows the mention of a file."""
    assert f"`{path}`" in TEXT
    block = re.search(r"```python\n(.*?)```", TEXT.split(f"`{path}`", 1)[1], re.DOTALL)
    assert block is not None
    return block.group(1)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path.name}: {old!r} is there {text.count(old)} times"
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in ("hetenv", "agents", "scenarios", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "HETENV_SHARED": str(ROOT.parent / "shared")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_a_new_event_type_is_one_file_and_one_line(copy: Path) -> None:
    (copy / "hetenv/events/brownout.py").write_text(printed_file("hetenv/events/brownout.py"), encoding="utf-8")
    registry = copy / "hetenv/events/__init__.py"
    edit(registry, "from hetenv.events.stream", "from hetenv.events.brownout import Brownout\nfrom hetenv.events.stream")
    edit(registry, "_AnyEvent = ", "_AnyEvent = Brownout | ")
    contract = copy / "tests/events/test_contract.py"
    edit(contract, "] = {\n", '] = {\n    "brownout": [{"pool": "new", "speed": 0.5}],\n')
    assert "passed" in run(copy, "pytest", "-p", "no:cacheprovider", "tests/events/test_contract.py")
    smoke = copy / "scenarios/smoke.yaml"
    before = json.loads(run(copy, "hetenv.cli", "run", "smoke", "--policy", "first_fit", "--json"))
    edit(smoke, "events:\n", "events:\n  - {kind: brownout, pool: a100, speed: 0.1, hours: 6}\n")
    after = json.loads(run(copy, "hetenv.cli", "run", "smoke", "--policy", "first_fit", "--json"))
    assert (after["n_jobs"], after["golden"] != before["golden"]) == (before["n_jobs"], True)
    assert after["objective"] > before["objective"]


def test_a_new_heuristic_is_one_file_and_one_line(copy: Path) -> None:
    (copy / "agents/heuristics/heaviest.py").write_text(printed_file("agents/heuristics/heaviest.py"), encoding="utf-8")
    registry = copy / "agents/__init__.py"
    edit(registry, "from .heuristics.index ", "from .heuristics.heaviest import Heaviest\nfrom .heuristics.index ")
    edit(registry, "] = {\n", '] = {\n    "heaviest": lambda scenario: Heaviest(),\n')
    table = run(copy, "hetenv.cli", "bench", "smoke", "-p", "heaviest", "-p", "random", "--seeds", "3", "--processes", "1")
    assert "| heaviest |" in table
    if (copy / "tests/agents/test_contract.py").exists():
        run(copy, "pytest", "-p", "no:cacheprovider", "tests/agents/test_contract.py", "-k", "heaviest")

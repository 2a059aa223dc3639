"""The project's own files: README's code runs, its tables are complete, pins agree with ranges."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from hetenv import scenario as scenarios
from hetenv.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON_BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPTIONAL = ("sb3_contrib", "stable_baselines3", "torch", "ray", "torchrl")


@pytest.mark.compiled
@pytest.mark.parametrize("code", PYTHON_BLOCKS, ids=range(len(PYTHON_BLOCKS)))
def test_python_in_the_readme_runs(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in OPTIONAL:
        if f"from {name}" in code or f"import {name}" in code:
            pytest.importorskip(name)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


def test_commands_in_the_readme_exist() -> None:
    names = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback} | {"trace"}
    shown = set(re.findall(r"^hetenv (\w+)", README, re.MULTILINE))
    assert shown and shown <= names


def test_readme_opens_with_the_two_commands() -> None:
    assert re.match(r"# hetenv\n\n```bash\nmake train .*\nmake test\n```", README)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"train", "test", "lint", "slow", "soak", "setup"} <= set(targets)


def test_readme_lists_every_scenario() -> None:
    listed = set(re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE))
    assert listed == set(scenarios.names())


def test_links_of_the_documents_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "docs/validity.md", "docs/design.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert ((ROOT / name).parent / target).exists(), f"{name}: {target}"


def test_versions_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"] == "MIT"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("MIT License")
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_pinned_versions_lie_in_the_stated_ranges() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = {_plain(pin.name): pin for line in lines if line and not line.startswith("#") for pin in [Requirement(line)]}
    extras = [text for listed in PROJECT["optional-dependencies"].values() for text in listed]
    for text in [*PROJECT["dependencies"], *extras]:
        wanted = Requirement(text)
        pin = pins.get(_plain(wanted.name))
        if pin is not None:
            (specifier,) = pin.specifier
            assert Version(specifier.version) in wanted.specifier, f"{pin} is not in {wanted}"
    assert all(_plain(Requirement(text).name) in pins for text in PROJECT["dependencies"])


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def test_documents_name_no_machine() -> None:
    paths = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", ".ci/run")]
    for path in [*paths, *ROOT.glob("docs/**/*.md"), *ROOT.glob("hetenv/**/*.py"), *ROOT.glob("scenarios/*.yaml")]:
        assert not re.search(r"/work/|/home/\w|/root/", path.read_text(encoding="utf-8")), path

"""The layers of docs/design.md: imports go down only, no cycle, no long file, and `import hetenv` stays light."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 400
HEAVY = ("torch", "pandas", "ray", "matplotlib", "scipy", "pvlib", "highspy", "plotly", "stable_baselines3", "sb3_contrib", "typer", "rich")
STRANGERS = (("perf", "events"),)
"""Layers of one rank that do not know each other."""


@cache
def ranks() -> dict[str, int]:
    """Layer -> rank, from the sentence under "Layers" in docs/design.md."""
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8").split("## Layers", 1)[1]
    sentence = re.search(r"^units.*?train_agents\.py\.", text, re.MULTILINE | re.DOTALL)
    assert sentence is not None, "docs/design.md: the order of the layers is missing under `## Layers`"
    groups = sentence.group().removesuffix(".").replace("train_agents.py", "train_agents").split("<")
    return {name: rank for rank, group in enumerate(groups) for name in group.split()}


def modules() -> Iterator[tuple[str, Path]]:
    """Dotted name and path of every module of hetenv and agents, and train_agents."""
    for path in sorted([*ROOT.glob("hetenv/**/*.py"), *ROOT.glob("agents/**/*.py"), *ROOT.glob("train_agents.py")]):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(modules())


def layer(module: str) -> str | None:
    """Layer of a module; None for the public names in hetenv/__init__.py, which stand above all of hetenv."""
    parts = module.split(".")
    if parts[0] != "hetenv":
        return parts[0]
    return parts[1] if len(parts) > 1 else None


def imports(module: str, at_import_only: bool = False) -> set[str]:
    """Modules of this project that a module imports at run time; `at_import_only`: not inside functions."""
    found: set[str] = set()
    pending: list[ast.AST] = [ast.parse(MODULES[module].read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
            continue
        if at_import_only and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Import):
            found.update(known(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(module, node)
            found.update(known(f"{base}.{alias.name}") for alias in node.names)
        pending.extend(ast.iter_child_nodes(node))
    return found - {"", module}


def absolute(module: str, node: ast.ImportFrom) -> str:
    """The dotted name after `from`."""
    if not node.level:
        return node.module or ""
    package = module.split(".") if MODULES[module].name == "__init__.py" else module.split(".")[:-1]
    return ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])


def known(name: str) -> str:
    """The module of this project that a dotted name lies in, or empty."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def test_every_layer_has_a_rank() -> None:
    missing = sorted({name for module in MODULES if (name := layer(module)) is not None and name not in ranks()})
    assert not missing, f"not in the order of layers in docs/design.md: {missing}"


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down(module: str) -> None:
    own = layer(module)
    if own is None:
        return
    for target in imports(module):
        other = layer(target)
        assert other is not None, f"{module} imports from hetenv itself; import the leaf module"
        assert ranks()[other] <= ranks()[own], f"{module} imports {target}, which is a higher layer"
        for pair in STRANGERS:
            assert not (own != other and own in pair and other in pair), f"{module} imports {target}; these do not know each other"


def test_no_import_cycle() -> None:
    graph = {module: imports(module, at_import_only=True) for module in MODULES}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            for target in sorted(graph[module]):
                visit(target, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_no_long_file() -> None:
    paths = [*ROOT.glob("*.py"), *(path for folder in ("hetenv", "agents", "tests", "docs") for path in ROOT.glob(f"{folder}/**/*.py"))]
    long = {str(path.relative_to(ROOT)): n for path in paths if (n := len(path.read_text(encoding="utf-8").splitlines())) > MAX_LINES}
    assert not long, f"over {MAX_LINES} lines; split by what changes together: {long}"


def test_no_nameless_module() -> None:
    nameless = [module for module in MODULES if module.rpartition(".")[2] in ("utils", "util", "helpers", "common", "misc")]
    assert not nameless, f"name these after what they hold: {nameless}"


def test_every_package_has_an_init() -> None:
    """A folder without one would be left out of the wheel."""
    folders = {path.parent for path in MODULES.values() if path.parent != ROOT}
    assert not [folder for folder in folders if not (folder / "__init__.py").exists()]


def test_import_hetenv_is_light() -> None:
    code = f"import sys, hetenv; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == []


def test_the_checks_find_what_they_forbid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sinner = tmp_path / "tables.py"
    sinner.write_text("from hetenv.bench.run import run\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import hetenv.cli\n")
    monkeypatch.setitem(MODULES, "hetenv.sim.tables", sinner)
    assert imports("hetenv.sim.tables") == {"hetenv.bench.run"}
    with pytest.raises(AssertionError, match="higher layer"):
        test_imports_go_down("hetenv.sim.tables")
    with pytest.raises(AssertionError, match=r"hetenv\.sim\.tables -> hetenv\.bench\.run"):
        test_no_import_cycle()

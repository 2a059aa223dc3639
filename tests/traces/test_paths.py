"""Trace paths: the two roots, and no way out of them."""

import subprocess
import sys
from pathlib import Path

import pytest

from hetenv.errors import TraceError
from hetenv.traces.paths import resolve, shared_folder


def test_shared_is_the_folder_that_the_variable_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").touch()
    monkeypatch.setenv("HETENV_SHARED", str(tmp_path))
    assert resolve("shared:data/a.csv", None) == (tmp_path / "data" / "a.csv").resolve()
    assert resolve("shared:data", None).is_dir()
    with pytest.raises(TraceError, match="no file or folder"):
        resolve("shared:data/b.csv", None)


def test_shared_lies_beside_the_project_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HETENV_SHARED", raising=False)
    assert shared_folder() == Path(__file__).resolve().parents[3] / "shared"


def test_an_absent_shared_folder_names_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HETENV_SHARED", str(tmp_path / "nowhere"))
    with pytest.raises(TraceError, match="HETENV_SHARED"):
        resolve("shared:data/a.csv", None)


def test_other_paths_lie_in_the_scenario_s_folder(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    assert resolve("a.csv", tmp_path) == (tmp_path / "a.csv").resolve()
    with pytest.raises(TraceError, match="the scenario has no folder"):
        resolve("a.csv", None)


@pytest.mark.parametrize("escape", ["../secret.csv", "sub/../../secret.csv", "link.csv"])
@pytest.mark.parametrize("root", ["shared", "own"])
def test_no_path_leads_out_of_its_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, escape: str, root: str) -> None:
    (tmp_path / "secret.csv").touch()
    inside = tmp_path / "root"
    (inside / "sub").mkdir(parents=True)
    (inside / "link.csv").symlink_to(tmp_path / "secret.csv")
    monkeypatch.setenv("HETENV_SHARED", str(inside))
    with pytest.raises(TraceError, match="leads out of"):
        resolve(f"shared:{escape}" if root == "shared" else escape, inside)


def test_an_absolute_path_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HETENV_SHARED", str(tmp_path))
    for path in ("/etc/hostname", "shared:/etc/hostname"):
        with pytest.raises(TraceError, match="leads out of"):
            resolve(path, tmp_path)


def test_pandas_is_not_imported_before_a_trace_is_read() -> None:
    code = "import sys, hetenv.workload, hetenv.traces, hetenv.events; sys.exit('pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

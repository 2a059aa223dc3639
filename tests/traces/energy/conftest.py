"""Where the shared signal files lie, and a way to write small ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hetenv.traces.paths import shared_folder

Write = Callable[..., Path]


@pytest.fixture(scope="session")
def energy() -> Path:
    folder = shared_folder() / "data/energy"
    if not folder.is_dir():
        pytest.skip(f"the shared data folder is absent ({folder}); set HETENV_SHARED")
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """write(line, ..., name=, end=) -> path."""

    def written(*lines: str, name: str = "small.csv", end: str = "\n") -> Path:
        path = tmp_path / name
        path.write_bytes((end.join(lines) + end).encode())
        return path

    return written

"""Where trace and signal files may lie: the shared data folder (`shared:data/...`) or the scenario's own folder."""

import os
from pathlib import Path
from typing import Final

from hetenv.errors import TraceError

SHARED_PREFIX: Final = "shared:"
SHARED_VARIABLE: Final = "HETENV_SHARED"


def shared_folder() -> Path:
    """The folder that `shared:` stands for: $HETENV_SHARED, else `../shared` of the project's root. May be absent."""
    stated = os.environ.get(SHARED_VARIABLE)
    return Path(stated) if stated else Path(__file__).resolve().parents[2].parent / "shared"


def resolve(path: str, folder: Path | None) -> Path:
    """An existing file or folder below one of the two roots.

    Args:
        path: `shared:` and a path below the shared folder, or a path below `folder`.
        folder: the scenario's own folder; None where it came from no file.

    Raises:
        TraceError: no such root, nothing there, or a path that leads out of its root.
    """
    if path.startswith(SHARED_PREFIX):
        root, relative = shared_folder(), path[len(SHARED_PREFIX) :]
        if not root.is_dir():
            raise TraceError(
                f"path {path!r}: the shared data folder {root} is absent; "
                f"set {SHARED_VARIABLE} to the folder that holds data/"
            )
    elif folder is None:
        raise TraceError(f"path {path!r}: the scenario has no folder; load it from a file or use {SHARED_PREFIX}")
    else:
        root, relative = folder, path
    root = root.resolve()
    found = (root / relative).resolve()
    if not found.is_relative_to(root):
        raise TraceError(f"path {path!r}: leads out of {root}; only the scenario's folder and {SHARED_PREFIX} are read")
    if not found.exists():
        raise TraceError(f"path {path!r}: no file or folder {found}")
    return found

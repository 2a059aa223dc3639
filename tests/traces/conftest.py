"""Where the shared data lies, and a small Philly file with known content."""

from pathlib import Path

import pytest

from hetenv.traces.paths import shared_folder

HEADER = "timestamp,duration,num_gpus,gpu_time,cluster"
LINES = (
    "2017-10-20 08:00:00,100.0,1,100.0,aa",
    "2017-10-20 07:30:00,3600.0,8,28800.0,bb",
    "2017-10-21 00:00:01,0.0,2,0.0,aa",
    "2017-10-20 08:00:00,100.0,1,100.0,aa",
)


@pytest.fixture
def small() -> str:
    return "\n".join([HEADER, *LINES, ""])


@pytest.fixture(scope="session")
def philly() -> Path:
    folder = shared_folder() / "data/workloads/philly_sia"
    if not (folder / "philly.csv").is_file():
        pytest.skip(f"the shared data folder is absent ({folder}); set HETENV_SHARED")
    return folder

"""Every shipped scenario, by name, where its data are there."""

from functools import cache

import pytest

from hetenv import scenario as scenarios
from hetenv.errors import TraceError
from hetenv.scenario import Scenario


@cache
def _usable(name: str) -> Scenario | str:
    scenario = scenarios.load(name)
    try:
        scenario.compile().sample(0)
    except TraceError as error:
        return str(error)
    return scenario


@pytest.fixture(params=scenarios.names())
def shipped(request: pytest.FixtureRequest) -> Scenario:
    found = _usable(request.param)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture(scope="session")
def smoke() -> Scenario:
    found = _usable("smoke")
    assert isinstance(found, Scenario)
    return found

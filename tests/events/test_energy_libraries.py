"""pvlib and windpowerlib behind the renewables: against the plain formulas, and what is said where they are absent."""

import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from hetenv.cluster import Cluster
from hetenv.errors import MissingExtraError, ScenarioError
from hetenv.events import Renewables
from hetenv.events.stream import EventContext, source_rng
from hetenv.events.weather import clear_sky_w_per_m2

DAY_S = 86_400.0


def power(cluster: Cluster, backend: str, seed: int = 0, days: float = 2, **site: Any) -> NDArray[np.float64]:
    config = Renewables.model_validate({"backend": backend, "sites": {"south": {"latitude_deg": 40, "utc_offset_h": -7, **site}}})
    return config.draw(source_rng(seed, 0, "x"), EventContext(cluster, np.zeros(0), days * DAY_S))["value"]


def test_pvlib_s_clear_sky_lies_near_the_formula_s() -> None:
    pytest.importorskip("pvlib")
    from hetenv.events.energy_libraries import clear_sky_w_per_m2 as by_pvlib

    hour = np.arange(0.0, 48.0, 0.25)
    for latitude, longitude, day in ((37.4, -121.9, 172), (52.5, 13.4, 80), (-33.9, 18.4, 355), (0.0, 0.0, 265)):
        theirs, ours = by_pvlib(latitude, longitude, day, hour), clear_sky_w_per_m2(latitude, day, hour + longitude / 15)
        assert np.corrcoef(theirs, ours)[0, 1] > 0.995
        assert theirs.sum() == pytest.approx(ours.sum(), rel=0.12)  # Haurwitz knows no turbidity
        assert abs(int(theirs[:96].argmax()) - int(ours[:96].argmax())) <= 2  # the equation of time: at most 17 minutes
        assert theirs.min() == 0.0 and theirs.max() < 1200


def test_solar_power_through_pvlib(cluster: Cluster) -> None:
    pytest.importorskip("pvlib")
    site = {"solar": {"peak_w": 1e5}, "cloudiness": 0.2}
    theirs, ours = (power(cluster, backend, **site) for backend in ("pvlib", "formula"))
    assert theirs.shape == ours.shape and np.corrcoef(theirs, ours)[0, 1] > 0.99
    assert np.array_equal(theirs, power(cluster, "pvlib", **site)) and not np.array_equal(theirs, power(cluster, "pvlib", 1, **site))


def test_a_turbine_s_power_curve(cluster: Cluster) -> None:
    pytest.importorskip("windpowerlib")
    from hetenv.events.energy_libraries import turbine_share

    share = turbine_share("E-126/4200", np.array([0.0, 3.0, 5.0, 20.0, 30.0]))
    assert share == pytest.approx([0, 58 / 4200, 400 / 4200, 1, 0])  # the maker's table, kW
    wind = power(cluster, "pvlib", days=100, wind={"rated_w": 1e6, "turbine": "E-126/4200"})
    assert wind.max() == 1e6 and 0.2 < wind.mean() / 1e6 < 0.6
    with pytest.raises(ScenarioError, match="unknown turbine 'E-126/420'; did you mean 'E-126/4200'"):
        power(cluster, "pvlib", wind={"rated_w": 1e6, "turbine": "E-126/420"})


def test_absent_libraries_are_named_with_their_extra(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pvlib", "pvlib.location", "windpowerlib"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pvlib is not installed; install it with: pip install 'hetenv\[energy\]'"):
        power(cluster, "pvlib", solar={"peak_w": 1.0})
    from hetenv.events.energy_libraries import turbine_share

    with pytest.raises(MissingExtraError, match="windpowerlib is not installed"):
        turbine_share("E-126/4200", np.zeros(1))


def test_a_turbine_without_the_library_s_backend_is_refused(cluster: Cluster) -> None:
    with pytest.raises(ValidationError, match=r"sites.south.wind.turbine: needs `backend: pvlib`"):
        power(cluster, "formula", wind={"rated_w": 1e6, "turbine": "E-126/4200"})

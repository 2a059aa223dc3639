"""Sun and wind by pvlib and windpowerlib, where they are installed (extra `energy`). The plain formulas are in `weather`."""

import numpy as np

from hetenv.errors import MissingExtraError, ScenarioError, unknown
from hetenv.events.weather import Series
from hetenv.units import DAY_S, HOUR_S

YEAR = 2023
"""Of the sun's position; it changes little from year to year."""


def clear_sky_w_per_m2(latitude_deg: float, longitude_deg: float, day_of_year: int, utc_hour: Series) -> Series:
    """[T] global horizontal irradiance under a clear sky by Ineichen and Perez (2002) with pvlib's turbidity, W/m2, >= 0.

    Args:
        utc_hour: [T] UTC hours since the midnight that begins `day_of_year`; may pass 24.

    Raises:
        MissingExtraError: pvlib is not installed.
    """
    try:
        import pandas as pd
        from pvlib.location import Location
    except ImportError:
        raise MissingExtraError("pvlib", "energy") from None
    seconds = np.round((day_of_year - 1) * DAY_S + utc_hour * HOUR_S).astype(np.int64)
    times = pd.DatetimeIndex(np.datetime64(f"{YEAR}-01-01", "s") + seconds.astype("timedelta64[s]"), tz="UTC")
    found: Series = Location(latitude_deg, longitude_deg).get_clearsky(times, model="ineichen")["ghi"].to_numpy(np.float64)
    return np.maximum(np.nan_to_num(found), 0.0)


def turbine_share(turbine: str, speed_m_per_s: Series) -> Series:
    """[T] power over rated power of a turbine by its maker's power curve, 0..1.

    Raises:
        MissingExtraError: windpowerlib is not installed.
        ScenarioError: it knows no such turbine.
    """
    try:
        from windpowerlib import WindTurbine, data, power_output
    except ImportError:
        raise MissingExtraError("windpowerlib", "energy") from None
    types = data.get_turbine_types(print_out=False)
    known = types["turbine_type"][types["has_power_curve"]].tolist()
    if turbine not in known:
        raise ScenarioError(unknown("turbine", turbine, known))
    made = WindTurbine(hub_height=100.0, turbine_type=turbine)
    curve = made.power_curve
    found: Series = power_output.power_curve(speed_m_per_s, curve["wind_speed"], curve["value"]) / made.nominal_power
    return np.clip(found, 0.0, 1.0)

"""Renewable power, carbon intensities, price and temperature of sites as recorded. The files' oddities are `traces`' concern."""

from dataclasses import replace
from datetime import datetime
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from hetenv.cluster import Cluster
from hetenv.errors import ScenarioError, unknown
from hetenv.events.curtailment import Curtailment, curtailed_w
from hetenv.events.signal_file import CELSIUS, INTENSITY, IRRADIANCE, MEGAWATT, SHARE, SPEED, FormatName, SignalFile
from hetenv.events.signals import EndPolicy, Signal
from hetenv.events.stream import SIGNAL_EFFECTS, Effect, EventContext, empty_rows, rows
from hetenv.events.weather import photovoltaic_share, speed_at_height, wind_power_share
from hetenv.events.windows import SeededStart, StartConfig
from hetenv.traces.series import Series
from hetenv.units import JOULE_PER_KWH, JOULE_PER_MWH, KILO

Array = NDArray[np.float64]
MEASURED_M: Final = 10.0
"""Height above ground of wind in weather files (WMO)."""


class CarbonFile(SignalFile):
    """Carbon intensity; below zero counts as 0."""

    scale: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)


class PriceFile(SignalFile):
    """Price of energy; may be negative."""

    usd: float | None = Field(default=None, gt=0.0, allow_inf_nan=False, description="USD per unit of the file's currency")


class PowerFile(SignalFile):
    """Power: peak_w times the file's share of peak power; of a file in MW times value over the file's largest value."""

    peak_w: float = Field(gt=0.0, allow_inf_nan=False)


class SolarFile(SignalFile):
    """A photovoltaic plant under measured irradiance and temperature (columns `ghi` and `temp` of a weather file)."""

    format: FormatName = "epw"
    peak_w: float = Field(gt=0.0, allow_inf_nan=False, description="at 1,000 W/m2 and 25 deg C, and the inverter's limit")
    power_per_c: float = Field(default=-0.0047, ge=-0.02, le=0.0, description="change of power per degree; PVWatts' standard module")
    noct_c: float = Field(default=45.0, ge=20.0, le=80.0, description="cell temperature at 800 W/m2 and 20 deg C")


class WindFile(SignalFile):
    """Wind turbines under the wind speed of a weather file (column `wind`, 10 m above ground)."""

    format: FormatName = "epw"
    column: str | None = "wind"
    rated_w: float = Field(gt=0.0, allow_inf_nan=False)
    hub_m: float = Field(default=100.0, ge=1.0, le=300.0)
    shear: float = Field(default=1.0 / 7.0, ge=0.0, le=1.0, description="exponent of the power law over open land")


class TemperatureFile(SignalFile):
    """Outside temperature of a weather file (column `temp`)."""

    format: FormatName = "epw"
    column: str | None = "temp"


class PriceCap(BaseModel):
    """The site draws at most cap_w while its price is above a threshold: interruptible contracts, demand response by price."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    above_usd_per_mwh: float = Field(allow_inf_nan=False)
    cap_w: float = Field(gt=0.0, allow_inf_nan=False)


class SiteSeries(BaseModel):
    """What the files say of one site.

    Its renewable power is power + solar + wind, less the local demand that is served first, plus what is curtailed elsewhere.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    carbon: CarbonFile | None = None
    marginal_carbon: CarbonFile | None = Field(default=None, description="what one more kWh causes; read by low_carbon too")
    price: PriceFile | None = None
    power: PowerFile | None = None
    solar: SolarFile | None = None
    wind: WindFile | None = None
    temperature: TemperatureFile | None = None
    local_demand: PowerFile | None = Field(default=None, description="of others at the site; only the surplus is left")
    local_demand_w: float = Field(default=0.0, ge=0.0, allow_inf_nan=False, description="the same, constant, in addition")
    curtailed: tuple[Curtailment, ...] = ()
    capped: PriceCap | None = Field(default=None, description="by the price")

    @model_validator(mode="after")
    def _priced(self) -> "SiteSeries":
        if self.capped is not None and self.price is None:
            raise ValueError("capped: needs `price`, the file that it goes by")
        return self

    @property
    def files(self) -> dict[str, SignalFile]:
        """Key -> file, of those that are stated."""
        keys = ("carbon", "marginal_carbon", "price", "power", "solar", "wind", "temperature", "local_demand")
        return {key: getattr(self, key) for key in keys if getattr(self, key) is not None}


SOLAR_AIR: Final = "solar (temp)"
"""Key of the temperature at a solar plant, of the plant's own file."""
UNITS: Final[dict[str, tuple[str, ...]]] = {
    "carbon": (INTENSITY,),
    "marginal_carbon": (INTENSITY,),
    "price": ("*/MWh",),
    "power": (SHARE, MEGAWATT),
    "local_demand": (SHARE, MEGAWATT),
    "solar": (IRRADIANCE,),
    "wind": (SPEED,),
    "temperature": (CELSIUS,),
    SOLAR_AIR: (CELSIUS,),
}


PLAIN_EFFECTS: Final = {
    "carbon": (Effect.SITE_CARBON, 1.0 / KILO / JOULE_PER_KWH),
    "marginal_carbon": (Effect.SITE_MARGINAL_CARBON, 1.0 / KILO / JOULE_PER_KWH),
    "price": (Effect.SITE_PRICE, 1.0 / JOULE_PER_MWH),
    "temperature": (Effect.SITE_TEMPERATURE, 1.0),
}
"""Key -> effect, and its unit over the key's."""


class RecordedSeries(BaseModel):
    """Steps of renewable power, carbon intensity and price as recorded: one row where a value changes.

    Effects: SITE_RENEWABLE (where the site has plants, demand or curtailment), SITE_CARBON, SITE_MARGINAL_CARBON, SITE_PRICE,
    SITE_TEMPERATURE, SITE_POWER_CAP (where `capped`). All sites share the instant of time 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["series"] = "series"
    name: str | None = Field(default=None, min_length=1, description="source name; default: the kind")
    start: StartConfig
    end: EndPolicy = Field(default="raise", description="after a record's end (and before its begin)")
    sites: dict[str, SiteSeries] = Field(min_length=1, description="site name -> files")

    @property
    def source_name(self) -> str:
        return self.name or self.kind

    def draw(self, rng: np.random.Generator, context: EventContext) -> NDArray[np.void]:
        """Rows of all sites within the horizon, the first at 0."""
        _, found = self.signals(rng, context)
        drawn = [empty_rows()]
        for name, site in self.sites.items():
            target = context.cluster.site(name)
            drawn.extend(self._site_rows(site, found[name], target, context.horizon_s, name))
            if site.capped is not None:
                own_w = float(context.cluster.site_start[target, SIGNAL_EFFECTS.index(Effect.SITE_POWER_CAP)])
                drawn.append(_caps(site.capped, found[name]["price"], target, own_w, context.horizon_s))
        return np.concatenate(drawn)

    def signals(self, rng: np.random.Generator, context: EventContext) -> tuple[datetime, dict[str, dict[str, Signal]]]:
        """Instant of time 0, and by site and key the signals on the episode's clock.

        Units: g/kWh, USD/MWh, shares of peak power, W/m2, m/s, deg C.

        Raises:
            TraceError: a file cannot be read, or does not cover the episode.
            ScenarioError: an unknown site, or a field that a file needs.
        """
        loaded = {name: self._load(name, site, context) for name, site in self.sites.items()}
        start = self._start(rng, context, loaded)
        found: dict[str, dict[str, Signal]] = {}
        for name, site in self.sites.items():
            found[name] = {}
            for key, series in loaded[name].items():
                file = site.files["solar" if key == SOLAR_AIR else key]
                found[name][key] = file.signal(series, start, context.horizon_s, self.end, self._where(name, key))
        return start, found

    def _where(self, site: str, key: str) -> str:
        return f"events.{self.source_name}.sites.{site}.{key}"

    def _load(self, name: str, site: SiteSeries, context: EventContext) -> dict[str, Series]:
        """The series of a site by key."""
        _known_site(name, context.cluster, f"events.{self.source_name}.sites")
        found = {}
        for key, file in site.files.items():
            where = self._where(name, key)
            found[key] = _in_units(file, file.series(context.folder, UNITS[key], where), where)
        if site.solar is not None:
            where = self._where(name, "solar")
            found[SOLAR_AIR] = site.solar.series(context.folder, UNITS[SOLAR_AIR], where, "temp")
        return found

    def _start(
        self, rng: np.random.Generator, context: EventContext, loaded: dict[str, dict[str, Series]]
    ) -> datetime:
        if not isinstance(self.start, SeededStart):
            return self.start.utc
        records = [
            (series, self.sites[name].files["solar" if key == SOLAR_AIR else key].max_gap_s)
            for name, by_key in loaded.items()
            for key, series in by_key.items()
            if series.origin is not None
        ]
        return self.start.draw(rng, context.seed, context.horizon_s, records, f"events.{self.source_name}.start")

    def _site_rows(
        self, site: SiteSeries, signals: dict[str, Signal], target: int, horizon_s: float, name: str
    ) -> list[NDArray[np.void]]:
        """One array of rows per effect."""
        at_s = np.unique(np.concatenate([[0.0], *(signal.steps(0.0, horizon_s)[0] for signal in signals.values())]))
        values = {key: signal.value(at_s) for key, signal in signals.items()}
        found = []
        if site.power or site.solar or site.wind or site.curtailed:
            found.append(_changes(Effect.SITE_RENEWABLE, at_s, target, self._renewable_w(site, values, at_s.size, name)))
        for key, (effect, per_unit) in PLAIN_EFFECTS.items():
            if key in values:
                found.append(_changes(effect, at_s, target, values[key] * per_unit))
        return found

    def _renewable_w(self, site: SiteSeries, values: dict[str, Array], n: int, name: str) -> Array:
        """[T] renewable power of the site, W."""
        own_w: Array = np.full(n, -site.local_demand_w)
        for file, key, sign in ((site.power, "power", 1.0), (site.local_demand, "local_demand", -1.0)):
            if file is not None:
                own_w = own_w + sign * file.peak_w * values[key]
        if site.solar is not None:
            share = photovoltaic_share(values["solar"], values[SOLAR_AIR], site.solar.power_per_c, site.solar.noct_c)
            own_w = own_w + site.solar.peak_w * share
        if site.wind is not None:
            speed = speed_at_height(values["wind"], MEASURED_M, site.wind.hub_m, site.wind.shear)
            own_w = own_w + site.wind.rated_w * wind_power_share(speed)
        intensity = values.get("marginal_carbon", values.get("carbon"))
        free_w = curtailed_w(site.curtailed, intensity, values.get("price"), self._where(name, "curtailed"))
        total_w: Array = np.maximum(own_w, 0.0) + free_w
        return total_w


def _caps(capped: PriceCap, price: Signal, target: int, own_w: float, horizon_s: float) -> NDArray[np.void]:
    """SITE_POWER_CAP rows where a price passes the threshold; otherwise the site's own cap holds."""
    at_s = np.unique(np.concatenate([[0.0], price.steps(0.0, horizon_s)[0]]))
    holds = price.value(at_s) > capped.above_usd_per_mwh
    return _changes(Effect.SITE_POWER_CAP, at_s, target, np.where(holds, min(capped.cap_w, own_w), own_w))


def _changes(effect: Effect, at_s: Array, target: int, values: Array) -> NDArray[np.void]:
    """Rows where a value differs from the one before."""
    changed = np.append(True, values[1:] != values[:-1])
    return rows(effect, at_s[changed], target, values[changed])


def _in_units(file: SignalFile, series: Series, where: str) -> Series:
    """The series scaled: prices to USD/MWh, megawatts to shares of the file's largest, carbon by its scale."""
    values = series.values
    if isinstance(file, CarbonFile):
        return replace(series, values=np.maximum(values, 0.0) * file.scale)
    if isinstance(file, PriceFile):
        currency = series.unit.removesuffix("/MWh")
        if file.usd is None and currency != "USD":
            raise ScenarioError(f"{where}.usd: the file is in {series.unit}; state the USD per {currency}")
        return replace(series, values=values * (file.usd or 1.0), unit="USD/MWh")
    if series.unit == MEGAWATT:
        largest = float(np.nanmax(values, initial=0.0))
        if largest <= 0.0:
            raise ScenarioError(f"{where}: series {series.name!r} is nowhere above 0 MW")
        return replace(series, values=values / largest, unit=SHARE)
    return series


def _known_site(name: str, cluster: Cluster, where: str) -> None:
    if name not in cluster.site_names:
        raise ScenarioError(f"{where}: {unknown('site', name, cluster.site_names)}")

"""Presets of causes of events measured by drawing them: the table in docs/events.md."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import TypeAdapter

from hetenv import catalog
from hetenv.cluster import ClusterConfig, PoolConfig, build
from hetenv.errors import ScenarioError
from hetenv.events import EventConfig
from hetenv.events.rates import Measured, measure
from hetenv.events.stream import EventContext, EventSource
from hetenv.units import DAY_S, HOUR_S
from hetenv.workload.requests import requests

N_EPISODES: Final = 200
BEGIN: Final = "<!-- presets -->"
END: Final = "<!-- end of presets -->"
_PARSE: TypeAdapter[EventSource] = TypeAdapter(EventConfig)


@dataclass(frozen=True)
class PresetRow:
    """One published figure of one preset, and what its draws give."""

    kind: str
    preset: str
    figure: str
    published: float
    found: Measured
    source: str


@cache
def surroundings(kind: str) -> EventContext:
    """What a preset of a kind is drawn in: pools of 16 nodes (32 for spot), 30 days (a year for domains and renewables), 500 jobs."""
    n_pools, nodes, days = {"spot": (1, 32, 14.0), "domains": (64, 16, 365.25), "renewables": (1, 1, 365.0)}.get(kind, (16, 16, 30.0))
    pools = tuple(PoolConfig(name=f"p{k}", accelerator="A100-SXM-80", nodes=nodes) for k in range(min(n_pools, 62)))
    jobs = requests(500)
    jobs["work"], jobs["believed_work"] = 3600.0, 3600.0
    jobs["submit_s"] = np.arange(jobs.size) * 60.0
    jobs.flags.writeable = False
    return EventContext(build(ClusterConfig(pools=pools)), jobs, days * DAY_S)


def measured(preset: str, n_episodes: int = N_EPISODES) -> list[PresetRow]:
    """Each published figure of a preset beside the drawn one."""
    entry = catalog.event_presets()[preset]
    source = _PARSE.validate_python({"kind": entry.kind, **_stated(entry.kind, preset)})
    context = surroundings("domains" if "domains" in entry.fields else entry.kind)
    found = measure(source, context, tuple(entry.figures), n_episodes)
    return [
        PresetRow(entry.kind, preset, figure, published, found[figure], entry.source)
        for figure, published in entry.figures.items()
    ]


def _stated(kind: str, preset: str) -> dict[str, Any]:
    """Fields of a cause that is a preset and nothing more."""
    if kind == "renewables":
        return {"sites": {"site": {"preset": preset}}, "step_s": HOUR_S, "day_of_year": 1}
    return {"preset": preset, **({"pools": ("p0",)} if kind == "spot" else {})}


def table(n_episodes: int = N_EPISODES) -> list[PresetRow]:
    """All presets."""
    return [row for preset in catalog.event_presets() for row in measured(preset, n_episodes)]


def markdown(found: list[PresetRow]) -> str:
    """The rows as the table of docs/events.md, then the source of each preset."""
    lines = ["| cause | preset | figure | published | drawn | standard error |", "|---|---|---|---|---|---|"]
    for row in found:
        cells = (f"{value:.4g}" for value in (row.published, row.found.value, row.found.standard_error))
        lines.append(f"| {row.kind} | `{row.preset}` | {row.figure} | {' | '.join(cells)} |")
    sources = dict.fromkeys((row.preset, row.source) for row in found)
    return "\n".join([*lines, "", *(f"- `{preset}`: {source}." for preset, source in sources)]) + "\n"


def rewrite(page: Path, found: list[PresetRow]) -> None:
    """Put the table between the two marks of a page. Raises ScenarioError where they are missing."""
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise ScenarioError(f"{page}: the marks {BEGIN} and {END} are missing")
    before, _, rest = text.partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{markdown(found)}{END}{rest.partition(END)[2]}", encoding="utf-8")

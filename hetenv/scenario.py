"""Scenarios: one YAML file composes a cluster, job classes, a workload, causes of events and the rules of the game.

`load` reads it, `Scenario.compile` tabulates its physics, `Compiled.sample` draws the world of one episode.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hetenv import beliefs, phases
from hetenv import cluster as clusters
from hetenv.beliefs import Knowledge
from hetenv.cluster import Cluster, ClusterConfig
from hetenv.configurations import Configurations, compile_configurations, legal_rows
from hetenv.errors import ScenarioError, unknown
from hetenv.events import EventConfig
from hetenv.events.factors import compose
from hetenv.events.stream import SIGNAL_EFFECTS, Effect, EventClock, EventContext, merge, source_rng
from hetenv.moves import add_moves
from hetenv.objective import Account, Objective
from hetenv.workload import JobClass, PlainClass, WorkloadConfig, WorkloadContext
from hetenv.workload.mapping import classes as mapped_classes
from hetenv.workload.mapping import mappings

SCENARIO_FOLDERS: Final = (Path(__file__).parent / "scenarios", Path(__file__).parent.parent / "scenarios")
Capability = Literal["replan", "resize", "migrate", "preempt", "wait", "degrade"]
"""Changes on the same GPUs' pools and count; of the GPU count; of the pools; to the queue; of a start to later; by failures."""
WindowOrder = Literal["submit", "estimate_per_weight", "deadline"]


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EventClockConfig(_Config):
    """A decision at every instant: arrival, completion, capacity change, signal step."""

    kind: Literal["event"] = "event"
    max_interval_s: float | None = Field(default=None, gt=0.0, description="a decision at least this often")


class RoundClockConfig(_Config):
    """A decision every `round_s`; what happens between is seen at the next round."""

    kind: Literal["round"] = "round"
    round_s: float = Field(gt=0.0)


class OneByOneClockConfig(_Config):
    """A decision after each single submit, completion or effect, several of one time one after the other, submits first."""

    kind: Literal["one_by_one"] = "one_by_one"


ClockConfig = Annotated[EventClockConfig | RoundClockConfig | OneByOneClockConfig, Field(discriminator="kind")]


class EmptyStart(_Config):
    """The cluster is empty at time 0; jobs submitted before it wait."""

    kind: Literal["empty"] = "empty"


class WarmStart(_Config):
    """First-fit FIFO runs the scenario for `until_s`; the first decision of the policy comes after that."""

    kind: Literal["warm"] = "warm"
    until_s: float = Field(gt=0.0)


StartConfig = Annotated[EmptyStart | WarmStart, Field(discriminator="kind")]


class TruncateEnd(_Config):
    """The episode is truncated at the horizon."""

    kind: Literal["truncate"] = "truncate"


class DrainEnd(_Config):
    """After the horizon (no submits from then on) the episode goes on until all jobs have ended, at most to `limit_s`."""

    kind: Literal["drain"] = "drain"
    limit_s: float = Field(gt=0.0, description="time at which the episode is truncated all the same")


EndConfig = Annotated[TruncateEnd | DrainEnd, Field(discriminator="kind")]


class MeasureConfig(_Config):
    """Window that metrics count: its accounts, and the jobs submitted in it. Default: the whole episode."""

    from_s: float = Field(default=0.0, ge=0.0)
    to_s: float | None = Field(default=None, gt=0.0)


class CandidateConfig(_Config):
    """Shape of the candidate table: A = 1 + (queued + running) x configurations."""

    queued: int = Field(default=8, ge=1, le=256)
    running: int = Field(default=4, ge=0, le=256)
    configurations: int = Field(default=8, ge=1, le=64)
    window_orders: tuple[WindowOrder, ...] = Field(default=("submit", "estimate_per_weight"), min_length=1)
    max_commands_per_instant: int = Field(default=24, ge=1)


class SeedConfig(_Config):
    """Disjoint ranges [first, first + n) of episode numbers for training, validation and test."""

    train: tuple[int, int] = (1_000_000, 1_000_000)
    validation: tuple[int, int] = (100_000, 40)
    test: tuple[int, int] = (0, 100)

    @model_validator(mode="after")
    def _disjoint(self) -> "SeedConfig":
        ranges = sorted([self.train, self.validation, self.test])
        for (first, n), (following, _) in zip(ranges, ranges[1:]):
            if first + n > following:
                raise ValueError(f"ranges overlap at {following}; make train, validation and test disjoint")
        return self

    def numbers(self, split: Literal["train", "validation", "test"], n: int | None = None) -> range:
        """The first n seeds of a split (all by default)."""
        first, size = getattr(self, split)
        return range(first, first + (size if n is None else min(n, size)))


class Scenario(_Config):
    """A whole scenario; its fields are the keys of the YAML file."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    summary: str = Field(min_length=1)
    version: int = Field(default=0, ge=0, description="raised with any change of dynamics")
    horizon_s: float = Field(gt=0.0, allow_inf_nan=False)
    cluster: ClusterConfig
    classes: dict[str, JobClass] = Field(min_length=1)
    workload: WorkloadConfig
    events: tuple[EventConfig, ...] = ()
    clock: ClockConfig = EventClockConfig()
    start: StartConfig = EmptyStart()
    end: EndConfig = TruncateEnd()
    measure: MeasureConfig = MeasureConfig()
    knowledge: Knowledge = Knowledge()
    objective: Objective = Objective()
    candidates: CandidateConfig = CandidateConfig()
    seeds: SeedConfig = SeedConfig()
    contention: Literal["none", "fair_share"] = Field(
        default="none", description="of jobs over several nodes for what joins the nodes of a pool (`oversubscription`)"
    )
    without: tuple[Capability, ...] = Field(
        default=(), description="commands that are not legal here: for ablations, to see what a capability is worth"
    )
    primary_metric: str = "objective"
    folder: Path | None = Field(default=None, exclude=True, description="where the file lies; set by `load`")

    @model_validator(mode="before")
    @classmethod
    def _mapped_classes(cls, data: Any) -> Any:
        """A shipped mapping of a trace brings its classes along; the scenario's own of the same name go before them."""
        workload = data.get("workload") if isinstance(data, dict) else None
        name = workload.get("mapping") if isinstance(workload, dict) else getattr(workload, "mapping", None)
        own = data.get("classes", {}) if isinstance(data, dict) else None
        if not isinstance(name, str) or name not in mappings() or not isinstance(own, dict):
            return data
        return {**data, "classes": {**mapped_classes(name), **own}}

    @model_validator(mode="after")
    def _unique_sources(self) -> "Scenario":
        names = [event.source_name for event in self.events] + ["workload", phases.PHASE_SOURCE]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"events: source name {doubled[0]!r} is used twice; give one of them another `name`")
        return self

    @property
    def limit_s(self) -> float:
        """Time at which an episode is truncated at the latest."""
        return self.end.limit_s if isinstance(self.end, DrainEnd) else self.horizon_s

    def compile(self) -> "Compiled":
        """Tabulate the physics (cached per scenario object)."""
        return _compile(self)

    def __hash__(self) -> int:
        return id(self)


@dataclass(frozen=True)
class World:
    """One episode: what happens whatever is decided."""

    requests: NDArray[np.void]
    """[J] REQUEST rows in job-id order."""
    events: NDArray[np.void]
    """[E] EVENT rows in `merge` order."""
    ranks: NDArray[np.int32]
    """[orders, J] place of each request in each window order."""
    node_event: NDArray[np.int32]
    """[N + 1] NODE_BUSY rows of node n: events[node_event[n]:node_event[n + 1]]."""
    n_wall_events: int
    seed: int
    episode: int


@dataclass(frozen=True, eq=False)
class Compiled:
    """A scenario with its physics tabulated. Immutable and shared by all simulators of the scenario."""

    scenario: Scenario
    cluster: Cluster
    configurations: Configurations

    def sample(self, seed: int, episode: int = 0) -> World:
        """Draw the world of one episode; equal arguments give equal worlds, on any machine, in any process."""
        scenario = self.scenario
        context = WorkloadContext(
            classes=phases.flatten(scenario.classes),
            reference_rate=self.configurations.reference_rate,
            cluster=self.cluster,
            horizon_s=scenario.horizon_s,
            folder=scenario.folder,
            seed=seed,
        )
        requests = scenario.workload.draw(source_rng(seed, episode, "workload"), context)
        beliefs.fill(requests, scenario.knowledge, self.configurations, source_rng(seed, episode, "beliefs"))
        self._place_data(requests, context.classes)
        requests["rejected"] |= self._fits_nowhere(requests)
        surroundings = EventContext(self.cluster, requests, scenario.limit_s, scenario.folder, tuple(context.classes), seed)
        drawn = {
            source.source_name: source.draw(source_rng(seed, episode, source.source_name), surroundings)
            for source in scenario.events
        }
        drawn[phases.PHASE_SOURCE] = phases.borders(requests, self.configurations, scenario.classes)
        return make_world(self, requests, merge(compose(drawn)), seed, episode)

    def _place_data(self, requests: NDArray[np.void], flat: Mapping[str, PlainClass]) -> None:
        """Write where each request's data set lies."""
        for index, (name, job_class) in enumerate(flat.items()):
            if job_class.data_site is not None:
                if job_class.data_site not in self.cluster.site_names:
                    known = unknown("site", job_class.data_site, self.cluster.site_names)
                    raise ScenarioError(f"classes.{name}.data_site: {known}")
                requests["data_site"][requests["job_class"] == index] = self.cluster.site(job_class.data_site)

    def _fits_nowhere(self, requests: NDArray[np.void]) -> NDArray[np.bool_]:
        """[J] requests with no legal CONFIG row on this cluster."""
        columns = ("job_class", "min_gpus", "max_gpus", "pools", "cpus_per_gpu", "host_mbytes_per_gpu")
        kinds = zip(*(requests[column].tolist() for column in columns))
        return np.array([not self._ever_fits(*kind) for kind in kinds], bool)

    @cache  # noqa: B019  a handful of kinds per scenario, and scenarios live as long as their process
    def _ever_fits(self, job_class: int, min_gpus: int, max_gpus: int, pools: int, cpus: int, mbytes: int) -> bool:
        """Whether the empty cluster has room for a request of this kind."""
        for phase, _ in self.configurations.phases_of(job_class):
            rows = self.configurations.rows_of(phase)
            legal = rows[legal_rows(rows, min_gpus, max_gpus, pools)]
            if not any(self._fits_empty(row, cpus, mbytes) for row in legal):
                return False
        return True

    def _fits_empty(self, row: np.void, cpus_per_gpu: int, mbytes_per_gpu: int) -> bool:
        """Whether the CPUs and host memory of the row's pools, empty, suffice."""
        for pool, count in ((row["pool_a"], row["gpus_a"]), (row["pool_b"], row["gpus_b"])):
            if pool < 0:
                continue
            per_node = int(self.cluster.gpus_per_node[pool])
            cpus, mbytes = int(self.cluster.cpus_per_node[pool]), int(self.cluster.host_mbytes_per_node[pool])
            if cpus and cpus_per_gpu:
                per_node = min(per_node, cpus // cpus_per_gpu)
            if mbytes and mbytes_per_gpu:
                per_node = min(per_node, mbytes // mbytes_per_gpu)
            on_a_node = per_node if row["any_nodes"] else min(int(count), int(self.cluster.gpus_per_node[pool]))
            if per_node < on_a_node or per_node * int(self.cluster.pool_nodes[pool]) < count:
                return False
        return True


def make_world(compiled: Compiled, requests: NDArray[np.void], events: NDArray[np.void], seed: int = 0, episode: int = 0) -> World:
    """A world from rows: `requests` in job-id order, `events` in `merge` order. Sets the requests' event ranges."""
    clocks = events["clock"]
    n_wall = int((clocks == EventClock.WALL).sum())
    jobs = events["target"][clocks == EventClock.JOB_WORK]
    ids = np.arange(requests.size)
    requests["first_event"] = n_wall + np.searchsorted(jobs, ids, "left")
    requests["last_event"] = n_wall + np.searchsorted(jobs, ids, "right")
    nodes = events["target"][clocks == EventClock.NODE_BUSY]
    first_busy = n_wall + jobs.size
    node_event = first_busy + np.searchsorted(nodes, np.arange(compiled.cluster.n_nodes + 1), "left")
    keys = {
        "submit": ids,
        "estimate_per_weight": requests["believed_s"] / requests["weight"],
        "deadline": requests["deadline_s"],
    }
    orders = compiled.scenario.candidates.window_orders
    ranks = np.empty((len(orders), requests.size), np.int32)
    for place, order in enumerate(orders):
        ranks[place, np.argsort(keys[order], kind="stable")] = ids
    for array in (requests, events, ranks):
        array.flags.writeable = False
    return World(requests, events, ranks, node_event.astype(np.int32), n_wall, seed, episode)


@lru_cache(maxsize=32)
def _compile(scenario: Scenario) -> Compiled:
    cluster = clusters.build(scenario.cluster)
    weights = scenario.objective.vector()
    per_joule = (
        weights[Account.ENERGY_J]
        + weights[Account.CARBON_KG] * cluster.site_start[:, SIGNAL_EFFECTS.index(Effect.SITE_CARBON)]
        + weights[Account.GRID_COST_USD] * cluster.site_start[:, SIGNAL_EFFECTS.index(Effect.SITE_PRICE)]
    )
    energy_weight = np.maximum(per_joule * cluster.pue, 0.0)[cluster.pool_site]
    work_weight = float(weights[Account.JOB_S])
    flat = phases.flatten(scenario.classes)
    table = compile_configurations(flat, cluster, work_weight, energy_weight)
    phases.link(table, scenario.classes)
    return Compiled(scenario, cluster, replace(table, moves=add_moves(table, flat, cluster)))


def names() -> list[str]:
    """Names of the shipped scenarios."""
    return sorted({path.stem for folder in SCENARIO_FOLDERS for path in folder.glob("*.yaml")})


def find(name: str) -> Path:
    """Path of a shipped scenario."""
    for folder in SCENARIO_FOLDERS:
        path = folder / f"{name}.yaml"
        if path.is_file():
            return path
    raise ScenarioError(unknown("scenario", name, names()))


def load(source: "str | Path | Scenario") -> Scenario:
    """A scenario from a shipped name, a path to a YAML file, or an object (returned as it is).

    Raises:
        ScenarioError: the message starts with the path of the field, e.g. `events[2].mtbf_h: must be > 0`.
    """
    if isinstance(source, Scenario):
        return source
    is_path = isinstance(source, Path) or source.endswith((".yaml", ".yml")) or "/" in source
    path = Path(source) if is_path else find(str(source))
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ScenarioError(f"{path}: cannot be read as YAML: {error}") from None
    return parse(data, path)


def parse(data: Any, path: Path | None = None) -> Scenario:
    """A scenario from the content of a YAML file; ScenarioError as `load`."""
    if not isinstance(data, dict):
        raise ScenarioError(f"{path or 'scenario'}: must be a mapping of keys such as name, cluster, classes, workload")
    where = f"{path}: " if path is not None else ""
    try:
        return Scenario(**{**data, "folder": None if path is None else path.resolve().parent})
    except ValidationError as error:
        raise ScenarioError(where + "; ".join(_line(problem, data) for problem in error.errors())) from None
    except TypeError as error:
        raise ScenarioError(f"{where}{error}") from None


def _line(problem: Any, data: Any) -> str:
    """`events[2].mtbf_h: must be > 0` from one pydantic error; the tags of its unions, which are no keys, are left out."""
    path, here = "", data
    for place, part in enumerate(problem["loc"]):
        is_key = isinstance(here, dict) and part in here
        is_index = isinstance(here, list | tuple) and isinstance(part, int)
        if is_key or is_index:
            here = here[part] if is_key or part < len(here) else None
        elif place < len(problem["loc"]) - 1 or isinstance(here, list | tuple):
            continue
        path += f"[{part}]" if isinstance(part, int) and not is_key else f".{part}"
    value = problem.get("input")
    shown = "" if isinstance(value, dict | list) or problem["type"] == "missing" else f" (got {value!r})"
    return f"{path.lstrip('.') or 'scenario'}: {problem['msg']}{shown}"

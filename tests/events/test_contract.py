"""What every cause of EVENT_TYPES must keep. A new cause adds an example of its config to EXAMPLES, nothing else."""

import pickle
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from hetenv.cluster import Cluster
from hetenv.events import EVENT_TYPES, EventConfig
from hetenv.events.stream import (
    CAPACITY_EFFECTS,
    EVENT,
    JOB_EFFECTS,
    Effect,
    EventClock,
    EventContext,
    EventSource,
    merge,
    rows,
    source_rng,
)

HORIZON_S = 3 * 86_400.0

WEATHER = {
    "latitude_deg": 48.0,
    "solar": {"peak_w": 2e4},
    "wind": {"rated_w": 1e4},
    "carbon": {"mean_g_per_kwh": 400},
    "price": {"mean_usd_per_mwh": 20},
}
PRICES = {"path": "prices.csv", "format": "prices"}
RECORDED = {"price": PRICES, "curtailed": [{"kind": "low_price", "power_w": 5e4}], "local_demand_w": 1.0}
SPLITS = {"train": [["2023-01-25", "2023-01-31"]], "validation": [["2023-01-21", "2023-01-24"]], "test": [["2023-01-01", "2023-01-20"]]}
FOLDER = Path(__file__).parent / "data"
EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "capacity_replay": [
        {"format": "bamboo", "path": "events.csv", "pool": "new", "start_h": "seeded", "end": "wrap"},
        {"format": "bamboo", "path": "counts.txt", "pool": "old", "map": "share", "notice_s": 3600},
        {"format": "skypilot_spot", "path": "spot.json", "pool": "spare", "start_h": "seeded", "end": "wrap"},
    ],
    "spot": [
        {"pools": ["old"], "preset": "bamboo_p3"},
        {"pools": ["new", "spare"], "market": {"kind": "price"}, "notice_s": 120},
        {"pools": ["old"], "market": {"kind": "capacity", "up_mean_h": 2, "down_mean_h": 1}},
    ],
    "congestion": [
        {"process": {"kind": "hash"}},
        {"process": {"kind": "spells", "apart_mean_h": 3, "lasting_mean_h": 1}, "level": "intra", "pools": ["old"]},
    ],
    "job_ranges": [
        {"apart_mean_h": 10, "lasting_mean_h": 5},
        {"jobs_share": 0.5, "apart_mean_h": 3, "lasting_mean_h": 1, "gpus_share": 0},
    ],
    "power_caps": [
        {"sites": {"south": {"calls": {"apart_mean_h": 6, "lasting_mean_h": 2, "cap_w": 5e3}}}},
        {
            "sites": {
                "north": {"always_w": 2e4, "calendar": [{"from_hour": 17, "to_hour": 20, "cap_w": 1e4}]},
                "east": {"calendar": [{"from_hour": 22, "to_hour": 2, "cap_w": 1e3, "weekdays": [0]}]},
            }
        },
    ],
    "lending": [
        {"pools": ["old", "new"], "random": {"home_mean_h": 8, "lent_mean_h": 4, "group_nodes": 2}},
        {"pools": ["old"], "calendar": [{"from_hour": 20, "to_hour": 6, "nodes": 2, "weekdays": [0, 2]}]},
    ],
    "maintenance": [
        {"first_h": 5, "every_h": 24, "lasting_h": 2, "jitter_h": 3, "nodes_at_once": 2},
        {"pools": ["old"], "first_h": 70, "lasting_h": 1, "gap_h": 0.5},
    ],
    "slow_nodes": [
        {"apart_mean_h": 10, "lasting_mean_h": 1},
        {"apart_mean_h": 5, "lasting_mean_h": 5, "group_nodes": 3, "pools": ["old"]},
    ],
    "speed_spread": [{}, {"gpu_sigma": 0.3, "slow_share": 0.3, "pools": ["spare"]}],
    "thermal": [
        {"sites": {"south": {"mean_c": 30}, "north": {"mean_c": 5}}},
        {"sites": {"east": {"mean_c": 50, "loss_per_c": 1, "floor": 0.001}}, "step_s": 3600},
    ],
    "user_failures": [
        {"failed_share": 0.5, "cancelled_share": 0.5},
        {"preset": "philly", "impatient_share": 0.9, "patience_h": 2, "limit_factor": 0.7, "classes": ["train"]},
    ],
    "failures": [
        {"mtbf_h": 20},
        {"mtbf_h": 20, "clock": "busy", "pools": ["old", "new"]},
        {"mtbf_h": 1e9},
        {"preset": "meta_rsc1", "mtbf_h": 30, "shape": 0.5, "age_h": 24, "repair": "exponential", "detection": {}},
        {"mtbf_h": 20, "detection": {"hang_share": 0.3, "slow_share": 0.3}, "repair": "deterministic"},
        {"domains": [{"label": "rack", "nodes": 2, "mtbf_h": 9}, {"label": "power", "of": "site", "mtbf_h": 30}]},
    ],
    "renewables": [
        {"sites": {"north": WEATHER, "east": {"latitude_deg": -30, "carbon": {"mean_g_per_kwh": 100}}}},
        {"step_s": 3600, "sites": {"south": {"latitude_deg": 0}}},
    ],
    "series": [
        {"start": {"kind": "seeded", **SPLITS}, "end": "raise", "sites": {"north": {"price": PRICES}, "east": RECORDED}},
        {"start": {"kind": "at", "utc": "2023-01-30T00:00Z"}, "end": "wrap", "sites": {"south": RECORDED}},
    ],
}
PARSE: TypeAdapter[EventSource] = TypeAdapter(EventConfig)


def example(kind: str, fields: Mapping[str, Any], **more: Any) -> EventSource:
    return PARSE.validate_python({"kind": kind, **fields, **more})


SOURCES = [example(kind, fields) for kind, listed in EXAMPLES.items() for fields in listed]
IDS = [f"{kind}-{index}" for kind, listed in EXAMPLES.items() for index in range(len(listed))]
each_source = pytest.mark.parametrize("source", SOURCES, ids=IDS)


@cache
def scenario_folder() -> Path:
    """A folder with the files that the examples name."""
    folder = Path(tempfile.mkdtemp())
    for file in FOLDER.iterdir():
        shutil.copy(file, folder)
    hours = np.arange("2023-01-01", "2023-02-01", dtype="datetime64[h]")
    lines = [f"{str(hour)[:10]} {str(hour)[11:]}:00+00:00,{90 * np.sin(k * k):.3f}" for k, hour in enumerate(hours)]
    (folder / "prices.csv").write_text("\n".join(["Datetime (UTC),Price (USD/MWh)", *lines]), encoding="utf-8")
    return folder


def drawn(
    source: EventSource, cluster: Cluster, requests: NDArray[np.void], seed: int = 3, episode: int = 0
) -> NDArray[np.void]:
    context = EventContext(cluster, requests, HORIZON_S, scenario_folder(), ("train",), seed)
    return source.draw(source_rng(seed, episode, source.source_name), context)


def cells(found: NDArray[np.void]) -> bytes:
    """All bytes of the rows; EVENT has no filler."""
    return found.tobytes()


def n_targets(effect: int, cluster: Cluster, requests: NDArray[np.void]) -> int:
    if effect == Effect.LINK_BANDWIDTH:
        return 2 * len(cluster.pool_names)
    if effect in CAPACITY_EFFECTS:
        return cluster.n_nodes
    return requests.size if effect in JOB_EFFECTS else len(cluster.site_names)


def test_every_type_has_an_example() -> None:
    kinds = {event_type.model_fields["kind"].default for event_type in EVENT_TYPES}  # type: ignore[attr-defined]
    assert kinds == set(EXAMPLES), "add an example of the new kind to EXAMPLES"


@each_source
def test_rows_are_well_formed(source: EventSource, cluster: Cluster, requests: NDArray[np.void]) -> None:
    found = drawn(source, cluster, requests)
    assert found.dtype == EVENT and found.ndim == 1
    on_wall = found["clock"] == EventClock.WALL
    assert np.all(found["at"][on_wall] >= 0) and np.all(found["at"][on_wall] < HORIZON_S)
    assert np.all(found["at"][~on_wall] > 0) and np.all(np.isfinite(found["at"]))
    for effect in np.unique(found["effect"]):
        targets = found["target"][found["effect"] == effect]
        assert targets.min() >= 0 and targets.max() < n_targets(Effect(effect), cluster, requests)


@each_source
def test_values_are_in_range(source: EventSource, cluster: Cluster, requests: NDArray[np.void]) -> None:
    found = drawn(source, cluster, requests)
    for effect in np.unique(found["effect"]):
        values = found["value"][found["effect"] == effect]
        assert not np.isnan(values).any()
        if effect not in (Effect.NODE_DOWN, Effect.SITE_POWER_CAP):
            assert np.isfinite(values).all()
        if effect in (Effect.NODE_DOWN, Effect.NODE_SPEED, Effect.LINK_BANDWIDTH, Effect.SITE_POWER_CAP):
            assert np.all(values > 0)
        if effect in (Effect.NODE_NOTICE, Effect.JOB_RANGE, Effect.SITE_RENEWABLE, Effect.SITE_CARBON):
            assert np.all(values >= 0)


@each_source
def test_same_seed_and_episode_give_the_same_bytes(
    source: EventSource, cluster: Cluster, requests: NDArray[np.void]
) -> None:
    first = cells(drawn(source, cluster, requests))
    again = pickle.loads(pickle.dumps(source))
    assert cells(drawn(again, cluster, requests)) == first


def test_seed_episode_and_name_each_change_the_draw(cluster: Cluster, requests: NDArray[np.void]) -> None:
    for kind, listed in EXAMPLES.items():
        source = example(kind, listed[0])
        other_name = example(kind, listed[0], name="other")
        assert source.source_name == kind and other_name.source_name == "other"
        worlds = [drawn(source, cluster, requests, seed, episode) for seed, episode in product((1, 2), (0, 1))]
        worlds.append(drawn(other_name, cluster, requests, 1, 0))
        assert len({cells(world) for world in worlds}) == len(worlds)


@each_source
def test_drawing_changes_neither_requests_nor_the_global_generator(
    source: EventSource, cluster: Cluster, requests: NDArray[np.void]
) -> None:
    before, state = requests.tobytes(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    drawn(source, cluster, requests)
    assert requests.tobytes() == before
    assert pickle.dumps(np.random.get_state()) == state  # noqa: NPY002


def test_a_row_has_no_filler() -> None:
    assert EVENT.itemsize == sum(EVENT[name].itemsize for name in EVENT.names or ())


@each_source
def test_a_further_source_moves_no_row_of_the_others(
    source: EventSource, cluster: Cluster, requests: NDArray[np.void]
) -> None:
    """Every example together, without and with this one: what the others drew and its order stay, byte for byte."""
    others = {f"{k} {s.source_name}": s for k, s in enumerate(SOURCES) if s is not source}
    base = {name: drawn(s, cluster, requests) for name, s in others.items()}
    with_it = {"first": drawn(source, cluster, requests), **{n: drawn(s, cluster, requests) for n, s in others.items()}}
    for name, found in base.items():
        assert cells(with_it[name]) == cells(found)
    own = np.concatenate([np.full(part.size, name == "first") for name, part in with_it.items()])
    marked = np.concatenate([*with_it.values()])
    marked["value"] = np.where(own, -1.0, marked["value"])
    split = np.split(marked, np.cumsum([part.size for part in with_it.values()])[:-1])
    merged = merge(dict(zip(with_it, split)))
    assert cells(merged[merged["value"] != -1.0]) == cells(merge(base)[merge(base)["value"] != -1.0])


def test_merge_orders_wall_rows_by_time_then_effect_then_source(cluster: Cluster, requests: NDArray[np.void]) -> None:
    drawings = {source.source_name + str(k): drawn(source, cluster, requests) for k, source in enumerate(SOURCES)}
    merged = merge(drawings)
    clocks = merged["clock"]
    assert np.all(np.diff(clocks) >= 0)
    wall = merged[clocks == EventClock.WALL]
    keys = list(zip(wall["at"], wall["effect"]))
    assert keys == sorted(keys)
    busy = merged[clocks == EventClock.NODE_BUSY]
    keys = list(zip(busy["target"], busy["at"], busy["effect"]))
    assert keys == sorted(keys)
    assert sum(part.size for part in drawings.values()) == merged.size


def test_merge_keeps_the_order_of_sources_at_a_tie() -> None:
    first = rows(Effect.NODE_DOWN, 5.0, [1, 0], 1.0)
    second = rows(Effect.NODE_DOWN, 5.0, [3, 2], 1.0)
    sooner = rows(Effect.NODE_UP, 5.0, 9, 0.0)
    assert list(merge({"b": first, "a": second, "c": sooner})["target"]) == [9, 1, 0, 3, 2]


@each_source
def test_an_unknown_key_and_a_change_are_refused(source: EventSource) -> None:
    fields = source.model_dump()  # type: ignore[attr-defined]
    with pytest.raises(ValidationError, match="extra"):
        PARSE.validate_python({**fields, "colour": 1})
    with pytest.raises(ValidationError, match="frozen"):
        source.name = "x"  # type: ignore[attr-defined]


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(ValidationError) as caught:
        PARSE.validate_python({"kind": "earthquake"})
    assert all(f"'{kind}'" in str(caught.value) for kind in EXAMPLES)

"""Replay of capacity: by hand on small traces, and every shared trace against its own counts."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from hetenv.cluster import Cluster, ClusterConfig, PoolConfig, build
from hetenv.errors import ScenarioError, TraceError
from hetenv.events.capacity_replay import SWAP_S, CapacityReplay
from hetenv.events.stream import Effect, EventContext, source_rng
from hetenv.traces import capacity_format
from hetenv.traces.paths import shared_folder

HOUR_S = 3600.0


def cluster(nodes: int) -> Cluster:
    other = PoolConfig(name="other", accelerator="L40S", nodes=3)
    return build(ClusterConfig(pools=(other, PoolConfig(name="p", accelerator="L40S", nodes=nodes))))


def draw(folder: Path, horizon_h: float, nodes: int = 2, **fields: object) -> list[tuple[int, float, float]]:
    """(node, hour, hours) of each row; node 0 is the pool's first."""
    config = CapacityReplay.model_validate({"format": "skypilot_spot", "path": "t.json", "pool": "p", **fields})
    context = EventContext(cluster(nodes), np.zeros(0), horizon_h * HOUR_S, folder)
    found = config.draw(source_rng(0, 0, config.source_name), context)
    assert set(found["effect"]) <= {Effect.NODE_DOWN}
    return [(int(r["target"]) - 3, r["at"] / HOUR_S, r["value"] / HOUR_S) for r in np.sort(found, order=["target", "at"])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    content = {"metadata": {"gap_seconds": 3600}, "data": [1, 2, 0, 1, 2]}
    (tmp_path / "t.json").write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "t.csv").write_text("0,add,a\n3600000,remove,a\n3600000,add,b\n7200000,add,c\n", encoding="utf-8")
    return tmp_path


def test_places_are_nodes_and_the_last_state_stays(folder: Path) -> None:
    assert draw(folder, 10) == [(0, 2, 1), (1, 0, 1), (1, 2, 2)]


def test_time_0_may_lie_within_the_trace(folder: Path) -> None:
    assert draw(folder, 10, start_h=2.5) == [(0, 0, 0.5), (1, 0, 1.5)]


def test_absences_begin_before_the_horizon(folder: Path) -> None:
    assert draw(folder, 1.5) == [(1, 0, 1)]


def test_a_trace_that_wraps_begins_again_without_a_break(folder: Path) -> None:
    # laps of 5 h: node 0 is away 2-3, 7-8; node 1 is away 0-1, 2-4, 5-6, 7-9
    assert draw(folder, 9, end="wrap") == [(0, 2, 1), (0, 7, 1), (1, 0, 1), (1, 2, 2), (1, 5, 1), (1, 7, 2)]


def test_nodes_beyond_the_trace_are_never_there(folder: Path) -> None:
    assert draw(folder, 10, nodes=3)[-1] == (2, 0, np.inf)


def test_shares_spread_over_the_pool(folder: Path) -> None:
    found = draw(folder, 10, nodes=4, map="share")
    assert [row for row in found if row[0] in (0, 1)] == [(0, 2, 1), (1, 2, 1)]
    assert [row[0] for row in found].count(3) == 2
    one = draw(folder, 10, nodes=1, map="share")
    assert one == [(0, 2, 1)]


def test_a_place_taken_over_at_once_still_loses_what_ran_there(folder: Path) -> None:
    found = draw(folder, 10, nodes=2, format="bamboo", path="t.csv")
    assert found == [(0, 1, SWAP_S / HOUR_S), (1, 0, 2)]


def test_seeded_starts_differ_and_lie_within_the_trace(folder: Path) -> None:
    config = CapacityReplay.model_validate(
        {"format": "skypilot_spot", "path": "t.json", "pool": "p", "start_h": "seeded", "end": "raise"}
    )
    context = EventContext(cluster(2), np.zeros(0), 2 * HOUR_S, folder)
    worlds = {config.draw(source_rng(0, k, "x"), context).tobytes() for k in range(20)}
    assert len(worlds) > 10


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nodes": 1}, r"events\.capacity_replay\.pool: 'p' has 1 nodes, the trace up to 2; give it 2 nodes"),
        ({"start_h": 5}, r"start_h: 5 h lies beyond the trace of 5 h"),
        ({"end": "raise"}, r"end: the horizon of 10 h reaches beyond the trace \(5 h from 0 h\)"),
        ({"pool": "q"}, r"events\.capacity_replay\.pool: unknown pool 'q'"),
        ({"path": "none.json"}, r"events\.capacity_replay\.path: path 'none.json': no file"),
        ({"path": "../t.json"}, "leads out of"),
    ],
)
def test_what_cannot_be_replayed_is_refused(folder: Path, fields: dict[str, object], message: str) -> None:
    with pytest.raises((ScenarioError, TraceError), match=message):
        draw(folder, 10, **fields)  # type: ignore[arg-type]


def test_an_unknown_format_lists_the_known() -> None:
    with pytest.raises(ValidationError, match=r"unknown capacity format 'philly_csv' \(known: bamboo, skypilot_spot"):
        CapacityReplay.model_validate({"format": "philly_csv", "path": "x", "pool": "p"})


def shared_files() -> list[Path]:
    folder = shared_folder() / "data/capacity"
    return [path for path in sorted(folder.glob("*/*")) if path.name != "stats.json"]


@pytest.mark.skipif(not shared_files(), reason="the shared data folder is absent; set HETENV_SHARED")
@pytest.mark.parametrize("path", shared_files(), ids=lambda path: path.name)
def test_a_replay_has_the_mean_number_of_nodes_of_its_trace(path: Path) -> None:
    trace = capacity_format(path.parent.name).load(path)
    config = CapacityReplay.model_validate(
        {"format": path.parent.name, "path": f"shared:data/capacity/{path.parent.name}/{path.name}", "pool": "p"}
    )
    context = EventContext(cluster(trace.n_places), np.zeros(0), trace.span_s)
    found: NDArray[np.void] = config.draw(source_rng(0, 0, "x"), context)
    away_s = (np.minimum(found["at"] + found["value"], trace.span_s) - found["at"]).sum()
    there_s = (np.minimum(trace.stays["to_s"], trace.span_s) - trace.stays["from_s"]).sum()
    assert trace.n_places * trace.span_s - away_s == pytest.approx(there_s, abs=SWAP_S * found.size + 1e-3)
    if path.parent.name == "skypilot_spot":
        assert there_s / trace.span_s == pytest.approx(trace.statistics["mean_available"], abs=1e-6)

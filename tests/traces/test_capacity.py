"""Capacity traces: every published number of the real files, small files by hand, oddities, what is refused."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hetenv.cluster import ClusterConfig, PoolConfig, build
from hetenv.errors import TraceError
from hetenv.traces import bamboo, capacity_format, show, skypilot_spot
from hetenv.traces.capacity import stays_of_counts
from hetenv.traces.paths import shared_folder

EVENTS = "0,add,a\n0,add,b\n60000,remove,a\n60000,remove,b\n90000,add,c\n120000,add,d\n"
COUNTS = "2021-12-11, 11:00:00, 2\n2021-12-11, 11:01:00, 0\n2021-12-11, 11:01:30, 1\n2021-12-11, 11:03:00, 1\n"


def write(folder: Path, content: str | bytes, name: str = "trace.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def stays(found: NDArray[np.void]) -> list[tuple[int, float, float]]:
    return [tuple(row) for row in found.tolist()]


@pytest.mark.parametrize("format", ["bamboo", "skypilot_spot"])
def test_every_published_number_of_every_file_is_reproduced(format: str) -> None:
    folder = shared_folder() / "data/capacity" / format
    if not folder.is_dir():
        pytest.skip(f"the shared data folder is absent ({folder}); set HETENV_SHARED")
    published = json.loads((folder / "stats.json").read_text(encoding="utf-8"))
    shown = show([folder / name for name in published], format)
    assert json.loads(json.dumps(shown["statistics"])) == published
    for name in published:
        trace = capacity_format(format).load(folder / name)
        assert trace.report.dropped == trace.report.repaired == trace.report.noted == {}, name


def test_a_tick_holds_for_its_gap(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps({"metadata": {"gap_seconds": 10}, "data": [0, 2, 1, 1, 0, 1]}))
    trace = skypilot_spot.load(path)
    assert stays(trace.stays) == [(0, 10, 40), (1, 10, 20), (0, 50, np.inf)]
    assert trace.n_places == 2 and trace.span_s == 60 and not trace.stays.flags.writeable
    assert trace.statistics["mean_up_run_s"] == 20 and trace.statistics["mean_down_run_s"] == 10
    assert trace.statistics["n_nodes_lost"] == 2 and trace.statistics["n_drops"] == 2


def test_ticks_that_are_no_counts_take_the_one_before(tmp_path: Path) -> None:
    data = [None, 1, "x", -2, 2.5, float("nan"), True]
    trace = skypilot_spot.load(write(tmp_path, json.dumps({"metadata": {"gap_seconds": 1}, "data": data})))
    assert trace.statistics["hist"] == {"0": 1, "1": 4, "2": 2}
    assert list(trace.report.repaired.values()) == [4, 1] and trace.report.rows_read == 7


def test_a_node_that_comes_takes_the_lowest_free_place(tmp_path: Path) -> None:
    trace = bamboo.load(write(tmp_path, EVENTS))
    assert stays(trace.stays) == [(0, 0, 60), (1, 0, 60), (0, 90, np.inf), (1, 120, np.inf)]
    assert trace.n_places == 2 and trace.span_s == 120
    numbers = trace.statistics
    assert numbers["removal_events"] == 1 and numbers["mean_nodes_per_removal_event"] == 2
    assert numbers["removals_per_hour"] == 60 and numbers["final_nodes"] == 2


def test_events_that_cannot_be_are_ignored_and_counted(tmp_path: Path) -> None:
    odd = "time,event,node\n" + EVENTS + "121000,add,d\n122000,remove,a\n123000,fall,a\nx,add,e\n124000,add\n"
    trace = bamboo.load(write(tmp_path, odd))
    assert trace.statistics["n_double_add"] == 1 and trace.statistics["n_remove_absent"] == 1
    assert trace.statistics["header"] is True and trace.statistics["rows"] == 8
    assert sum(trace.report.repaired.values()) == 2 and sum(trace.report.dropped.values()) == 3
    assert trace.report.rows_read == trace.report.rows_kept + 3


def test_events_out_of_order_are_sorted(tmp_path: Path) -> None:
    lines = EVENTS.splitlines()
    trace = bamboo.load(write(tmp_path, "\n".join([lines[4], *lines[:4], lines[5]])))
    assert trace.statistics["sorted"] is False
    assert stays(trace.stays) == stays(bamboo.load(write(tmp_path, EVENTS)).stays)


def test_counts_by_hand(tmp_path: Path) -> None:
    trace = bamboo.load(write(tmp_path, COUNTS))
    assert stays(trace.stays) == [(0, 0, 60), (1, 0, 60), (0, 90, np.inf)]
    assert trace.span_s == 180 and trace.statistics["count"]["sum"] == 4


def test_a_count_whose_time_goes_back_replaces_what_it_overtakes(tmp_path: Path) -> None:
    lines = ["10:00:00, 80", "10:01:00, 80", "10:02:00, 80", "10:01:00, 70", "10:02:00, 70", "10:03:00, 70"]
    trace = bamboo.load(write(tmp_path, "\n".join(f"2021-12-10, {line}" for line in lines)))
    assert trace.statistics["n_time_going_back"] == 1 and trace.statistics["rows"] == 6
    assert sum(trace.report.repaired.values()) == 2 and sum(trace.report.noted.values()) == 1
    there = trace.stays
    assert np.all(there["from_s"] == 0) and (there["to_s"] == 60).sum() == 10 and np.isinf(there["to_s"]).sum() == 70


@pytest.mark.parametrize("text", [EVENTS, COUNTS])
def test_disguises_of_a_file_change_nothing(tmp_path: Path, text: str) -> None:
    plain = bamboo.load(write(tmp_path, text))
    for disguised in (
        b"\xef\xbb\xbf" + text.encode(),
        text.replace("\n", "\r\n").encode(),
        gzip.compress(text.encode()),
        ("\n" + text.replace("\n", " ,\n\n")).encode(),
        text.replace(",", " , ").rstrip("\n").encode(),
    ):
        found = bamboo.load(write(tmp_path, disguised))
        assert stays(found.stays) == stays(plain.stays) and found.statistics == plain.statistics


def test_counts_fill_places_from_below() -> None:
    at_s = np.array([0.0, 1, 2, 3])
    assert stays(stays_of_counts(at_s, [1, 3, 0, 1])) == [(0, 0, 2), (1, 1, 2), (2, 1, 2), (0, 3, np.inf)]
    assert stays_of_counts(at_s, [0, 0, 0, 0]).size == 0


def test_a_cluster_with_too_few_nodes_is_noted(tmp_path: Path) -> None:
    path = write(tmp_path, EVENTS)
    clusters = [build(ClusterConfig(pools=(PoolConfig(name="p", accelerator="L40S", nodes=n),))) for n in (1, 2)]
    noted = [show([path], "bamboo", cluster)["report"]["noted"] for cluster in clusters]
    assert noted == [{"places beyond the nodes of the largest pool (1)": 1}, {}]


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [
        ("skypilot_spot", "[1, 2", "not JSON"),
        ("skypilot_spot", "[1, 2]", "no list `data`"),
        ("skypilot_spot", '{"metadata": {}, "data": [1]}', "gap_seconds must be a number of seconds above 0"),
        ("skypilot_spot", '{"metadata": {"gap_seconds": 0}, "data": [1]}', "above 0"),
        ("skypilot_spot", '{"metadata": {"gap_seconds": 5}, "data": []}', "empty trace"),
        ("skypilot_spot", '{"metadata": {"gap_seconds": 5}, "data": ["x"]}', "no usable tick among 1"),
        ("bamboo", "", "empty trace: 0 usable lines of 0"),
        ("bamboo", "a,b,c\n", "empty trace"),
        ("bamboo", "0,add,n\n", "span no time"),
        ("bamboo", b"\xff\xfe\x00", "not UTF-8"),
    ],
)
def test_what_is_not_of_the_format_is_refused(
    tmp_path: Path, format: str, content: str | bytes, message: str
) -> None:
    with pytest.raises(TraceError, match=message):
        capacity_format(format).load(write(tmp_path, content))


def test_an_unknown_format_and_an_absent_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="unknown capacity format 'bambo'; did you mean 'bamboo'"):
        capacity_format("bambo")
    with pytest.raises(TraceError, match=r"unknown trace format 'x' \(known: .*bamboo"):
        show([tmp_path], "x")
    with pytest.raises(TraceError, match="cannot be read"):
        bamboo.load(tmp_path / "none.csv")

"""The flattened Philly CSV: statistics of the real file, oddities of the format, what is refused."""

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hetenv.cluster import ClusterConfig, PoolConfig, build
from hetenv.errors import TraceError
from hetenv.traces import philly_csv, show

from .conftest import HEADER, LINES


def write(folder: Path, text: str | bytes, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_every_published_statistic_is_reproduced(philly: Path) -> None:
    published = json.loads((philly / "stats.json").read_text(encoding="utf-8"))["philly.csv"]
    shown = show([philly / "philly.csv"], "philly_csv")
    assert set(shown["statistics"]) == set(published)
    for name, value in published.items():
        found = shown["statistics"][name]
        if isinstance(value, dict) and name not in ("vcs",):
            assert found == pytest.approx(value, abs=2e-6), name
        else:
            assert found == pytest.approx(value) if isinstance(value, float) else found == value, name
    assert json.loads(json.dumps(shown)) is not None
    report = shown["report"]
    assert report["rows_read"] == report["rows_kept"] == 17_025
    assert report["dropped"] == {} and report["repaired"] == {}
    assert report["noted"]["exact duplicate rows, kept"] == 14


def test_a_folder_is_its_csv_files(philly: Path) -> None:
    assert show([philly], "philly_csv") == show([philly / "philly.csv"], "philly_csv")


def test_several_paths_are_shown_by_file_name(tmp_path: Path, small: str) -> None:
    shown = show([write(tmp_path, small, "a.csv"), write(tmp_path, small, "b.csv")], "philly_csv")
    assert set(shown["statistics"]) == set(shown["report"]) == {"a.csv", "b.csv"}


def test_a_small_file_by_hand(tmp_path: Path, small: str) -> None:
    trace = philly_csv.load(write(tmp_path, small))
    assert list(trace.rows["submit_s"]) == [27_000, 28_800, 28_800, 86_401]
    assert list(trace.rows["duration_s"]) == [3600, 100, 100, 0] and list(trace.rows["gpus"]) == [8, 1, 1, 2]
    assert list(trace.rows["line"]) == [3, 2, 5, 4] and trace.groups == ("aa", "bb")
    assert str(trace.origin) == "2017-10-20" and [str(day) for day in trace.days] == ["2017-10-20", "2017-10-21"]
    assert trace.report.noted == {"exact duplicate rows, kept": 1, "rows of zero duration, kept": 1}
    assert trace.report.gpu_hours == {"any": pytest.approx((28_800 + 200) / 3600)}
    assert trace.statistics["sorted"] is False and trace.statistics["n_zero_duration"] == 1
    assert np.all(trace.rows["weight"] == 1) and np.isnan(trace.rows["wait_s"]).all()
    assert not trace.rows.flags.writeable


def disguises(text: str) -> dict[str, bytes]:
    header, *lines = text.strip().split("\n")
    random.Random(0).shuffle(lines)
    return {
        "plain": text.encode(),
        "byte order mark": b"\xef\xbb\xbf" + text.encode(),
        "CRLF": text.replace("\n", "\r\n").encode(),
        "gzip": gzip.compress(text.encode()),
        "trailing blanks": text.replace("\n", "  \n").replace(",", " , ").encode() + b"\n   \n\n",
        "no newline at the end": text.rstrip("\n").encode(),
        "shuffled": "\n".join([header, *lines]).encode(),
        "extra columns": "\n".join(["user," + header + ",note", *(f"u1,{line},x" for line in lines)]).encode(),
        "quoted": "\n".join([header, *(",".join(f'"{c}"' for c in line.split(",")) for line in lines)]).encode(),
        "trailing commas": "\n".join([header, *(line + ",," for line in lines)]).encode(),
    }


@pytest.mark.parametrize("disguise", list(disguises("a\nb")))
def test_a_disguised_file_gives_the_same_trace(tmp_path: Path, small: str, disguise: str) -> None:
    plain = philly_csv.load(write(tmp_path, small))
    path = write(tmp_path, disguises(small)[disguise], "trace.csv.gz" if disguise == "gzip" else "odd.csv")
    found = philly_csv.load(path)
    for name in ("submit_s", "duration_s", "gpus", "group"):
        assert np.array_equal(found.rows[name], plain.rows[name]), name
    for name in set(plain.statistics) - {"sorted", "columns", "n_missing"}:
        assert found.statistics[name] == plain.statistics[name], name
    assert found.report.rows_kept == 4 and found.report.dropped == {}


BAD_ROWS = {
    ",100,1,100,aa": "timestamp missing or no date",
    "yesterday,100,1,100,aa": "timestamp missing or no date",
    "2017-10-20 08:00:00,100,,100,aa": "num_gpus missing or no number",
    "2017-10-20 08:00:00,100,0,0,aa": "asks for no GPU",
    "2017-10-20 08:00:00,100,-1,0,aa": "num_gpus negative or above 1000000",
    "2017-10-20 08:00:00,,1,,aa": "duration missing or no number",
    "2017-10-20 08:00:00,inf,1,,aa": "duration missing or no number",
    "2017-10-20 08:00:00,-5,1,-5,aa": "duration negative",
    "2017-10-20 08:00:00,5,1,5,aa,and,more": "more cells than columns",
}


@pytest.mark.parametrize("line", list(BAD_ROWS))
def test_p25_a_bad_row_is_dropped_and_counted(tmp_path: Path, small: str, line: str) -> None:
    report = philly_csv.load(write(tmp_path, small + line + "\n")).report
    assert report.dropped == {BAD_ROWS[line]: 1}
    assert report.rows_read == 5 and report.rows_kept == 4


def test_p17_fractional_gpus_are_rounded_up_and_counted(tmp_path: Path) -> None:
    lines = [
        "2017-10-20 08:00:00,10,0.25,2.5,aa",
        "2017-10-20 08:00:01,10,1.5,15,aa",
        "2017-10-20 08:00:02,10,2.0,20,aa",
    ]
    trace = philly_csv.load(write(tmp_path, "\n".join([HEADER, *lines])))
    assert list(trace.rows["gpus"]) == [1, 2, 2]
    assert trace.report.repaired == {"fractional GPUs rounded up": 2}


def test_a_missing_duration_is_taken_from_gpu_time(tmp_path: Path) -> None:
    trace = philly_csv.load(write(tmp_path, HEADER + "\n2017-10-20 08:00:00,,4,400,aa\n"))
    assert list(trace.rows["duration_s"]) == [100.0]
    assert trace.report.repaired == {"duration taken from gpu_time / num_gpus": 1}


def test_only_three_columns_are_needed(tmp_path: Path) -> None:
    trace = philly_csv.load(write(tmp_path, "num_gpus,timestamp,duration\n1,2017-10-20 08:00:00,5\n"))
    assert trace.rows.size == 1 and trace.groups == ("",)


def test_p25_offered_load_is_stated_and_overload_flagged(tmp_path: Path, small: str) -> None:
    trace = philly_csv.load(write(tmp_path, small))
    pool = PoolConfig(name="pool", accelerator="P100", nodes=1, gpus_per_node=4, inter_link="IB-EDR")
    report = trace.against(build(ClusterConfig(pools=(pool,))))
    span_h = (86_401 - 27_000) / 3600
    assert report.capacity_gpu_hours == {"any": pytest.approx(4 * span_h)}
    assert report.offered_load == {"any": pytest.approx((28_800 + 200) / 3600 / (4 * span_h))}
    assert report.overloaded == ()
    assert report.rejected == {"more GPUs than the largest pool has (4)": 1} and report.rejected_lines == (3,)
    heavy = philly_csv.load(write(tmp_path, small.replace("3600.0,8", "36000.0,8"), "heavy.csv"))
    assert heavy.against(build(ClusterConfig(pools=(pool,)))).overloaded == ("any",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "column 'timestamp' is missing .*an empty file"),
        (HEADER.encode(), "empty trace"),
        (HEADER.encode() + b"\nx,y,z,,\n", "empty trace: no usable row among 1 .*timestamp missing or no date: 1"),
        (
            HEADER.replace("duration", "runtime").encode() + b"\n",
            r"column 'duration' is missing \(found: timestamp, runtime",
        ),
        (b"\xff\xfe\x00\x01", "not UTF-8"),
        (b"\x1f\x8bnot really gzip", "cannot be read"),
    ],
)
def test_a_file_that_is_no_trace_is_a_trace_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = write(tmp_path, content, "odd.csv")
    with pytest.raises(TraceError, match=message) as caught:
        philly_csv.load(path)
    assert str(path) in str(caught.value)


def test_an_absent_path_or_an_empty_folder_is_a_trace_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no such file or folder"):
        philly_csv.load(tmp_path / "absent.csv")
    with pytest.raises(TraceError, match=r"holds no \.csv"):
        philly_csv.load(tmp_path)
    with pytest.raises(TraceError, match=r"unknown trace format 'phily_csv'; did you mean 'philly_csv'\? \(known: "):
        show([tmp_path], "phily_csv")
    with pytest.raises(TraceError, match="no path given"):
        show([], "philly_csv")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet='0123456789,.-: \n"aeTZnif+', max_size=200), shift=st.integers(0, 3))
def test_p25_no_negative_time_leaves_the_loader(tmp_path: Path, text: str, shift: int) -> None:
    path = write(tmp_path, "\n".join([HEADER, LINES[shift], text]))
    try:
        trace = philly_csv.load(path)
    except TraceError:
        return
    rows = trace.rows
    assert np.all(rows["submit_s"] >= 0) and np.all(rows["duration_s"] >= 0) and np.all(rows["gpus"] > 0)
    assert np.all(np.isfinite(rows["submit_s"])) and np.all(np.isfinite(rows["duration_s"]))
    report = trace.report
    assert report.rows_read == report.rows_kept + sum(report.dropped.values())

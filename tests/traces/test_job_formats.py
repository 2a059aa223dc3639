"""What holds for every job format: published numbers, disguised files, bad rows counted, times that stay relative."""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hetenv.errors import TraceError
from hetenv.traces import TRACE_FORMATS, Trace, show
from hetenv.traces.paths import shared_folder

from .formats import SAMPLES, Sample

PUBLISHED = {
    "alibaba_dlrm_2025/disaggregated_DLRM_trace.csv": "dlrm2025",
    "alibaba_openb_2023/openb_node_list_all_node.csv": "openb2023",
    "alibaba_openb_2023/openb_pod_list_default.csv": "openb2023",
    "alibaba_pai_2020/pai_machine_spec.csv": "pai2020",
    "alibaba_spot_2026/node_info_df.csv": "spot2026",
    "azure_llm_2023/AzureLLMInferenceTrace_code.csv": "azure_llm",
    "gaia_pai/pai_1k.csv": "gaia",
    "gavel/0e4a51.trace": "gavel",
    "gavel/max_min_fairness.trace": "gavel",
    "helios/Earth/cluster_gpu_number.csv": "helios",
    "helios/Earth/vc3sl_cluster_sequence_vc.csv": "helios",
    "helios/Venus/cluster_throughput.csv": "helios",
    "muri/trace1.csv": "muri",
    "philly_sia/philly.csv": "philly_csv",
    "real_samples/cluster_job_log": "philly",
    "real_samples/cluster_log.csv": "helios",
    "real_samples/trace_kalos.csv": "acme",
    "real_samples/trace_seren.csv": "acme",
    "rubick/workload-base.csv": "rubick",
    "schema_fixtures/acme/trace_kalos.csv": "acme",
    "schema_fixtures/acme/trace_seren.csv": "acme",
    "schema_fixtures/helios/Earth/cluster_log.csv": "helios",
    "schema_fixtures/philly/cluster_job_log": "philly",
    "schema_fixtures/philly/cluster_machine_list": "philly",
    "schema_fixtures/pai_2020": "pai2020",
    "sia_pollux/workload-1.csv": "sia",
    "swf/hpc2n.swf": "swf",
}
"""File below data/workloads -> format."""
NOT_IN_THE_FILE = ("SYNTHETIC", "note")
"""Remarks of the publication."""
DATED = ("acme", "azure_llm", "helios", "philly", "sacct")
"""Formats whose times are dates."""
TEXT_BEFORE = {"swf": 2}
"""Comment lines of a sample that stay in front when its rows are shuffled."""


def entries(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Paths and leaves of nested data."""
    if isinstance(value, dict):
        for name, entry in value.items():
            if name not in NOT_IN_THE_FILE:
                yield from entries(entry, f"{path}/{name}")
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from entries(entry, f"{path}/{index}")
    else:
        yield path, value


def load(format: str, path: Path) -> Trace:
    found = TRACE_FORMATS[format].load(path)
    assert isinstance(found, Trace)
    return found


def jobs(trace: Trace) -> list[tuple[Any, ...]]:
    """Every column of every row but its line, with names for labels."""
    rows, first = trace.rows, float(trace.rows["submit_s"][0])
    return [
        (
            row["submit_s"] - first, repr(float(row["duration_s"])), row["gpus"], repr(float(row["wait_s"])), repr(float(row["steps"])),
            repr(float(row["limit_s"])), row["weight"], row["outcome"], trace.groups[row["group"]], trace.kinds[row["kind"]],
            trace.gpu_types[row["gpu_type"]], trace.plans[row["plan"]],
        )
        for row in rows
    ]  # fmt: skip


@pytest.mark.parametrize("file", list(PUBLISHED))
def test_every_published_number_is_reproduced(file: str) -> None:
    path = shared_folder() / "data/workloads" / file
    if not path.exists():
        pytest.skip(f"the shared data folder is absent ({path}); set HETENV_SHARED")
    whole = path.is_dir()
    published = json.loads(((path if whole else path.parent) / "stats.json").read_text(encoding="utf-8"))
    found = dict(entries(json.loads(json.dumps(show([path], PUBLISHED[file])["statistics"]))))
    for name, value in entries(published if whole else published[path.name]):
        assert name in found, name
        assert found[name] == (pytest.approx(value, abs=2e-6, rel=1e-9) if isinstance(value, float) else value), name


@pytest.mark.parametrize("format", list(SAMPLES))
def test_a_small_file_by_hand(tmp_path: Path, format: str) -> None:
    sample = SAMPLES[format]
    trace = load(format, sample.write(tmp_path))
    found = [(row["submit_s"] - trace.rows["submit_s"][0], row["duration_s"], row["gpus"]) for row in trace.rows]
    assert len(found) == len(sample.jobs)
    for mine, stated in zip(found, sample.jobs):
        assert mine == pytest.approx(stated, nan_ok=True)
    report = trace.report
    assert sum(report.dropped.values()) == sample.n_dropped and report.rows_kept == len(sample.jobs)
    assert not trace.rows.flags.writeable and json.dumps(report.as_dict())


def disguises(sample: Sample, n_before: int) -> dict[str, bytes]:
    """The same jobs, written otherwise."""
    text, cut = sample.text, n_before + sample.has_header
    if text.startswith("["):
        return {**written(text), **disguised_json(json.loads(text))}
    lines = text.strip("\n").split("\n")
    shuffled = lines[cut:]
    random.Random(1).shuffle(shuffled)
    wide = [
        line + sample.delimiter + ("note" if sample.has_header and index == n_before else "x7") if index >= n_before else line
        for index, line in enumerate(lines)
    ]
    return {
        **written(text),
        "shuffled": "\n".join([*lines[:cut], *shuffled, ""]).encode(),
        "extra column": "\n".join([*wide, ""]).encode(),
    }


def written(text: str) -> dict[str, bytes]:
    """Text as other programs write it."""
    return {
        "byte order mark": b"\xef\xbb\xbf" + text.encode(),
        "CRLF": text.replace("\n", "\r\n").encode(),
        "gzip": gzip.compress(text.encode()),
        "trailing blanks": text.replace("\n", "  \n").encode() + b"   \n\n",
        "no newline at the end": text.rstrip("\n").encode(),
    }


def disguised_json(rows: list[dict[str, Any]]) -> dict[str, bytes]:
    return {
        "shuffled": json.dumps(rows[::-1]).encode(),
        "extra column": json.dumps([{**row, "note": "x7"} for row in rows]).encode(),
    }


@pytest.mark.parametrize("disguise", list(disguises(Sample("", "a\n", ()), 0)))
@pytest.mark.parametrize("format", list(SAMPLES))
def test_a_disguised_file_gives_the_same_jobs(tmp_path: Path, format: str, disguise: str) -> None:
    sample = SAMPLES[format]
    content = disguises(sample, TEXT_BEFORE.get(format, 0))[disguise]
    (tmp_path / "odd").mkdir()
    found = load(format, sample.write(tmp_path / "odd", content, ".gz" if disguise == "gzip" else ""))
    plain = load(format, sample.write(tmp_path))
    assert jobs(found) == jobs(plain)
    assert found.report.rows_kept == plain.report.rows_kept and found.report.dropped == plain.report.dropped
    assert jobs(load(format, tmp_path / "odd")) == jobs(plain)  # the folder holds that file alone


@pytest.mark.parametrize("format", list(SAMPLES))
def test_what_is_not_of_the_format_is_a_trace_error(tmp_path: Path, format: str) -> None:
    with pytest.raises(TraceError, match="no such file or folder"):
        load(format, tmp_path / "absent")
    with pytest.raises(TraceError, match="holds no"):
        load(format, tmp_path)
    header = SAMPLES[format].text.split("\n")[0].encode() if SAMPLES[format].has_header else b"[]"
    for content in (b"", header, b"\xff\xfe\x00\x01", b"this is no trace\nat all, it is\n"):
        path = SAMPLES[format].write(tmp_path, content)
        with pytest.raises(TraceError) as caught:
            load(format, path)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("format", [name for name in SAMPLES if name not in DATED])
def test_p25_relative_times_are_no_dates(tmp_path: Path, format: str) -> None:
    trace = load(format, SAMPLES[format].write(tmp_path))
    assert np.isnat(trace.origin) and trace.days == ()
    assert "1970" not in json.dumps(trace.report.as_dict())


JUNK = ("", "-1", "nan", "inf", "1e400", "0", "x", "None", "9999-99-99 00:00:00", "1e18", "0.5", "2600-01-01 00:00:00", "|", "é")


@pytest.mark.parametrize("format", [name for name in SAMPLES if name != "philly"])
def test_p25_no_negative_time_leaves_a_loader_whatever_stands_in_the_cells(tmp_path: Path, format: str) -> None:
    sample, rng, n_loaded = SAMPLES[format], random.Random(7), 0
    for _ in range(40):
        lines = sample.text.split("\n")
        for _ in range(rng.randint(1, 3)):
            number = rng.randrange(int(sample.has_header), len(lines))
            cells = lines[number].split(sample.delimiter)
            cells[rng.randrange(len(cells))] = rng.choice(JUNK)
            lines[number] = sample.delimiter.join(cells)
        try:
            trace = load(format, sample.write(tmp_path, "\n".join(lines).encode()))
        except TraceError:
            continue
        rows, report, n_loaded = trace.rows, trace.report, n_loaded + 1
        assert np.all(rows["submit_s"] >= 0) and np.all(rows["gpus"] > 0) and np.all(rows["weight"] > 0)
        for name in ("duration_s", "wait_s", "limit_s", "steps"):
            assert not np.any(rows[name] < 0) and not np.isinf(rows[name]).any(), name
        assert report.rows_read == report.rows_kept + sum(report.dropped.values())
        assert json.dumps([report.as_dict(), trace.statistics], allow_nan=False)
    assert n_loaded > 10

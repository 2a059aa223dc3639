"""Windows of a trace: where they begin, what they hold, which seed reads which days."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from hetenv.errors import ScenarioError, TraceError
from hetenv.scenario import parse
from hetenv.workload import TraceWorkload, WorkloadContext
from hetenv.workload.trace import split_of

MakeContext = Callable[..., WorkloadContext]
HOUR_S = 3600.0
FIRST = datetime(2017, 10, 20)
SPLITS = {
    "train": ["2017-10-20", "2017-10-21"],
    "validation": ["2017-10-22"],
    "test": ["2017-10-23", "2017-10-25"],
}
SEEDS = {"train": 1_000_000, "validation": 100_000, "test": 0}


def write_trace(folder: Path, shift_s: float = 0.0) -> Path:
    """Six days with a job every ten minutes; its duration says its number, its GPU count cycles through 1, 2, 16."""
    lines = ["timestamp,duration,num_gpus,gpu_time,cluster"]
    for number in range(6 * 144):
        gpus = (1, 2, 16)[number % 3]
        when = FIRST + timedelta(minutes=10 * number, seconds=30 + shift_s)
        lines.append(f"{when:%Y-%m-%d %H:%M:%S},{number + 1},{gpus},{(number + 1) * gpus},vc")
    path = folder / "trace.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def workload(**fields: Any) -> TraceWorkload:
    return TraceWorkload.model_validate({"format": "philly_csv", "path": "trace.csv", "job_class": "fixed", **fields})


def draw(config: TraceWorkload, context: WorkloadContext, seed: int = 0) -> NDArray[np.void]:
    return config.draw(np.random.default_rng([seed, context.seed]), context)


def test_a_window_holds_the_jobs_of_its_hours(tmp_path: Path, make_context: MakeContext) -> None:
    write_trace(tmp_path)
    rows = draw(workload(window_h=6), make_context(folder=tmp_path))
    assert rows.size == 36 and np.array_equal(rows["submit_s"], 30.0 + 600.0 * np.arange(36))
    assert np.array_equal(np.diff(rows["work"]), np.ones(35))  # durations number the jobs of the trace
    first = int(rows["work"][0]) - 1
    assert first % 6 == 0  # at a full hour
    sizes = np.array([(1, 2, 16)[(first + k) % 3] for k in range(36)])
    assert np.array_equal(rows["min_gpus"], sizes) and np.array_equal(rows["max_gpus"], sizes)
    assert np.array_equal(rows["rejected"], sizes == 16)  # no configuration has 16 GPUs


@pytest.mark.parametrize("split", list(SPLITS))
def test_each_split_reads_its_own_days(tmp_path: Path, make_context: MakeContext, split: str) -> None:
    write_trace(tmp_path)
    config = workload(window_h=12, splits=SPLITS)
    days = {date.fromisoformat(day) for day in SPLITS[split]}
    seen = set()
    for seed in range(SEEDS[split], SEEDS[split] + 60):
        rows = draw(config, make_context(folder=tmp_path, seed=seed))
        assert split_of(seed) == split
        numbers = rows["work"].astype(int) - 1
        assert {(FIRST + timedelta(minutes=10 * int(n))).date() for n in numbers} <= days
        seen.add(int(numbers[0]))
    assert len(seen) > 8  # windows begin at many hours


def test_equal_seeds_give_equal_windows_and_others_differ(tmp_path: Path, make_context: MakeContext) -> None:
    write_trace(tmp_path)
    config, context = workload(window_h=6, max_jobs=20), make_context(folder=tmp_path)
    first = draw(config, context, 1)
    assert np.array_equal(first, draw(config, context, 1))
    assert len({draw(config, context, seed)["work"].tobytes() for seed in range(20)}) > 10


def test_max_jobs_keeps_a_sample_with_its_submit_times(tmp_path: Path, make_context: MakeContext) -> None:
    write_trace(tmp_path)
    rows = draw(workload(window_h=24, max_jobs=50, splits=SPLITS), make_context(folder=tmp_path, seed=100_000))
    assert rows.size == 50 and np.all(np.diff(rows["submit_s"]) > 0)
    numbers = rows["work"].astype(int) - 1
    assert np.array_equal(rows["submit_s"], 600.0 * (numbers - 2 * 144) + 30.0)
    assert rows["submit_s"][-1] > 20 * HOUR_S  # the whole window is sampled, not its beginning


def test_window_all_is_the_whole_trace_from_its_first_submit(tmp_path: Path, make_context: MakeContext) -> None:
    write_trace(tmp_path)
    rows = draw(workload(window="all"), make_context(folder=tmp_path, horizon_s=1e9))
    assert rows.size == 6 * 144 and rows["submit_s"][0] == 0.0
    assert draw(workload(window="all"), make_context(folder=tmp_path, horizon_s=HOUR_S)).size == 6


def test_p07_a_shifted_trace_gives_the_same_jobs(tmp_path: Path, make_context: MakeContext) -> None:
    drawn = []
    for name, shift_s in (("a", 0.0), ("b", 1.7e9)):
        (tmp_path / name).mkdir()
        write_trace(tmp_path / name, shift_s)
        drawn.append(draw(workload(window="all"), make_context(folder=tmp_path / name, horizon_s=1e9)))
    assert np.array_equal(drawn[0], drawn[1])


def test_long_jobs_are_cut(tmp_path: Path, make_context: MakeContext) -> None:
    write_trace(tmp_path)
    rows = draw(workload(window="all", max_duration_h=0.1), make_context(folder=tmp_path, horizon_s=1e9))
    assert rows["work"].max() == 360.0 and np.all(rows["work"][:359] == np.arange(1, 360))


def test_a_changed_file_is_read_again(tmp_path: Path, make_context: MakeContext) -> None:
    path = write_trace(tmp_path)
    context = make_context(folder=tmp_path, horizon_s=1e9)
    assert draw(workload(window="all"), context).size == 864
    path.write_text("\n".join(path.read_text(encoding="utf-8").split("\n")[:11]), encoding="utf-8")
    assert draw(workload(window="all"), context).size == 10


def test_days_and_windows_that_are_not_there(tmp_path: Path, make_context: MakeContext) -> None:
    write_trace(tmp_path)
    context = make_context(folder=tmp_path)
    with pytest.raises(ScenarioError, match=r"workload\.splits\.test: the trace has no job on 2018-01-01"):
        draw(workload(splits={**SPLITS, "test": ["2018-01-01"]}), context)
    with pytest.raises(ScenarioError, match=r"workload\.splits\.test: no run of days holds a window of 48"):
        draw(workload(splits=SPLITS, window_h=48), context)
    with pytest.raises(ScenarioError, match=r"workload\.job_class: unknown job class 'fix'"):
        draw(workload(job_class="fix"), context)


def test_files_that_are_not_there(tmp_path: Path, make_context: MakeContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HETENV_SHARED", str(tmp_path / "nowhere"))
    for path, message in (
        ("absent.csv", "no file or folder"),
        ("shared:a.csv", "HETENV_SHARED"),
        ("../a", "leads out"),
    ):
        with pytest.raises(TraceError, match=rf"workload\.path: path '{path}'.*{message}"):
            draw(workload(path=path), make_context(folder=tmp_path))


@pytest.mark.parametrize(
    "fields",
    [
        {"format": "phily_csv"},
        {"window": "some"},
        {"window_h": 0},
        {"max_jobs": 0},
        {"splits": {**SPLITS, "test": ["2017-10-20"]}},
        {"days": 3},
    ],
)
def test_bad_fields_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        workload(**fields)


SWF = "{job} {submit} 0 {run} {gpus} -1 -1 -1 {limit} -1 1 7 {kind} 3 1 -1 -1 -1"
CLUSTER = {"pools": [{"name": "a", "accelerator": "A100-SXM-80", "nodes": 4, "inter_link": "IB-HDR-4x"}]}


def write_swf(folder: Path, n: int = 60) -> str:
    lines = [
        SWF.format(job=k + 1, submit=10 * k, run=(60, 7200)[k % 2], gpus=(1, 4, 16)[k % 3], limit=9000, kind=-1) for k in range(n)
    ]
    (folder / "log.swf").write_text("\n".join(lines), encoding="utf-8")
    return "log.swf"


@pytest.mark.parametrize("mapping", ["vision", "language", "mixed"])
def test_a_mapping_brings_its_classes_and_every_job_keeps_its_run_time(tmp_path: Path, mapping: str) -> None:
    workload = {"kind": "trace", "format": "swf", "path": write_swf(tmp_path), "mapping": mapping, "window": "all"}
    data = {"name": "x", "summary": "x", "horizon_s": 3600, "cluster": CLUSTER, "workload": workload, "knowledge": {"work": "estimate"}}
    compiled = parse(data, tmp_path / "x.yaml").compile()
    requests = compiled.sample(0, 0).requests
    rows = TraceWorkload.model_validate(workload).load(tmp_path).rows
    assert requests.size == 60 and not requests["rejected"].any()
    for request, row in zip(requests, rows):
        rate = compiled.configurations.reference_rate(request["job_class"], row["gpus"], row["gpus"], request["pools"])
        assert request["work"] == pytest.approx(row["duration_s"] * rate) and request["min_gpus"] == row["gpus"]
        assert request["believed_s"] == pytest.approx(9000.0)
    used = {list(compiled.scenario.classes)[index] for index in requests["job_class"]}
    assert len(used) >= 4
    assert np.array_equal(requests["job_class"], compiled.sample(7, 3).requests["job_class"])  # one job, one class
    reseeded = parse({**data, "workload": {**workload, "mapping_seed": 1}}, tmp_path / "x.yaml").compile()
    assert not np.array_equal(requests["job_class"], reseeded.sample(0, 0).requests["job_class"])


def test_a_format_without_run_times_takes_work_by_kind(tmp_path: Path, make_context: MakeContext) -> None:
    (tmp_path / "a.trace").write_text("A3C\tcmd\t-n\t1\t700\t0.0\t1\nLM\tcmd\t-n\t1\t90\t5.0\t2\n", encoding="utf-8")
    gavel = {"format": "gavel", "path": "a.trace", "job_class": None, "window": "all"}
    rows = draw(workload(**gavel, by_kind={"A3C": "fixed", "LM": "table"}), make_context(folder=tmp_path))
    assert list(rows["work"]) == [700, 90] and list(rows["job_class"]) == [0, 1] and rows["checkpoint_interval"][1] == 50
    with pytest.raises(ScenarioError, match=r"workload\.by_kind: unknown kind 'LM'"):
        draw(workload(**gavel, by_kind={"A3C": "fixed"}), make_context(folder=tmp_path))
    with pytest.raises(ScenarioError, match=r"workload\.by_kind\.LM: unknown job class 'tabel'"):
        draw(workload(**gavel, by_kind={"A3C": "fixed", "LM": "tabel"}), make_context(folder=tmp_path))
    (tmp_path / "w.csv").write_text("name,time,application,num_replicas\na,3,bert,2\n", encoding="utf-8")
    sia = {"format": "sia", "path": "w.csv", "job_class": "fixed"}
    with pytest.raises(ScenarioError, match=r"workload\.kind_work: sia states neither run time nor work of kind 'bert'"):
        draw(workload(**sia), make_context(folder=tmp_path))
    context = make_context(folder=tmp_path)
    assert draw(workload(**sia, window="all", kind_work={"bert": 12.5}), context)["work"] == [12.5]
    with pytest.raises(ScenarioError, match=r"workload\.splits\.test: the trace's times are relative"):
        draw(workload(**sia, splits=SPLITS, kind_work={"bert": 12.5}), context)


@pytest.mark.parametrize("fields", [{"job_class": None}, {"mapping": "mixed"}, {"job_class": None, "mapping": "mixde"}])
def test_one_source_of_classes_is_stated(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"give one of job_class, by_kind and mapping|unknown trace mapping 'mixde'; did you mean"):
        workload(**fields)


def test_a_folder_without_jobs_is_a_trace_error(tmp_path: Path, make_context: MakeContext) -> None:
    (tmp_path / "nodes.csv").write_text("gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,1,n\n", encoding="utf-8")
    with pytest.raises(TraceError, match="holds no jobs"):
        draw(workload(format="spot2026", path="nodes.csv"), make_context(folder=tmp_path))

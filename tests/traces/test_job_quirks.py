"""The documented oddities of each job format, one tiny file each; P15-P17 and P25."""

from pathlib import Path

import numpy as np
import pytest

from hetenv.errors import TraceError
from hetenv.traces import Outcome, Trace

from .formats import GAVEL_NEW, GAVEL_OLD
from .test_job_formats import load

SWF = "{job} {submit} {wait} {run} {procs} -1 -1 {wanted} {limit} -1 {status} 7 1 3 1 -1 -1 -1"
SWF_FIELDS = {"job": 1, "submit": 0, "wait": 0, "run": 10, "procs": 2, "wanted": -1, "limit": -1, "status": 1}


def read(folder: Path, format: str, name: str, *lines: str) -> Trace:
    path = folder / name
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return load(format, path)


def swf(folder: Path, *jobs: dict[str, float]) -> Trace:
    return read(folder, "swf", "a.swf", *(SWF.format(**{**SWF_FIELDS, "job": k + 1, **job}) for k, job in enumerate(jobs)))


def test_swf_minus_one_is_unknown(tmp_path: Path) -> None:
    trace = swf(tmp_path, {"wait": -1}, {"run": -1, "status": -1}, {"procs": -1, "wanted": 5}, {"limit": 7, "status": 0})
    assert list(trace.rows["gpus"]) == [2, 5, 2] and list(trace.rows["duration_s"]) == [10, 10, 10]
    assert np.isnan(trace.rows["wait_s"][0]) and list(np.isnan(trace.rows["limit_s"])) == [True, True, False]
    assert [Outcome(code).name for code in trace.rows["outcome"]] == ["COMPLETED", "COMPLETED", "FAILED"]
    assert trace.report.dropped == {"run time missing or no number": 1}
    assert trace.report.noted == {"ran longer than requested, kept": 1}
    assert trace.report.time_base == "seconds of an unknown start (no header)"


def test_swf_ties_are_in_the_order_of_job_numbers_and_ids_may_have_gaps(tmp_path: Path) -> None:
    trace = swf(tmp_path, {"job": 10, "run": 1}, {"job": 9, "run": 2}, {"job": 700, "run": 3})
    assert list(trace.rows["duration_s"]) == [2, 1, 3]


def test_swf_site_extensions_and_short_lines(tmp_path: Path) -> None:
    line = SWF.format(**SWF_FIELDS)
    trace = read(tmp_path, "swf", "a.swf", line + " node1 queue props", line.rsplit(" ", 3)[0])
    assert trace.rows.size == 1 and trace.report.dropped == {"fewer than 18 fields": 1} and trace.report.rows_read == 2
    assert trace.report.noted == {"lines with fields beyond the 18th, ignored": 1}


def test_swf_unix_times_stay_numbers(tmp_path: Path) -> None:
    trace = swf(tmp_path, {"submit": 1_356_994_806}, {"submit": 1_356_994_816})
    assert np.diff(trace.rows["submit_s"]) == [10] and trace.report.first == "1356994806 s"


def test_gavel_generations_swap_gpus_and_arrival(tmp_path: Path) -> None:
    old = read(tmp_path, "gavel", "old.trace", GAVEL_OLD.format("3.0", 1, "6.0", 8).strip())
    new = read(tmp_path, "gavel", "new.trace", GAVEL_NEW.format(8, 2, 6).strip(), GAVEL_NEW.format(1, 0, 7).strip())
    assert list(old.rows["gpus"]) == [1, 8] and list(old.rows["submit_s"]) == [3, 6] and list(old.rows["steps"]) == [700, 95121]
    assert list(new.rows["gpus"]) == [8, 1] and list(new.rows["submit_s"]) == [6, 7] and list(new.rows["steps"]) == [5000, 5000]
    assert list(new.rows["weight"]) == [2, 1] and new.report.repaired == {"priority_weight not above 0: taken as 1": 1}
    assert old.kinds == ("LM (batch size 5)", "ResNet-18 (batch size 16)")
    assert np.isnan(old.rows["duration_s"]).all() and old.report.gpu_hours == {}  # total_steps is work, not seconds


def test_muri_is_tiresias_in_milliseconds(tmp_path: Path) -> None:
    lines = ("job_id,num_gpu,submit_time,iterations,model_name,duration", "0,1,2000,10,dqn,5000")
    muri, tiresias = (read(tmp_path, format, "a.csv", *lines) for format in ("muri", "tiresias"))
    assert muri.rows["duration_s"] == [5] and tiresias.rows["duration_s"] == [5000]
    assert muri.rows["submit_s"] == [2] and tiresias.rows["submit_s"] == [2000]


def test_rubick_keeps_plans_and_short_and_odd_jobs(tmp_path: Path) -> None:
    header = "name,submission_time,duration,application,num_gpus,exec_plan"
    trace = read(tmp_path, "rubick", "a.csv", header, "a,0,0.007,vit,5,zero-dp", "b,1,2,t5,48,344")
    assert list(trace.rows["gpus"]) == [5, 48] and trace.rows["duration_s"][0] == 0.007
    assert [trace.plans[row["plan"]] for row in trace.rows] == ["zero-dp", "344"]


def test_gaia_hours_are_told_from_seconds(tmp_path: Path) -> None:
    header = "arrival_time,length,cpus"
    hours = read(tmp_path, "gaia", "pai-100k.csv", header, "0.5,1.5,2", "2,400,1")
    seconds = read(tmp_path, "gaia", "pai_1k.csv", header, "0.5,300,2", "2,400,1")
    assert list(hours.rows["duration_s"]) == [5400, 1_440_000] and list(hours.rows["submit_s"]) == [1800, 7200]
    assert list(seconds.rows["duration_s"]) == [300, 400] and list(seconds.rows["submit_s"]) == [0.5, 2]
    assert hours.report.units["length"] == "hours" and seconds.report.units["length"] == "seconds"
    with pytest.raises(TraceError, match="in seconds and in hours; give them one by one"):
        load("gaia", tmp_path)


def test_sia_has_no_run_times_and_float_or_whole_times(tmp_path: Path) -> None:
    trace = read(tmp_path, "sia", "a.csv", "name,time,application,num_replicas", "a,107,bert,4", "b,107.0,yolov3,2", "c,8,,1")
    assert np.isnan(trace.rows["duration_s"]).all() and list(trace.rows["submit_s"]) == [107, 107]
    assert trace.report.dropped == {"application missing: the work is unknown": 1}


BAD = {
    "x,1,0,5": "submit_time missing or no number",
    "3,,0,5": "num_gpu missing or no number",
    "3,0,0,5": "asks for no GPU",
    "3,-2,0,5": "num_gpu negative or above 1000000",
    "3,1,0,": "duration missing or no number",
    "3,1,0,-1": "duration negative",
    "-792,1,0,4": "over before time 0",
    "3,1,0,5,6": "more cells than columns",
}


@pytest.mark.parametrize("line", list(BAD))
def test_p25_a_bad_row_is_dropped_and_counted(tmp_path: Path, line: str) -> None:
    trace = read(tmp_path, "tiresias", "a.csv", "submit_time,num_gpu,iterations,duration", "3,1,0,5", line)
    assert trace.report.dropped == {BAD[line]: 1} and trace.report.rows_kept == 1 and trace.report.rows_read == 2


def test_p25_a_job_from_before_time_0_that_still_runs_is_present_at_0(tmp_path: Path) -> None:
    trace = read(tmp_path, "tiresias", "a.csv", "submit_time,num_gpu,duration", "-10,1,50")
    assert trace.rows["submit_s"] == [0] and trace.rows["duration_s"] == [50]
    assert trace.report.repaired == {"submitted before time 0: present at 0": 1}


def test_p16_p17_zero_run_times_stay_and_fractions_are_rounded_up(tmp_path: Path) -> None:
    trace = read(tmp_path, "tiresias", "a.csv", "submit_time,num_gpu,duration", "0,0.25,0", "0,2.5,1")
    assert list(trace.rows["gpus"]) == [1, 3] and list(trace.rows["duration_s"]) == [0, 1]
    assert trace.report.repaired == {"fractional GPUs rounded up": 2}
    assert trace.report.noted == {"rows of zero duration, kept": 1}

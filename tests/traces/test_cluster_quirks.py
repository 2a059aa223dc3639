"""The documented oddities of the formats of whole clusters, one tiny file each; P17 and P25."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hetenv.errors import TraceError
from hetenv.traces import TRACE_FORMATS, CountSeries, NodePool, NodeTable, Outcome, load_jobs

from .formats import SAMPLES, SLURM
from .test_job_quirks import read

POD = "name,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
SPOT_NODES = "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,128,2\nA10,1,128,3\nH800,8,192,4\n"


def pai(folder: Path, jobs: str, tasks: str) -> Any:
    (folder / "pai_job_table.csv").write_text(jobs, encoding="utf-8")
    (folder / "pai_task_table.csv").write_text(tasks, encoding="utf-8")
    return load_jobs("pai2020", folder)


def task(inst_num: str, plan_gpu: str, job: str = "j", kind: str = "T4") -> str:
    return f"{job},worker,{inst_num},Terminated,12.0,20.0,600.0,29.3,{plan_gpu},{kind}\n"


@pytest.mark.parametrize(
    ("inst_num", "plan_gpu", "asked", "whole"),
    [("4.0", "100.0", 4.0, 4), ("4.0", "50.0", 2.0, 2), ("1.0", "25.0", 0.25, 1), ("1.0", "800.0", 8.0, 8), ("3.0", "50.0", 1.5, 2)],
)
def test_p25_plan_gpu_is_a_percentage_per_instance(tmp_path: Path, inst_num: str, plan_gpu: str, asked: float, whole: int) -> None:
    trace = pai(tmp_path, "j,i,u,Terminated,10.0,20.0\n", task(inst_num, plan_gpu) + "j,ps,1.0,Terminated,11.0,20.0,600.0,29.3,,\n")
    assert trace.rows["gpus"] == [whole] and trace.rows["duration_s"] == [8] and trace.rows["wait_s"] == [2]
    assert trace.statistics["gpus_per_job_plan_gpu_over_100_times_inst_num"]["sum"] == asked
    assert trace.report.repaired.get("fractional GPUs rounded up", 0) == (asked != whole)
    assert trace.gpu_types == ("T4",) and trace.statistics["n_tasks_without_gpu"] == 1


def test_p25_pai_times_from_before_the_trace_and_rows_without_an_end(tmp_path: Path) -> None:
    jobs = "a,i,u,Terminated,-792.0,-788.0\nb,i,u,Running,10.0,\nc,i,u,Waiting,,\nd,i,u,Failed,30.0,20.0\ne,i,u,Terminated,-5.0,20.0\n"
    trace = pai(tmp_path, jobs, "".join(task("1.0", "100.0", job) for job in "abcdez"))
    assert trace.rows["submit_s"] == [0] and trace.rows["duration_s"] == [8] and np.isnat(trace.origin)
    assert trace.report.dropped == {
        "over before time 0": 1, "no end": 1, "start_time missing or no number": 1, "ends before it starts": 1,
    }  # fmt: skip
    assert trace.report.noted == {"tasks of no job in the job table, ignored": 1}


def test_pai_names_stand_in_header_files_and_jobs_need_both_tables(tmp_path: Path) -> None:
    (tmp_path / "pai_job_table.header").write_text("status,job_name,inst_id,user,start_time,end_time", encoding="utf-8")
    trace = pai(tmp_path, "Failed,j,i,u,10.0,20.0\n", task("2.0", "100.0"))
    assert trace.rows["gpus"] == [2] and trace.rows["outcome"] == [Outcome.FAILED]
    (tmp_path / "pai_task_table.csv").unlink()
    with pytest.raises(TraceError, match=r"pai_task_table\.csv is missing"):
        load_jobs("pai2020", tmp_path)


def test_pai_machines_are_the_capacity_of_their_folder(tmp_path: Path) -> None:
    path = tmp_path / "pai_machine_spec.csv"
    path.write_text("m1,CPU,96,512,0\nm2,T4,96,512,2\nm3,T4,96,512,2\n", encoding="utf-8")
    nodes = TRACE_FORMATS["pai2020"].load(path)
    assert isinstance(nodes, NodeTable) and nodes.pools == (NodePool("T4", 2, 2),)
    assert nodes.statistics["gpus_by_type"] == {"CPU": 0, "T4": 4}
    assert nodes.report.noted == {"nodes without a GPU: in no pool": 1}
    trace = pai(tmp_path, "j,i,u,Terminated,0,20.0\nk,i,u,Terminated,10,20.0\n", task("2.0", "100.0") + task("1.0", "100.0", "k"))
    assert trace.report.gpus == {"T4": 4} and trace.report.capacity_gpu_hours == {"T4": pytest.approx(40 / 3600)}
    assert trace.report.offered_load == {"T4": pytest.approx((2 * 8 + 8) / 40)} and set(trace.statistics) == {
        "pai_job_table.csv", "pai_machine_spec.csv",
    }  # fmt: skip


def test_openb_pending_running_and_shared_pods(tmp_path: Path) -> None:
    trace = read(
        tmp_path, "openb2023", "pods.csv", POD,
        "p0,1,460,V100M16|V100M32|V100M32,LS,Running,0,900,100", "p1,1,1000,,LS,Pending,5,50,", "p2,0,0,,BE,Failed,6,9,6",
        "p3,8,1000,G2,LS,Failed,7,17,7",
    )  # fmt: skip
    assert list(trace.rows["gpus"]) == [1, 8] and list(trace.rows["duration_s"]) == [800, 10] and list(trace.rows["wait_s"]) == [100, 0]
    assert [Outcome(code).name for code in trace.rows["outcome"]] == ["RUNNING", "FAILED"]
    assert trace.gpu_types == ("G2", "V100M16|V100M32")
    assert trace.report.dropped == {"Pending: never scheduled": 1, "asks for no GPU": 1}
    assert trace.report.repaired == {"fractional GPUs rounded up": 1}
    assert trace.statistics["sum_gpus_requested"] == pytest.approx(0.46 + 1 + 8)


def test_openb_files_without_times_hold_pods_of_unknown_run_time(tmp_path: Path) -> None:
    trace = read(tmp_path, "openb2023", "multigpu20.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli", "p0,1,1,2,1000", "p1,1,1,1,300")
    assert list(trace.rows["gpus"]) == [2, 1] and np.isnan(trace.rows["duration_s"]).all() and not trace.rows["submit_s"].any()
    assert trace.report.noted == {"no times in the file: submitted at 0, run time unknown": 2}


def test_openb_load_is_held_against_either_type(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,0,\nn1,1,1,4,A\nn2,1,1,2,B\nn3,1,1,8,C\n", "utf-8")
    lines = [POD, "p0,1,1000,A|B,LS,Running,0,7200,0", "p1,1,1000,C,LS,Running,3600,57600,3600"]
    (tmp_path / "pods.csv").write_text("\n".join(lines), encoding="utf-8")
    report = load_jobs("openb2023", tmp_path).report
    assert report.capacity_gpu_hours == {"A|B": 6.0, "C": 8.0}
    assert report.offered_load == {"A|B": pytest.approx(2 / 6), "C": pytest.approx(15 / 8)} and report.overloaded == ("C",)


def test_dlrm_rows_without_times_were_present_before_the_trace(tmp_path: Path) -> None:
    trace = read(
        tmp_path, "dlrm2025", "a.csv", "role,app_name,gpu_request,max_instance_per_node,creation_time,scheduled_time,deletion_time",
        "HN,app_0,1,-1,,,100", "HN,app_0,1,2,,,", "CN,app_1,0,-1,,,", "HN,app_1,1,-1,30,,20", "HN,app_1,1,-1,40,,40",
    )  # fmt: skip
    assert list(trace.rows["submit_s"]) == [0, 0, 40] and list(trace.rows["duration_s"]) == [100, 100, 0]
    assert trace.report.dropped == {"asks for no GPU": 1, "ends before it starts": 1}
    assert trace.report.repaired == {
        "no creation_time: present before the trace, submitted at 0": 2,
        "no deletion_time: alive at the end, life cut at the file's last time": 1,
    }
    assert trace.statistics["max_instance_per_node_hist"] == {"-1": 4, "2": 1}


def test_spot_nodes_in_any_column_order_and_workers_of_a_job(tmp_path: Path) -> None:
    for text in (SPOT_NODES, "node_name,gpu_model,gpu_capacity_num,cpu_num\n2,A10,1,1\n3,A10,1,1\n4,H800,8,1\n"):
        (tmp_path / "node_info_df.csv").write_text(text, encoding="utf-8")
        nodes = TRACE_FORMATS["spot2026"].load(tmp_path)
        assert isinstance(nodes, NodeTable) and nodes.pools == (NodePool("A10", 2, 1), NodePool("H800", 1, 8))
    with pytest.raises(TraceError, match="holds no jobs"):
        load_jobs("spot2026", tmp_path)
    SAMPLES["spot2026"].write(tmp_path)
    trace = load_jobs("spot2026", tmp_path)
    assert [trace.plans[row["plan"]] for row in trace.rows] == ["HP", "Spot"] and list(trace.rows["gpus"]) == [4, 1]
    assert trace.report.gpus == {"A10": 2, "H800": 8} and trace.report.overloaded == ("A10", "H800")


def test_helios_odd_rows(tmp_path: Path) -> None:
    trace = read(
        tmp_path, "helios", "cluster_log.csv", SLURM.strip(),
        "1,u,v,0,1,1,COMPLETED,2020-06-09 18:00:00,2020-06-09 18:00:00,2020-06-09 18:00:09,9,0",
        "2,u,v,2,1,1,TIMEOUT,2020-06-09 18:00:01,2020-06-09 18:00:01,2020-06-09 18:00:01,0,0",
        "3,u,v,1,1,1,RUNNING,2020-06-09 18:00:02,2020-06-09 18:00:12,,77,10",
        "4,u,v,1,1,1,NODE_FAIL,2020-06-09 18:00:03,,,,",
        "5,u,v,1,1,1,FAILED,2020-06-09 18:00:04,2020-06-09 17:00:00,2020-06-09 18:00:10,3610,0",
    )  # fmt: skip
    assert list(trace.rows["duration_s"]) == [0, 77, 6] and list(trace.rows["wait_s"]) == [0, 10, 0]
    assert [Outcome(code).name for code in trace.rows["outcome"]] == ["TIMEOUT", "RUNNING", "FAILED"]
    assert trace.report.dropped == {"asks for no GPU": 1, "never started: no start": 1}
    assert trace.report.repaired == {
        "start or end missing: run time from the duration column": 1, "start before submit: taken as the submit": 1,
    }  # fmt: skip
    assert str(trace.origin) == "2020-06-09" and trace.rows["submit_s"][0] == 18 * 3600 + 1


def test_helios_quota_is_the_folders_capacity_and_a_new_cluster_has_zeros(tmp_path: Path) -> None:
    (tmp_path / "cluster_gpu_number.csv").write_text("date,vcA,vcB,total\n2020-06-09,0,8,8\n2020-06-10,4,8,12\n", encoding="utf-8")
    quota = TRACE_FORMATS["helios"].load(tmp_path)
    assert isinstance(quota, CountSeries) and quota.statistics["n_vcs"] == 2 and quota.statistics["total_equals_sum_of_vcs"]
    SAMPLES["helios"].write(tmp_path)
    report = load_jobs("helios", tmp_path).report
    assert report.gpus == {"any": 10} and report.offered_load == {"any": pytest.approx((4 * 219 + 500) / (10 * 60))}
    (tmp_path / "cluster_log.csv").write_text("time,some\n2020-06-09,3\n", encoding="utf-8")
    with pytest.raises(TraceError, match="no count series of Helios"):
        TRACE_FORMATS["helios"].load(tmp_path)


def test_acme_offsets_become_utc_and_run_times_leave_the_queue_out(tmp_path: Path) -> None:
    header = "gpu_num,state,submit_time,start_time,end_time,duration"
    trace = read(
        tmp_path, "acme", "trace_a.csv", header,
        "8,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,18",
        "4,COMPLETED,2023-05-17 19:00:59+08:00,2023-05-17 19:01:08+08:00,2023-05-17 19:01:10+08:00,2",
    )  # fmt: skip
    assert list(trace.rows["duration_s"]) == [8, 2] and list(trace.rows["wait_s"]) == [10, 9] and np.diff(trace.rows["submit_s"]) == [1]
    assert trace.report.noted == {"duration column is not end - start: left unused": 1}
    assert trace.report.first == "2023-05-17 11:00:58"


def test_philly_none_in_its_many_spellings(tmp_path: Path) -> None:
    def job(number: int, *attempts: tuple[str | None, str | None], gpus: int = 2, servers: int = 1) -> dict[str, Any]:
        detail = [{"ip": f"m{k}", "gpus": [f"gpu{k}" for k in range(gpus)]} for k in range(servers)]
        made = [{"start_time": start, "end_time": end, "detail": detail} for start, end in attempts]
        when = f"2017-10-03 00:00:0{number}"
        return {"status": "Failed", "vc": "v", "jobid": f"a{number}", "attempts": made, "submitted_time": when, "user": "u"}

    one, two, three = ("2017-10-03 00:01:00", "2017-10-03 00:02:00"), ("2017-10-03 00:03:00", None), (None, "2017-10-03 00:04:00")
    jobs = [
        job(1), job(2, two), job(3, three), job(4, one, two), job(5, one, (one[1], "None"), (one[1], one[1])),
        job(6, one, servers=3), job(7, one, gpus=0), job(8, ("2017-10-02 00:00:00", one[1])),
    ]  # fmt: skip
    path = tmp_path / "cluster_job_log"
    path.write_text(json.dumps(jobs[::-1]), encoding="utf-8")
    trace = load_jobs("philly", path)
    assert list(trace.rows["gpus"]) == [2, 2, 6, 2] and list(trace.rows["duration_s"]) == [60, 60, 60, 86_520]
    assert list(trace.rows["wait_s"]) == [56, 55, 54, 0]
    assert trace.report.dropped == {"no attempts: never started": 1, "no attempt with a start and an end": 2, "asks for no GPU": 1}
    assert trace.report.repaired == {
        "attempts without a start or an end: left out of the run time": 2, "start before submit: a wait of 0": 1,
    }  # fmt: skip
    assert trace.statistics["sorted_by_submit"] is False and trace.statistics["multi_server_jobs"] == 1


def test_philly_machines_have_blanks_before_their_memory(tmp_path: Path) -> None:
    (tmp_path / "cluster_machine_list").write_text("machineId,number of GPUs,single GPU mem\nm1,8, 24GB\nm2,2, 12GB\n", "utf-8")
    nodes = TRACE_FORMATS["philly"].load(tmp_path)
    assert isinstance(nodes, NodeTable) and nodes.pools == (NodePool("12GB", 1, 2), NodePool("24GB", 1, 8))


def test_azure_requests_keep_a_tenth_of_a_microsecond(tmp_path: Path) -> None:
    trace = load_jobs("azure_llm", SAMPLES["azure_llm"].write(tmp_path))
    assert list(trace.rows["steps"]) == [4818, 137] and trace.kinds == ("code",)
    assert trace.statistics["first"] == "2023-11-16 18:17:03.9799600"
    assert trace.statistics["span_s"] == 0.500001


def test_sacct_steps_states_and_limits(tmp_path: Path) -> None:
    trace = read(
        tmp_path, "sacct", "jobs.txt", "JobID|Partition|State|Submit|Start|End|Elapsed|Timelimit|ReqTRES|AllocTRES|",
        "1|gpu|COMPLETED|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-02T09:00:30|1-01:00:30|2-00:00:00|gres/gpu=9|gres/gpu=2,gres/gpu:a100=2|",
        "1.batch||COMPLETED|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-02T09:00:30|1-01:00:30|||gres/gpu=2|",
        "2_7|gpu|CANCELLED by 1001|2024-05-01T08:00:01|Unknown|2024-05-01T08:00:09|00:00:00|UNLIMITED|gres/gpu:h100=4||",
        "3|cpu|FAILED|2024-05-01T08:00:02|2024-05-01T08:00:02|2024-05-01T08:00:09|00:00:07|10:00|cpu=4|cpu=4|",
        "4|gpu|RUNNING|2024-05-01T08:00:03|2024-05-01T08:00:13|Unknown|01:05|Partition_Limit|gres/gpu=1|gres/gpu=1|",
        "5|gpu|OUT_OF_MEMORY|2024-05-01T08:00:04|2024-05-01T08:00:05|2024-05-01T08:00:09|00:04|10:00||gres/gpu:a100:3d=1,gres/gpu=3|",
    )  # fmt: skip
    assert list(trace.rows["gpus"]) == [2, 1, 3] and list(trace.rows["duration_s"]) == [90_030, 65, 4]
    assert list(trace.rows["wait_s"]) == [0, 10, 1] and trace.rows["limit_s"][0] == 172_800 and trace.rows["limit_s"][2] == 600
    assert np.isnan(trace.rows["limit_s"][1]) and [trace.gpu_types[k] for k in trace.rows["gpu_type"]] == ["a100", "any", "any"]
    assert [Outcome(code).name for code in trace.rows["outcome"]] == ["COMPLETED", "RUNNING", "FAILED"]
    assert trace.report.dropped == {"a job step, no job": 1, "never started: no start": 1, "asks for no GPU": 1}
    with pytest.raises(TraceError, match="no field states GPUs; print one of AllocTRES"):
        read(tmp_path, "sacct", "cpu.txt", "JobID|State|Submit|Start|End", "1|FAILED|2024-05-01T08:00:00|Unknown|Unknown")

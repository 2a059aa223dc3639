"""A small hand-made file of each job format, and what it holds: (submit s since the first, duration s, GPUs) by row."""

from dataclasses import dataclass
from pathlib import Path

NAN = float("nan")


@dataclass(frozen=True)
class Sample:
    """One file. `delimiter` separates its cells; `has_header` says whether its first line names them."""

    name: str
    text: str
    jobs: tuple[tuple[float, float, int], ...]
    delimiter: str = ","
    has_header: bool = True
    n_dropped: int = 0
    beside: tuple[tuple[str, str], ...] = ()
    """Further files of its folder: name, text."""

    def write(self, folder: Path, content: bytes | None = None, suffix: str = "") -> Path:
        for name, text in self.beside:
            (folder / name).write_text(text, encoding="utf-8")
        path = folder / (self.name + suffix)
        path.write_bytes(self.text.encode() if content is None else content)
        return path


GAVEL_OLD = (
    "LM (batch size 5)\tpython main.py %s\t--steps\t1\t700\t{}\t{}\n"
    "ResNet-18 (batch size 16)\tcd %s && python3 main.py\t--num_steps\t1\t95121\t{}\t{}\n"
)
GAVEL_NEW = "A3C\tpython3 a3c.py\trl\t--max-steps\t0\t5000\t{}\t{}\t-1.000000\t{}\n"

SLURM = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
PHILLY = (
    '[{"status": "Pass", "vc": "aa", "jobid": "a_2", "user": "u", "submitted_time": "2017-10-03 00:00:10", "attempts": ['
    '{"start_time": "2017-10-03 00:00:40", "end_time": "2017-10-03 00:01:40", "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]},'
    '{"start_time": "2017-10-03 00:02:00", "end_time": "2017-10-03 00:02:05", "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}]},'
    '\n{"status": "Killed", "vc": "bb", "jobid": "a_1", "user": "u", "submitted_time": "2017-10-03 00:00:00", "attempts": ['
    '{"start_time": "2017-10-03 00:00:00", "end_time": "2017-10-03 01:00:00", "detail": '
    '[{"ip": "m2", "gpus": ["gpu0"]}, {"ip": "m3", "gpus": ["gpu5"]}]}]}]\n'
)

SAMPLES: dict[str, Sample] = {
    "acme": Sample(
        "trace_seren.csv",
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
        "1,u,1,8,1,Eval,FAILED,2023-03-01 00:00:10+08:00,2023-03-01 00:00:30+08:00,2023-03-01 00:02:00+08:00,90,20,720.0\n"
        "2,u,1,1,1,SFT,COMPLETED,2023-03-01 00:01:10+08:00,2023-03-01 00:01:10+08:00,2023-03-02 00:01:10+08:00,86400,0,1.0\n",
        ((0, 90, 8), (60, 86_400, 1)),
    ),
    "azure_llm": Sample(
        "AzureLLMInferenceTrace_code.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.4799610,110,27\n",
        ((0, NAN, 1), (0.500001, NAN, 1)),
    ),
    "dlrm2025": Sample(
        "disaggregated_DLRM_trace.csv",
        "instance_sn,role,app_name,gpu_request,creation_time,scheduled_time,deletion_time\n"
        "i0,HN,app_0,1,,,100\ni1,HN,app_1,2,,,\ni2,HN,app_1,1,50,60,160\ni3,HN,app_1,1,20,,20\n",
        ((0, 100, 1), (0, 160, 2), (20, 0, 1), (50, 100, 1)),
    ),
    "helios": Sample(
        "cluster_log.csv",
        SLURM + "7,u,vcA,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:57,2020-06-09 18:45:36,219,30\n"
        "8,u,vcB,1,1,1,RUNNING,2020-06-09 18:42:27,2020-06-09 18:42:27,,500,0\n",
        ((0, 219, 4), (60, 500, 1)),
    ),
    "openb2023": Sample(
        "openb_pod_list_default.csv",
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        "p0,1,1,1,460,,LS,Running,0,900,100\np1,1,1,8,1000,V100M16|V100M32|V100M32,LS,Succeeded,10,30,10\n",
        ((0, 800, 1), (10, 20, 8)),
    ),
    "pai2020": Sample(
        "pai_job_table.csv",
        "j1,i1,u,Terminated,100.0,400.0\nj2,i2,u,Failed,150.0,250.0\n",
        ((0, 290, 4), (50, 100, 2)),
        has_header=False,
        beside=(
            (
                "pai_task_table.csv",
                "j1,worker,4.0,Terminated,110.0,400.0,600.0,29.3,100.0,T4\nj1,ps,1.0,Terminated,105.0,400.0,600.0,29.3,,\n"
                "j2,worker,4.0,Failed,150.0,250.0,600.0,29.3,50.0,V100\n",
            ),
        ),
    ),
    "philly": Sample("cluster_job_log", PHILLY, ((0, 3600, 2), (10, 65, 2)), has_header=False),
    "sacct": Sample(
        "jobs.txt",
        "JobID|User|Account|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES\n"
        "11|u|lab|COMPLETED|2024-05-01T08:00:00|2024-05-01T08:00:30|2024-05-01T09:00:30|3600|120|billing=4,cpu=4,gres/gpu=2,node=1\n"
        "12|u|lab|CANCELLED by 1001|2024-05-01T08:00:10|2024-05-01T08:00:10|2024-05-01T08:00:15|5|60|"
        "cpu=4,gres/gpu:a100=3,gres/gpu:h100=1\n",
        ((0, 3600, 2), (10, 5, 4)),
        "|",
    ),
    "spot2026": Sample(
        "job_info_df.csv",
        "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"
        "a,o1,A10,8,1,4,5,100,HP\nb,o2,H800,8,0.5,1,7,50,Spot\n",
        ((0, 100, 4), (2, 50, 1)),
    ),
    "gaia": Sample("pai_1k.csv", "arrival_time,length,cpus\n10.0,6302.0,1\n78.0,300.0,2\n", ((0, 6302, 1), (68, 300, 2))),
    "gavel": Sample(
        "a.trace", GAVEL_OLD.format("0.000000", 1, "6.5", 4), ((0, NAN, 1), (6.5, NAN, 4)), "\t", has_header=False
    ),
    "muri": Sample(
        "trace1.csv",
        "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time\n"
        "0,1,0,10,dqn,128,5000,0,500\n1,8,201500,3,vgg16,16,1500,0,500\n",
        ((0, 5, 1), (201.5, 1.5, 8)),
    ),
    "rubick": Sample(
        "workload.csv",
        "name,submission_time,duration,application,num_gpus,num_cpus,bandwidth,exec_plan,steps,is_sla\n"
        "vit-0,0,0.0073,vit,5,16,0,zero-dp,37,0\nllama30-1,1639,142.25,llama30,48,384,1.25,344,64,0\n",
        ((0, 0.0073, 5), (1639, 142.25, 48)),
    ),
    "sia": Sample(
        "workload-1.csv",
        "name,time,application,num_replicas,batch_size\ncifar10-0,107,cifar10,6,2048\nbert-1,110.5,bert,12,384\n",
        ((0, NAN, 6), (3.5, NAN, 12)),
    ),
    "swf": Sample(
        "log.swf",
        "; Version: 2.2\n; UnixStartTime: 1027839845\n"
        " 1   0  5 100 4 -1.5 -1 4 600 -1 1 7 1 3 1 -1 -1 -1\n 3  60 -1  50 -1 -1 -1 8 -1 -1 0 8 1 3 1 -1 -1 -1\n",
        ((0, 100, 4), (60, 50, 8)),
        " ",
        has_header=False,
    ),
    "tiresias": Sample(
        "60_job.csv",
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
        "1,2,0,100,vgg19,164,1\n2,8,30,7,resnet50,147,1\n10,1,30,7,alexnet,9,1\n",
        ((0, 164, 2), (30, 147, 8), (30, 9, 1)),
    ),
}

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

    def write(self, folder: Path, content: bytes | None = None, suffix: str = "") -> Path:
        path = folder / (self.name + suffix)
        path.write_bytes(self.text.encode() if content is None else content)
        return path


GAVEL_OLD = (
    "LM (batch size 5)\tpython main.py %s\t--steps\t1\t700\t{}\t{}\n"
    "ResNet-18 (batch size 16)\tcd %s && python3 main.py\t--num_steps\t1\t95121\t{}\t{}\n"
)
GAVEL_NEW = "A3C\tpython3 a3c.py\trl\t--max-steps\t0\t5000\t{}\t{}\t-1.000000\t{}\n"

SAMPLES: dict[str, Sample] = {
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

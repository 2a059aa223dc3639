"""Workloads: job classes, requests, arrivals. A workload config draws the REQUEST rows of one episode."""

from hetenv.workload.context import WorkloadContext
from hetenv.workload.job_class import AnalyticClass, FixedClass, JobClass, TableClass
from hetenv.workload.synthetic import SyntheticWorkload
from hetenv.workload.trace import TraceWorkload

WorkloadConfig = SyntheticWorkload | TraceWorkload

"""Workloads: job classes, requests, arrivals. A workload config draws the REQUEST rows of one episode."""

from typing import Annotated

from pydantic import Field

from hetenv.workload.context import WorkloadContext
from hetenv.workload.job_class import AnalyticClass, FixedClass, JobClass, Phase, PhasedClass, PlainClass, TableClass
from hetenv.workload.listed import ListedWorkload
from hetenv.workload.synthetic import SyntheticWorkload
from hetenv.workload.trace import TraceWorkload

WorkloadConfig = Annotated[SyntheticWorkload | TraceWorkload | ListedWorkload, Field(discriminator="kind")]

__all__ = [
    "AnalyticClass",
    "FixedClass",
    "JobClass",
    "ListedWorkload",
    "Phase",
    "PhasedClass",
    "PlainClass",
    "SyntheticWorkload",
    "TableClass",
    "TraceWorkload",
    "WorkloadConfig",
    "WorkloadContext",
]

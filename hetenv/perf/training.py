"""What is trained (`Training`) and on what (`Devices`): friendly frozen dataclasses and their rows for the kernels."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hetenv import catalog
from hetenv.catalog import Accelerator, Link, Model, Stack
from hetenv.errors import ScenarioError, unknown
from hetenv.perf.power import capped_clock
from hetenv.perf.rows import DEVICE_ROW, MODEL_ROW, SETTING_ROW, STACK_ROW, Precision
from hetenv.perf.setting import prepare

_PRECISION_NAMES: Final = {
    "fp32": Precision.FP32,
    "tf32": Precision.TF32,
    "fp16": Precision.FP16,
    "amp": Precision.FP16,
    "bf16": Precision.BF16,
    "fp8": Precision.FP8,
    "mxfp8": Precision.MXFP8,
    "nvfp4": Precision.NVFP4,
}


def precision_of(name: str | Precision) -> Precision:
    """The Precision of a label. Unknown labels are refused, never taken for 16 bit."""
    if isinstance(name, Precision):
        return name
    found = _PRECISION_NAMES.get(name.strip().lower())
    if found is None:
        raise ScenarioError(unknown("precision", name, _PRECISION_NAMES))
    return found


@dataclass(frozen=True)
class Training:
    """One training job's work. seq_len 0: the model's default. global_batch in samples (sequences or images)."""

    model: str | Model
    global_batch: int
    seq_len: int = 0
    precision: str | Precision = Precision.BF16
    stack: str | Stack = "default"

    def __post_init__(self) -> None:
        if self.global_batch < 1 or self.seq_len < 0:
            raise ScenarioError(f"global_batch={self.global_batch}, seq_len={self.seq_len}: must be positive")

    @property
    def model_entry(self) -> Model:
        """The catalog's model, or the one given."""
        return catalog.model(self.model) if isinstance(self.model, str) else self.model

    @property
    def stack_entry(self) -> Stack:
        """The catalog's stack, or the one given."""
        return catalog.stack(self.stack) if isinstance(self.stack, str) else self.stack

    @property
    def tokens_per_sample(self) -> int:
        """Tokens of one sample, 1 for an image."""
        entry = self.model_entry
        return 1 if entry.kind == "convolution" else self.seq_len or entry.default_seq_len


@dataclass(frozen=True)
class Devices:
    """GPUs of one type that one job holds.

    inter_bytes_per_s: all NICs of one node, per direction; intra: one GPU's link; None takes the link's (or
    accelerator's) figure. n_sites > 1 spreads the GPUs evenly over sites joined by `wan_link`. power_cap_w: per GPU.
    """

    accelerator: str | Accelerator
    n_gpus: int
    gpus_per_node: int = 8
    inter_link: str | Link = "IB-HDR-4x"
    intra_link: str | Link | None = None
    wan_link: str | Link | None = None
    n_sites: int = 1
    power_cap_w: float | None = None
    intra_bytes_per_s: float | None = None
    inter_bytes_per_s: float | None = None
    launch_factor: float = 1.0

    def __post_init__(self) -> None:
        if self.n_gpus < 1 or self.gpus_per_node < 1 or self.n_sites < 1:
            raise ScenarioError(
                f"n_gpus={self.n_gpus}, gpus_per_node={self.gpus_per_node}, n_sites={self.n_sites}: must be >= 1"
            )
        if self.n_sites > 1 and self.wan_link is None:
            raise ScenarioError(f"n_sites={self.n_sites} needs a wan_link")

    @property
    def accelerator_entry(self) -> Accelerator:
        """The catalog's accelerator, or the one given."""
        return catalog.accelerator(self.accelerator) if isinstance(self.accelerator, str) else self.accelerator

    def with_gpus(self, n_gpus: int) -> "Devices":
        """The same kind of devices in another number."""
        return replace(self, n_gpus=n_gpus)


def _link(link: str | Link) -> Link:
    return catalog.link(link) if isinstance(link, str) else link


def peak_flops(accelerator: Accelerator, precision: Precision) -> float:
    """Dense datasheet peak for the layer GEMMs, FLOP/s; 0 where the precision is not supported."""
    return {
        Precision.FP32: accelerator.peak_fp32_flops,
        Precision.TF32: accelerator.peak_tf32_flops,
        Precision.FP16: accelerator.peak_fp16_flops,
        Precision.BF16: accelerator.peak_bf16_flops,
        Precision.FP8: accelerator.peak_fp8_flops,
        Precision.MXFP8: accelerator.peak_fp8_flops,
        Precision.NVFP4: accelerator.peak_fp4_flops,
    }[precision]


@lru_cache(4096)
def model_row(model: Model) -> NDArray[np.void]:
    """MODEL_ROW array of length 1."""
    row = np.zeros(1, MODEL_ROW)
    for name in MODEL_ROW.names or ():
        if hasattr(model, name):
            row[name] = getattr(model, name)
    row["is_convolution"] = model.kind == "convolution"
    row["ffn_factor"] = 3 if model.gated else 2
    row["dropout"] = model.bias
    row["train_flops"] = model.train_flops_per_sample
    row["train_bytes"] = model.train_bytes_per_sample
    return row


@lru_cache(4096)
def stack_row(stack: Stack) -> NDArray[np.void]:
    """STACK_ROW array of length 1."""
    row = np.zeros(1, STACK_ROW)
    for name in STACK_ROW.names or ():
        row[name] = getattr(stack, name)
    return row


@lru_cache(4096)
def device_row(devices: Devices, precision: Precision) -> NDArray[np.void]:
    """DEVICE_ROW array of length 1."""
    entry = devices.accelerator_entry
    row = np.zeros(1, DEVICE_ROW)
    wide = precision in (Precision.FP32, Precision.TF32)
    peak = peak_flops(entry, precision)
    row["peak_flops"] = peak
    row["peak16_flops"] = peak if wide else max(entry.peak_bf16_flops, entry.peak_fp16_flops)
    row["element_bytes"] = 4 if wide else 2
    row["is_narrow"] = precision >= Precision.FP8
    row["efficiency"] = catalog.efficiency(entry, precision.name)
    row["efficiency16"] = row["efficiency"] if wide else catalog.efficiency(entry, "BF16")
    row["convolution"] = catalog.convolution_factor(entry, precision.name)
    row["memory_bytes"] = entry.memory_bytes
    row["memory_bytes_per_s"] = entry.memory_bytes_per_s * catalog.memory_factor(entry)
    row["n_gpus"] = devices.n_gpus
    row["gpus_per_node"] = devices.gpus_per_node
    row["n_sites"] = devices.n_sites
    intra, inter = _link(devices.intra_link or entry.intra_link), _link(devices.inter_link)
    default_intra = intra.bytes_per_s if devices.intra_link else entry.intra_bytes_per_s
    row["intra_bytes_per_s"] = default_intra if devices.intra_bytes_per_s is None else devices.intra_bytes_per_s
    row["inter_bytes_per_s"] = inter.bytes_per_s if devices.inter_bytes_per_s is None else devices.inter_bytes_per_s
    row["intra_nominal_bytes_per_s"], row["inter_nominal_bytes_per_s"] = default_intra, inter.bytes_per_s
    row["intra_latency_s"], row["inter_latency_s"] = intra.latency_s, inter.latency_s
    if devices.wan_link is not None:
        wan = _link(devices.wan_link)
        row["wan_bytes_per_s"], row["wan_latency_s"] = wan.bytes_per_s, wan.latency_s
    cap = entry.tdp_w if devices.power_cap_w is None else min(devices.power_cap_w, entry.tdp_w)
    row["idle_w"], row["limit_w"] = entry.idle_w, cap
    row["clock"] = capped_clock(entry.idle_w, entry.tdp_w, cap)
    row["launch_factor"] = devices.launch_factor * entry.host_launch_factor
    return row


@lru_cache(16384)
def setting_row(training: Training, devices: Devices) -> NDArray[np.void]:
    """SETTING_ROW array of length 1: what the plan kernels read."""
    precision = precision_of(training.precision)
    out = np.zeros(1, SETTING_ROW)
    device = device_row(devices, precision)
    model = model_row(training.model_entry)
    prepare(
        model[0],
        device[0],
        stack_row(training.stack_entry)[0],
        training.tokens_per_sample,
        training.global_batch,
        out[0],
    )
    return out

"""Measured training runs: one CSV row to (Training, Devices, Plan, seconds), or the reason why the model refuses it.

The file's form is that of published tables: see `COLUMNS`. Blank recompute is the lightest that fits, blank
micro-batch and virtual stages the fastest legal; both are flagged. Accelerators and precision labels are mapped
explicitly or refused.
"""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from hetenv import catalog
from hetenv.catalog import Accelerator, Model
from hetenv.catalog.software import run_stacks
from hetenv.errors import HetenvError, ScenarioError, TraceError
from hetenv.perf.plan import Plan
from hetenv.perf.rows import Precision, Recompute, Schedule
from hetenv.perf.training import Devices, Training, precision_of

COLUMNS = [
    "row_id",
    "source_id",
    "model_family",
    "model",
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "ffn_hidden",
    "vocab",
    "seq_len",
    "n_experts",
    "topk",
    "gpu_type",
    "n_gpus",
    "gpus_per_node",
    "intra_link",
    "inter_link",
    "tp",
    "pp",
    "dp",
    "cp",
    "ep",
    "virtual_stages",
    "zero_stage",
    "micro_batch",
    "global_batch",
    "precision",
    "recompute",
    "seq_parallel",
    "measured_iter_s",
    "quality",
    "notes",
]
_LABELS = {"amp": Precision.FP16, "fp8-cs": Precision.FP8, "fp8-mx": Precision.MXFP8}
_LANE_BYTES_PER_S = {"EDR": 12.5e9, "HDR": 25e9, "NDR": 50e9, "XDR": 100e9}
_TRAY_GPUS = 4
_DEFAULT_INTER_BYTES_PER_S = 100e9
_GATED_FAMILIES = ("LLaMA", "MoE", "Nemotron", "GLM")


@dataclass(frozen=True)
class Run:
    """One measured run. kind: dense, moe (and hybrids), cnn or mixed. `refused` is empty where the model takes the
    row."""

    row_id: str
    source_id: str
    kind: str
    stack: str
    measured_s: float
    training: Training
    devices: Devices
    plan: Plan
    flags: tuple[str, ...]
    open_knobs: tuple[str, ...]
    refused: str
    cells: dict[str, str]

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two rows repeats of one configuration."""
        return (self.source_id, self.stack, self.training, self.devices, self.plan, self.open_knobs)

    @property
    def release(self) -> str:
        """The software release that the row's notes name, empty where they name none."""
        found = re.search(r"\brelease (\d[\d.]*\d)", self.cells["notes"])
        return found[1] if found else ""

    @property
    def workload(self) -> tuple[object, ...]:
        """What two rows share when only their plan (or accelerator) differs."""
        t = self.training
        return (
            self.source_id,
            self.stack,
            t.model_entry.name,
            t.seq_len,
            t.global_batch,
            t.precision,
            self.devices.n_gpus,
        )


class Refused(Exception):
    """A row that the model does not take; the text says why."""


def _number(cells: dict[str, str], name: str, default: float | None = None) -> float:
    text = cells[name].strip()
    if text in ("", "nan"):
        if default is None:
            raise Refused(f"{name} is blank")
        return default
    return float(text)


def _whole(cells: dict[str, str], name: str, default: int | None = None) -> int:
    return int(_number(cells, name, None if default is None else float(default)))


def inter_bytes_per_s(text: str, gpus_per_node: int) -> float | None:
    """All NICs of a node (or NVLink domain), per direction, from a published description; None where it says
    nothing."""
    per_tray = "per tray" in text
    found = re.search(r"(\d+)x (EDR|HDR|NDR|XDR)", text)
    if found:
        node = int(found[1]) * _LANE_BYTES_PER_S[found[2]]
        return node * gpus_per_node / _TRAY_GPUS if per_tray else node
    found = re.search(r"(\d+) ?Gbps/GPU", text)
    if found:
        return int(found[1]) * 1e9 / 8 * gpus_per_node
    found = re.search(r"(\d+)x\D*(\d+) ?Gbps", text)
    if found:
        return int(found[1]) * int(found[2]) * 1e9 / 8
    found = re.search(r"(\d+) ?Gbps/node", text)
    return int(found[1]) * 1e9 / 8 if found else None


def _kind(cells: dict[str, str]) -> str:
    if "+" in cells["gpu_type"]:
        return "mixed"
    family = cells["model_family"]
    if family == "CNN":
        return "cnn"
    hybrid = family.startswith(("Nemotron", "DeepSeekV4"))
    return "moe" if hybrid or family == "MoE" or cells["n_experts"].strip() not in ("", "nan") else "dense"


def _catalog_model(cells: dict[str, str]) -> Model | None:
    name = re.sub(r"[ _]", "-", cells["model"].strip().lower())
    try:
        return catalog.model(name)
    except ScenarioError:
        return None


def _model(cells: dict[str, str], kind: str) -> Model:
    """The row's model: its dimensions, with what the row does not say (head size, gating) from the catalog or its
    family."""
    known = _catalog_model(cells)
    if kind == "cnn":
        if known is None or known.kind != "convolution":
            raise Refused(f"model {cells['model']!r} is not in the catalog")
        return known
    if cells["layers"].strip() in ("", "nan"):
        if known is None:
            raise Refused("no layers and no catalog model")
        return known
    heads, hidden = _whole(cells, "heads"), _whole(cells, "hidden")
    changes = {
        "layers": _whole(cells, "layers"),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": _whole(cells, "kv_heads", heads),
        "ffn_hidden": _whole(cells, "ffn_hidden", 4 * hidden),
        "vocab": _whole(cells, "vocab", 50257),
    }
    if known is not None:
        head_dim = known.head_dim if known.heads * known.head_dim != known.hidden else hidden // heads
        if known.n_experts:
            changes.update(n_experts=_whole(cells, "n_experts"), topk=_whole(cells, "topk"))
        return replace(known, head_dim=head_dim, **changes)  # type: ignore[arg-type]
    base = catalog.model("llama3-8b" if cells["model_family"] in _GATED_FAMILIES else "gpt2-small")
    if cells["model_family"] == "BERT":
        base = catalog.model("bert-large")
    if kind == "moe":
        changes.update(n_experts=_whole(cells, "n_experts"), topk=_whole(cells, "topk"))
    return replace(base, name=cells["model"].replace(" ", "-"), aliases=(), head_dim=hidden // heads, **changes)  # type: ignore[arg-type]


def _precision(label: str, accelerator: Accelerator) -> Precision:
    """The label's precision. `fp32?` (unstated matrix mode) is tf32 where the GPU has it: those rows exceed the fp32
    peak."""
    text = label.strip().lower()
    if text == "fp32?":
        return Precision.TF32 if accelerator.peak_tf32_flops > accelerator.peak_fp32_flops else Precision.FP32
    if text in _LABELS:
        return _LABELS[text]
    try:
        return precision_of(text)
    except ScenarioError as error:
        raise Refused(str(error)) from error


def _devices(cells: dict[str, str], flags: list[str]) -> Devices:
    try:
        accelerator = catalog.accelerator(cells["gpu_type"].split("+")[0])
    except ScenarioError as error:
        raise Refused(f"unknown accelerator {cells['gpu_type']!r}") from error
    n_gpus, per_node = _whole(cells, "n_gpus"), _whole(cells, "gpus_per_node", 8)
    inter = inter_bytes_per_s(cells["inter_link"], per_node)
    if inter is None:
        inter = _DEFAULT_INTER_BYTES_PER_S
        if n_gpus > per_node:
            flags.append("link between nodes assumed")
    stated = re.search(r"(\d+) ?GB/s/dir", cells["intra_link"])
    intra = int(stated[1]) * 1e9 if stated else None
    link = replace(catalog.link("IB-HDR-4x"), name="stated", bytes_per_s=inter)
    return Devices(accelerator.name, n_gpus, per_node, link, intra_bytes_per_s=intra)


def _plan(cells: dict[str, str], n_gpus: int) -> tuple[Plan, tuple[str, ...]]:
    """The stated plan, and the knobs that the row leaves open."""
    tp, pp, cp = _whole(cells, "tp"), _whole(cells, "pp", 1), _whole(cells, "cp", 1)
    open_knobs = [name for name in ("recompute", "micro_batch") if cells[name].strip() in ("", "nan")]
    virtual = _whole(cells, "virtual_stages", 0)
    if virtual == 0 and pp > 1:
        open_knobs.append("virtual_stages")
    zero = _whole(cells, "zero_stage", 0)
    labels = {"": Recompute.NONE, "none": Recompute.NONE, "selective": Recompute.SELECTIVE, "full": Recompute.FULL}
    recompute = labels.get(cells["recompute"].strip().replace("nan", ""))
    if recompute is None:
        raise Refused(f"unknown recompute {cells['recompute']!r}")
    virtual = max(1, virtual) if pp > 1 else 1
    plan = Plan(
        dp=_whole(cells, "dp", n_gpus // max(1, tp * pp * cp)),
        tp=tp,
        pp=pp,
        cp=cp,
        ep=_whole(cells, "ep", 1),
        micro_batch=_whole(cells, "micro_batch", 1),
        virtual_stages=virtual,
        zero=1 if zero >= 2 and pp > 1 else zero,
        recompute=recompute,
        seq_parallel=_number(cells, "seq_parallel", 0.0) > 0,
        schedule=Schedule.INTERLEAVED if virtual > 1 else Schedule.ONE_F_ONE_B,
    )
    return plan, tuple(open_knobs)


def _stack(cells: dict[str, str], named: dict[str, str], flags: list[str]) -> tuple[str, float]:
    """(stack, real tokens per padded token) of a row: named by the caller, by the catalog's rules, or a family's
    default."""
    if cells["source_id"] in named:
        return named[cells["source_id"]], 1.0
    text = f"{cells['notes']} {cells.get('source', '')}"
    for rule in run_stacks():
        fits = rule.source_id == cells["source_id"] and rule.contains in text
        if fits and rule.seq_len in (0, _whole(cells, "seq_len", 0)):
            return rule.stack, rule.token_share
    flags.append("stack unknown: default of its family")
    if _whole(cells, "zero_stage", 0) == 3 and _whole(cells, "tp", 1) == 1:
        return "fsdp", 1.0
    old = cells["gpu_type"].startswith("V100") or (
        cells["precision"] == "fp16" and cells["gpu_type"].startswith("A100")
    )
    return ("megatron-2021" if old else "default"), 1.0


def read_run(cells: dict[str, str], named: dict[str, str]) -> Run:
    """One row as a Run; what cannot be taken keeps its reason in `refused`."""
    flags: list[str] = []
    kind = _kind(cells)
    nothing = Training("gpt2-small", 1), Devices("A100-SXM-80", 1), Plan()
    stack, token_share = "default", 1.0
    try:
        stack, token_share = _stack(cells, named, flags)
        seq_len = round(_number(cells, "seq_len", 0 if kind == "cnn" else None) * token_share)
        if token_share != 1.0:
            flags.append(f"{token_share:g} real tokens per padded token")
        devices = _devices(cells, flags)
        precision = _precision(cells["precision"], devices.accelerator_entry)
        training = Training(_model(cells, kind), _whole(cells, "global_batch"), seq_len, precision)
        plan, open_knobs = _plan(cells, devices.n_gpus)
        flags += [f"{name} open" for name in open_knobs]
        parts, refused = (training, devices, plan), ""
    except (Refused, HetenvError, ValueError) as error:
        parts, refused, open_knobs = nothing, str(error), ()
    measured = float(cells["measured_iter_s"] or "nan")
    return Run(
        cells["row_id"], cells["source_id"], kind, stack, measured, *parts, tuple(flags), open_knobs, refused, cells
    )


def read_runs(path: Path, named: dict[str, str] | None = None) -> list[Run]:
    """Rows of quality A and B that state a time. Raises TraceError where the file has not the form."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise TraceError(f"{path}: not a table of training runs, columns missing: {', '.join(missing)}")
            rows = [dict(row) for row in reader]
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: cannot be read: {error}") from error
    usable = [row for row in rows if row["quality"] != "C" and row["measured_iter_s"].strip() not in ("", "nan")]
    return [read_run(row, named or {}) for row in usable]


def by_source(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Runs grouped by source, in file order."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.source_id, []).append(run)
    return groups

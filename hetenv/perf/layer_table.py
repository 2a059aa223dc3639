"""Measured layer times and link rates as tables: they override the operators where they exist (form: published layer
profiles)."""

import csv
from dataclasses import dataclass
from pathlib import Path

from hetenv import catalog
from hetenv.errors import PlanError, ScenarioError, TraceError, unknown


@dataclass(frozen=True)
class LayerTimes:
    """Seconds of one layer for one micro-batch on one tensor-parallel group; update_s: optimizer step of the layer."""

    forward_s: float
    backward_s: float
    update_s: float


Key = tuple[str, str, int, int, str]
"""(model, accelerator, micro_batch, tp, layer kind)."""

KINDS = {"transformer_mean": "layer", "embedding": "embedding", "head": "head"}


def _model_name(text: str) -> str:
    try:
        return catalog.model(text).name
    except ScenarioError:
        return text.lower()


@dataclass(frozen=True)
class LayerTable:
    """Layer times by (model, accelerator, micro_batch, tp, kind)."""

    times: dict[Key, LayerTimes]

    def find(self, model: str, accelerator: str, micro_batch: int, tp: int, kind: str) -> LayerTimes:
        """The entry, or a PlanError that says what the table holds."""
        key = (_model_name(model), catalog.accelerator(accelerator).name, micro_batch, tp, kind)
        found = self.times.get(key)
        if found is None:
            held = {f"{k[0]}/{k[1]}/b{k[2]}/tp{k[3]}" for k in self.times if k[:2] == key[:2]}
            raise PlanError(unknown("layer profile", f"{key[0]}/{key[1]}/b{micro_batch}/tp{tp}", held))
        return found

    def stage_s(
        self, model: str, accelerator: str, micro_batch: int, tp: int, n_layers: int, first: bool, last: bool
    ) -> LayerTimes:
        """A stage of `n_layers` transformer layers, with the embedding if `first` and the head if `last`."""
        parts = [(self.find(model, accelerator, micro_batch, tp, "layer"), n_layers)]
        parts += [(self.find(model, accelerator, micro_batch, tp, "embedding"), 1)] if first else []
        parts += [(self.find(model, accelerator, micro_batch, tp, "head"), 1)] if last else []
        return LayerTimes(
            sum(times.forward_s * n for times, n in parts),
            sum(times.backward_s * n for times, n in parts),
            sum(times.update_s * n for times, n in parts),
        )


def read_layer_table(path: Path) -> LayerTable:
    """A file with columns model, gpu, micro_batch, tp, layer_kind, fwd_s, bwd_s, update_s."""
    times: dict[Key, LayerTimes] = {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                name = catalog.accelerator(row["gpu"]).name
                key = (
                    _model_name(row["model"]),
                    name,
                    int(row["micro_batch"]),
                    int(row["tp"]),
                    KINDS[row["layer_kind"]],
                )
                times[key] = LayerTimes(float(row["fwd_s"]), float(row["bwd_s"]), float(row["update_s"]))
    except (OSError, KeyError, ValueError) as error:
        raise TraceError(f"{path}: not a table of layer profiles: {error}") from error
    return LayerTable(times)


def read_node_rates(path: Path) -> dict[tuple[str, int], float]:
    """Largest measured bytes/s between nodes by (accelerator, GPUs per node): columns scope, gpu_vm, gpus_per_vm,
    peak_GBps."""
    rates: dict[tuple[str, int], float] = {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["scope"] == "inter":
                    key = (catalog.accelerator(row["gpu_vm"]).name, int(row["gpus_per_vm"]))
                    rates[key] = float(row["peak_GBps"]) * 1e9
    except (OSError, KeyError, ValueError) as error:
        raise TraceError(f"{path}: not a table of measured links: {error}") from error
    return rates

"""Predicts measured runs over mixed GPUs from layer profiles and link rates that lie beside the runs.

Rules: a tensor-parallel group is one node. Of each border the downstream stage waits for the activation to come in and
blocks while its gradient goes out, both over the slower NIC (chosen on the seven public rows). The gradient ring
carries the bytes of all tensor ranks over each node's one NIC, at the slowest member's rate. Replicas take equal
shares; the fast ones wait for the slow.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hetenv import catalog
from hetenv.errors import HetenvError, PlanError
from hetenv.perf.comm import ring_all_reduce_s
from hetenv.perf.layer_table import LayerTable, read_layer_table, read_node_rates
from hetenv.perf.runs import Run
from hetenv.perf.schedule import makespan_s

_ELEMENT_BYTES = 4


@dataclass(frozen=True)
class MixedLayout:
    """types[stage][replica]: accelerator names; layers[stage]: transformer layers, with embedding and head counted
    in."""

    types: tuple[tuple[str, ...], ...]
    layers: tuple[int, ...]


def layout_of(run: Run) -> MixedLayout:
    """The layout stated in a row's stage_gpu_types and layers_per_stage."""
    try:
        layers = tuple(int(n) for n in json.loads(run.cells["layers_per_stage"]))
        stated = run.cells["stage_gpu_types"].strip()
        alike = ((run.devices.accelerator_entry.name,) * run.plan.dp,) * len(layers)
        types = tuple(tuple(stage) for stage in json.loads(stated)) if stated not in ("", "nan") else alike
    except (KeyError, ValueError) as error:
        raise PlanError(f"{run.row_id}: stage_gpu_types or layers_per_stage cannot be read: {error}") from error
    if len(types) != len(layers) or sum(layers) != run.training.model_entry.layers + 2:
        raise PlanError(f"{run.row_id}: stages {layers} do not hold the model's layers, embedding and head")
    return MixedLayout(types, layers)


def step_s(run: Run, layout: MixedLayout, table: LayerTable, rates: dict[tuple[str, int], float]) -> float:
    """Seconds of one step: the slowest replica's pipeline, then the slowest stage's gradient ring, then the update."""
    model, plan = run.training.model_entry, run.plan
    n_stages, n_replicas = len(layout.types), len(layout.types[0])
    n_micro = run.training.global_batch // (n_replicas * plan.micro_batch)
    sent = plan.micro_batch * run.training.tokens_per_sample * model.hidden * _ELEMENT_BYTES
    pipelines, update = [], 0.0
    for replica in range(n_replicas):
        names = [catalog.accelerator(layout.types[stage][replica]).name for stage in range(n_stages)]
        forward, backward = np.zeros(n_stages), np.zeros(n_stages)
        for stage, name in enumerate(names):
            first, last = stage == 0, stage == n_stages - 1
            n_layers = layout.layers[stage] - first - last
            times = table.stage_s(model.name, name, plan.micro_batch, plan.tp, n_layers, first, last)
            forward[stage], backward[stage] = times.forward_s, times.backward_s
            update = max(update, times.update_s)
        for stage in range(n_stages - 1):
            wire = sent / min(rates[names[stage], plan.tp], rates[names[stage + 1], plan.tp])
            forward[stage + 1] += wire
            backward[stage + 1] += wire
        pipelines.append(makespan_s(forward, backward, np.zeros(n_stages), n_micro))
    layer_params = model.shared_layer_params
    rings = []
    for stage, members in enumerate(layout.types):
        first, last = stage == 0, stage == n_stages - 1
        n_params = (layout.layers[stage] - first - last) * layer_params
        n_params += model.embedding_params * first + model.vocab * model.hidden * last
        slowest = min(rates[catalog.accelerator(name).name, plan.tp] for name in members)
        rings.append(ring_all_reduce_s(n_params * _ELEMENT_BYTES, slowest, len(members), 0.0))
    return max(pipelines) + max(rings) + update


def _beside(path: Path, name: str) -> Path | None:
    """A companion table next to the runs, else in the shared measurements."""
    shared = Path(os.environ.get("HETENV_SHARED", Path(__file__).parents[2].parent / "shared"))
    for folder in (path.parent, shared / "data" / "measured"):
        if (folder / name).exists():
            return folder / name
    return None


def profiled(run: Run) -> bool:
    """Whether a row states its layers per stage, as runs do that were planned from layer profiles."""
    return not run.refused and run.cells.get("layers_per_stage", "").strip() not in ("", "nan")


def predict_mixed(path: Path, runs: Sequence[Run]) -> dict[str, tuple[float, str]]:
    """By row_id: (predicted seconds, why refused)."""
    if not runs:
        return {}
    tables = _beside(path, "layer_profiles.csv"), _beside(path, "network_measured.csv")
    if tables[0] is None or tables[1] is None:
        return {
            run.row_id: (float("nan"), "no layer_profiles.csv and network_measured.csv beside the runs") for run in runs
        }
    table, rates = read_layer_table(tables[0]), read_node_rates(tables[1])
    found: dict[str, tuple[float, str]] = {}
    for run in runs:
        try:
            if run.refused:
                raise PlanError(run.refused)
            found[run.row_id] = step_s(run, layout_of(run), table, rates), ""
        except (HetenvError, KeyError) as error:
            found[run.row_id] = float("nan"), str(error)
    return found

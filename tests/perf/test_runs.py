"""Measured runs: reading, mapping of labels, fit, calibration and validation on the published tables."""

import csv
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hetenv import perf
from hetenv.catalog import Stack
from hetenv.errors import TraceError
from hetenv.perf import fit
from hetenv.perf.calibrate import calibrate
from hetenv.perf.constants import Parameter, parameters_for
from hetenv.perf.fit_stacks import fit_stacks, fitted_runs, left_out_values
from hetenv.perf.rows import Precision, Reason, Recompute
from hetenv.perf.runs import COLUMNS, Run, inter_bytes_per_s, read_run, read_runs
from hetenv.perf.scores import accelerator_errors, best_accelerator_errors, ranks, score, spearman
from hetenv.perf.settle import settled
from hetenv.perf.validate import as_shipped, validate

SHARED = Path(os.environ.get("HETENV_SHARED", Path(__file__).parents[2].parent / "shared"))
RUNS = SHARED / "data" / "measured" / "training_runs.csv"
needs_runs = pytest.mark.skipif(not RUNS.exists(), reason="measured runs not there")

CELLS = dict.fromkeys(COLUMNS, "") | {
    "row_id": "x-1",
    "source_id": "x",
    "model_family": "LLaMA",
    "model": "llama3.1-8b",
    "layers": "32",
    "hidden": "4096",
    "heads": "32",
    "kv_heads": "8",
    "ffn_hidden": "14336",
    "vocab": "128256",
    "seq_len": "8192",
    "gpu_type": "H100-SXM-80",
    "n_gpus": "8",
    "gpus_per_node": "8",
    "tp": "1",
    "pp": "1",
    "dp": "8",
    "cp": "1",
    "ep": "1",
    "zero_stage": "3",
    "micro_batch": "1",
    "global_batch": "64",
    "precision": "bf16",
    "recompute": "full",
    "measured_iter_s": "6.0",
    "quality": "A",
}


def test_a_plain_row_is_read_as_what_it_says() -> None:
    run = read_run(CELLS, {})
    assert run.refused == "" and run.kind == "dense"
    assert run.plan.dp == 8 and run.plan.zero == 3
    assert run.training.model_entry.n_params == 8_030_261_248
    assert "stack unknown" in run.flags[0] and run.stack == "fsdp"


@pytest.mark.parametrize(
    ("label", "expected"),
    [("amp", Precision.FP16), ("mxfp8", Precision.MXFP8), ("nvfp4", Precision.NVFP4), ("tf32", Precision.TF32)],
)
def test_precision_labels_are_mapped_explicitly(label: str, expected: Precision) -> None:
    assert read_run(CELLS | {"precision": label}, {}).training.precision == expected


@pytest.mark.parametrize("changes", [{"precision": "int8"}, {"gpu_type": "H1000"}, {"tp": ""}, {"recompute": "some"}])
def test_what_is_unknown_is_refused_with_a_reason_never_guessed(changes: dict[str, str]) -> None:
    run = read_run(CELLS | changes, {})
    assert run.refused and any(word in run.refused for word in ("unknown", "blank"))


@pytest.mark.parametrize(
    ("text", "per_node", "gbytes"),
    [
        ("8x NDR IB 400Gbps/node", 8, 400),
        ("4x HDR IB 800Gbps/node", 8, 100),
        ("4x NDR IB per tray", 72, 3600),
        ("RDMA 400Gbps/GPU", 8, 400),
        ("Slingshot-11 (4x200Gbps/node)", 4, 100),
        ("RoCE 1600Gbps/node", 8, 200),
        ("campus", 8, None),
    ],
)
def test_link_descriptions(text: str, per_node: int, gbytes: float | None) -> None:
    assert inter_bytes_per_s(text, per_node) == (None if gbytes is None else gbytes * 1e9)


def test_a_file_of_another_form_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(TraceError, match="columns missing: row_id"):
        read_runs(path)


def test_a_fit_finds_constants_that_made_the_data() -> None:
    runs = []
    for i, seq in enumerate((1024, 2048, 4096, 8192, 16384)):
        for batch in (64, 128):
            cells = CELLS | {"row_id": f"x-{i}-{batch}", "seq_len": str(seq), "global_batch": str(batch)}
            runs.append(read_run(cells, {}))
    table = fit.tabulate(runs)
    truth = {("stack:fsdp", "gemm"): -0.2, ("stack:fsdp", "attention"): 0.4}
    made = fit.predicted_s(table, truth)
    table = replace(table, log_measured=np.log(made))
    wanted = [Parameter("stack:fsdp", "gemm", 0.0, 1.0), Parameter("stack:fsdp", "attention", 0.0, 1.0)]
    found = fit.fit(table, wanted, n_steps=30)
    for key, value in truth.items():
        assert found[key] == pytest.approx(value, abs=0.03)


def test_scores() -> None:
    assert list(ranks(np.array([3.0, 1.0, 3.0]))) == [1.5, 0.0, 1.5]
    assert spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 25.0])) == pytest.approx(1.0)
    found = score(np.array([1.1, 0.9]), np.array([1.0, 1.0]))
    assert found["mape"] == pytest.approx(0.1) and found["n"] == 2


def test_ratios_between_accelerators_compare_one_plan_and_release() -> None:
    def run(gpu: str, seconds: str, notes: str = "", micro_batch: str = "1") -> Run:
        changes = {"gpu_type": gpu, "measured_iter_s": seconds, "notes": notes, "micro_batch": micro_batch}
        return read_run(CELLS | changes, {})

    runs = [
        run("H100-SXM-80", "6.0", "release 25.11"),
        run("A100-SXM-80", "12.0", "as before, release 25.11; slow"),
        run("A100-SXM-80", "9.0", "release 26.02"),
        run("A100-SXM-80", "8.0", "release 25.11", micro_batch="2"),
    ]
    assert [one.release for one in runs] == ["25.11", "25.11", "26.02", "25.11"]
    predicted = np.array([6.0, 15.0, 9.0, 8.0])
    assert accelerator_errors(runs, predicted) == pytest.approx([math.log(1.25)])
    assert accelerator_errors(runs[1::-1], predicted[1::-1]) == pytest.approx([math.log(1.25)])
    assert best_accelerator_errors(runs, predicted) == pytest.approx([0.0])


@needs_runs
def test_every_source_of_the_public_table_has_left_one_out_constants() -> None:
    assert {run.source_id for run in fitted_runs(RUNS)} <= set(left_out_values())


@needs_runs
def test_shipped_dense_predictions_without_their_source_are_within_the_stated_errors() -> None:
    runs = [run for run in fitted_runs(RUNS) if run.kind == "dense"]
    error = np.abs(as_shipped(runs) / np.array([run.measured_s for run in runs]) - 1.0)
    assert error.mean() <= 0.11 and np.median(error) <= 0.075


@needs_runs
def test_expert_models_without_their_model_are_within_the_stated_errors() -> None:
    runs = [run for run in fitted_runs(RUNS) if run.kind == "moe"]
    error = np.abs(as_shipped(runs) / np.array([run.measured_s for run in runs]) - 1.0)
    assert error.mean() <= 0.20 and np.median(error) <= 0.14


@needs_runs
def test_validation_gives_the_three_scores_and_a_row_per_measurement(tmp_path: Path) -> None:
    found = validate(RUNS, out=tmp_path, n_draws=1)
    assert set(found) == {"as_shipped", "calibrated", "ratio"}
    for part in ("as_shipped", "calibrated"):
        assert {"dense", "moe", "cnn", "mixed", "by_source"} <= set(found[part])  # type: ignore[call-overload]
    shipped = found["as_shipped"]
    assert shipped["mixed"]["mape"] <= 0.08 and shipped["mixed"]["n"] == 7  # type: ignore[index]
    assert all(shipped[kind]["n_refused"] == 0 for kind in ("dense", "moe", "cnn", "mixed"))  # type: ignore[index]
    ratio = found["ratio"]
    assert ratio["plan_regret_median"] <= 1.03 and ratio["plan_regret_p90"] <= 1.15  # type: ignore[index]
    with (tmp_path / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(read_runs(RUNS))
    assert all(row["refused"] or float(row["predicted_iter_s"]) > 0 for row in rows)


@needs_runs
def test_a_file_of_a_new_source_is_scored_with_a_named_stack(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(CELLS))
        writer.writeheader()
        writer.writerow(CELLS)
        writer.writerow(CELLS | {"row_id": "x-2", "gpu_type": "H1000"})
    found = validate(path, stacks={"x": "torchtitan"}, n_draws=1)
    dense = found["as_shipped"]["dense"]  # type: ignore[index]
    assert dense["n"] == 1 and dense["n_refused"] == 1 and math.isfinite(dense["mape"])


@needs_runs
def test_calibration_improves_its_source_with_at_most_eight_constants() -> None:
    runs = [run for run in fitted_runs(RUNS) if run.source_id == "bloom_prequel"]
    before = np.abs(as_shipped(runs) / np.array([run.measured_s for run in runs]) - 1.0).mean()
    found = calibrate(RUNS, "bloom_prequel", runs)
    assert found["mape"] < before and 1 <= len(found["constants"]) <= 8  # type: ignore[operator, arg-type]
    assert found["stacks"][0]["name"].startswith("bloom_prequel-")  # type: ignore[index]


@needs_runs
@pytest.mark.parametrize("source", ["bloom_prequel", "torchtitan", "nv_dle_resnet"])
def test_a_calibrated_stack_carries_its_fit_into_the_catalog(source: str) -> None:
    runs = [run for run in fitted_runs(RUNS) if run.source_id == source]
    found = calibrate(RUNS, source, runs)
    rows = {row["name"]: Stack(**row) for row in found["stacks"]}  # type: ignore[attr-defined]
    errors = []
    for run in runs:
        training = replace(run.training, stack=rows[f"{source}-{run.stack}"])
        seconds = perf.estimate(training, run.devices, run.plan).iter_s
        errors += [abs(seconds / run.measured_s - 1.0)] if seconds < math.inf else []
    assert len(errors) > 0.8 * len(runs)
    assert np.mean(errors) < found["mape"] + 0.03  # type: ignore[operator]


@needs_runs
@pytest.mark.slow
def test_fit_stacks_writes_its_tables(tmp_path: Path) -> None:
    found = fit_stacks(RUNS, tmp_path, leave_out=False)
    assert found["in_sample_mape"] < 0.08  # type: ignore[operator]
    assert {"stacks.csv", "efficiencies.csv"} <= {path.name for path in tmp_path.iterdir()}


MEMORY_EXCEPTIONS = {"bigscience_v100 tr3m-1B3 V100-SXM-16": 1, "nemo_bridge llama3-70b GB300-288": 1}
"""Rows that ran but that the memory model calls too large: 1.3B parameters without ZeRO (21 GB of states) on 16 GB, and 70B
with ZeRO-1 (282 GB of weights and gradients) on 288 GB; both tables must leave a sharding unsaid."""


@needs_runs
def test_no_measured_row_that_ran_is_called_out_of_memory() -> None:
    found: dict[str, int] = {}
    for run in (settled(run) for run in read_runs(RUNS)):
        if run.refused or run.kind == "mixed":
            continue
        modes = list(Recompute) if "recompute" in run.open_knobs else [run.plan.recompute]
        plans = [replace(run.plan, recompute=mode) for mode in modes]
        if all(perf.estimate(run.training, run.devices, plan).reason_code == Reason.MEMORY for plan in plans):
            key = f"{run.source_id} {run.training.model_entry.name} {run.devices.accelerator_entry.name}"
            found[key] = found.get(key, 0) + 1
    assert found == MEMORY_EXCEPTIONS


def test_parameters_have_one_entry_per_label_and_constant() -> None:
    found = parameters_for({"global", "stack:x", "family:y", "conv:volta/fp32", "flag:sdpa"})
    keys = [(p.label, p.constant) for p in found]
    assert len(keys) == len(set(keys))

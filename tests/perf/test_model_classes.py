"""Recommendation models, LSTM layers and spatially cut convolutions: SYSTEMS.md G2 and G3."""

import csv
import os
from dataclasses import replace
from pathlib import Path

import pytest

from hetenv import catalog, perf
from hetenv.errors import ScenarioError
from hetenv.perf import Devices, LinkLevel, Plan, Training
from hetenv.perf.recommendation import Recommendation, recommendation_step
from hetenv.perf.recurrent import LstmLayer
from hetenv.perf.rows import Schedule
from hetenv.perf.traffic import halo_bytes

SHARED = Path(os.environ.get("HETENV_SHARED", Path(__file__).parents[2].parent / "shared"))
GNMT = SHARED / "data" / "measured" / "pipeline_profiles" / "gnmt_large.csv"

DLRM = Recommendation(n_dense_layers=20, dense_width=3994, n_tables=1000, n_rows=8_430_000, dim=94, pooling=15)
"""The production model of Mudigere et al. 2022 and MAD-Max: 793e9 parameters, 638 MFLOP a sample; 1000 tables from memory."""
ZION = Devices("A100-SXM-40", 128, 8, inter_link="IB-HDR-8x")
BATCH = 1024 * 128
"""Samples of a step: our choice, as is the exchange at 16 bit."""


def test_production_model_has_its_published_size_and_flops() -> None:
    assert DLRM.n_params == pytest.approx(793e9, rel=0.01)
    assert DLRM.forward_flops == pytest.approx(638e6, rel=0.01)


def test_madmax_exposed_share_of_a_recommendation_model_on_128_gpus() -> None:
    found = recommendation_step(DLRM, ZION, BATCH)
    assert 0.14 <= found.exposed_share <= 0.32
    twice = recommendation_step(DLRM, replace(ZION, inter_bytes_per_s=400e9), BATCH)
    assert twice.exposed_share < found.exposed_share and twice.iter_s < found.iter_s
    assert found.iter_s == pytest.approx(found.dense_s + found.lookup_s + found.exposed_s)


def test_one_gpu_exchanges_nothing_and_a_dead_link_never_ends() -> None:
    alone = recommendation_step(replace(DLRM, n_rows=100), ZION.with_gpus(1), 1024)
    assert alone.all_to_all_s == alone.all_reduce_s == alone.exposed_s == 0.0
    assert recommendation_step(DLRM, replace(ZION, inter_bytes_per_s=0.0), BATCH).iter_s == float("inf")


@pytest.mark.skipif(not GNMT.exists(), reason="pipeline profiles not there")
def test_lstm_layers_of_gnmt_are_within_three_tenths_of_their_profile() -> None:
    """Batch 64, 50 steps, 32 bit, from the sizes of its activations; the GPU is not stated, V100 as in PipeDream's paper."""
    devices = Devices("V100-SXM-16", 1)
    with GNMT.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["operator"].startswith("LSTM(")]
    assert len(rows) >= 8
    for row in rows:
        inputs, hidden = (int(part) for part in row["operator"].removeprefix("LSTM(").rstrip(")").split(","))
        layer = LstmLayer(inputs, hidden)
        assert 4 * layer.n_params == int(float(row["parameter_bytes"]))
        assert layer.forward_s(devices, 64, 50) == pytest.approx(float(row["forward_ms"]) / 1e3, rel=0.3)


def test_lstm_time_grows_with_steps_and_not_with_bandwidth_of_the_network() -> None:
    layer, devices = LstmLayer(1024, 1024), Devices("A100", 1)
    assert layer.forward_s(devices, 1, 200) == pytest.approx(2 * layer.forward_s(devices, 1, 100), rel=0.05)
    assert layer.train_s(devices, 64, 50, "bf16") < layer.train_s(devices, 64, 50, "fp32")
    with pytest.raises(ScenarioError, match="V100-SXM-16 does not support bf16"):
        layer.forward_s(Devices("V100-SXM-16", 1), 64, 50, "bf16")


def test_strips_of_an_image_exchange_their_border_rows() -> None:
    assert halo_bytes(224, 64, 3, 4) == 2 * 3 * 1 * 224 * 64 * 2
    assert halo_bytes(224, 64, 1, 4) == halo_bytes(224, 64, 3, 1) == 0


@pytest.mark.parametrize(("name", "total", "active"), [("nano", 31.6e9, 3.6e9), ("super", 120.6e9, 12.7e9), ("ultra", 550e9, 55e9)])
def test_hybrids_have_the_parameters_of_their_reports(name: str, total: float, active: float) -> None:
    model = catalog.model(f"nemotron-3-{name}")
    assert model.n_params == pytest.approx(total, rel=0.01)
    assert model.n_active_params == pytest.approx(active, rel=0.08), "further heads, and attention spread over all layers"


def test_latent_experts_exchange_and_hold_a_quarter() -> None:
    latent = catalog.model("nemotron-3-super")
    wide = replace(latent, expert_latent_hidden=0)
    devices, plan = Devices("B200", 64, 8, "IB-NDR-8x"), Plan(dp=64, ep=64)
    one, other = (perf.estimate(Training(model, 512, precision="fp8"), devices, plan) for model in (latent, wide))
    assert wide.expert_params == 4 * latent.expert_params
    assert other.comm_s[LinkLevel.INTRA] == pytest.approx(4 * one.comm_s[LinkLevel.INTRA], rel=0.15), "gradients hardly count"


def test_exchanges_of_experts_hide_only_where_stages_are_interleaved() -> None:
    stack = replace(catalog.stack("default"), expert_interleaved=0.25)
    devices = Devices("H100", 64)
    seconds = {}
    for share in (1.0, 0.25):
        for stages in (1, 2):
            training = Training("qwen3-30b-a3b", 512, stack=replace(stack, expert_interleaved=share))
            plan = Plan(dp=32, pp=2, ep=8, virtual_stages=stages, schedule=Schedule.INTERLEAVED if stages > 1 else Schedule.ONE_F_ONE_B)
            seconds[share, stages] = perf.estimate(training, devices, plan).comm_s[LinkLevel.INTRA]
    assert seconds[0.25, 1] == seconds[1.0, 1]
    assert seconds[0.25, 2] < 0.5 * seconds[1.0, 2]

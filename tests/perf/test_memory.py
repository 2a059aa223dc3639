"""Activation formulas to the byte, stage memory, prices."""

from dataclasses import replace

import numpy as np
import pytest

from hetenv import catalog, perf
from hetenv.perf import Devices, Plan, Recompute, Schedule, Training
from hetenv.perf.memory import layer_activation_bytes, micro_batches_in_flight
from hetenv.perf.report import price, stage_layers, stage_memory_bytes
from hetenv.perf.training import setting_row

S, B, H, A = 2048, 4, 12288, 96


@pytest.mark.parametrize("tp", [1, 8])
@pytest.mark.parametrize("sp", [False, True])
@pytest.mark.parametrize("recompute", list(Recompute))
def test_activations_of_a_gpt_layer_are_those_of_korthikanti_to_the_byte(
    tp: int, sp: bool, recompute: Recompute
) -> None:
    """arXiv 2205.05198, table 2: sbh(34 + 5as/h), its tensor- and sequence-parallel forms, 34sbh/t, 2sbh."""
    training = Training("gpt3-175b", 64, S, "fp16", "megatron-2021")
    setting = setting_row(training, Devices("A100", 8))[0]
    found = layer_activation_bytes(setting, float(S * B), tp, sp, int(recompute))
    scores = 5 * A * S / H if recompute == Recompute.NONE else 0.0
    if recompute == Recompute.FULL:
        expected = 2 * S * B * H / (tp if sp else 1)
    else:
        expected = S * B * H * (10 / (tp if sp else 1) + 24 / tp + scores / tp)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("schedule", "p", "v", "m", "held"),
    [
        (Schedule.GPIPE, 4, 1, 16, 16),
        (Schedule.ONE_F_ONE_B, 4, 1, 16, 4),
        (Schedule.ONE_F_ONE_B, 4, 1, 2, 2),
        (Schedule.INTERLEAVED, 4, 2, 16, 4 * (1 + 3 / 8)),
    ],
)
def test_micro_batches_in_flight(schedule: Schedule, p: int, v: int, m: int, held: float) -> None:
    assert micro_batches_in_flight(int(schedule), p, v, m) == pytest.approx(held)


def test_first_stage_holds_most_and_the_estimate_covers_every_stage() -> None:
    training, devices = Training("gpt3-6.7b", 64), Devices("A100", 16)
    plan = Plan(dp=2, tp=2, pp=4, zero=1, seq_parallel=True)
    stages = stage_memory_bytes(training, devices, plan)
    peak = perf.estimate(training, devices, plan).memory_bytes
    assert len(stages) == 4 and stages[0] > stages[2]
    assert max(stages) <= peak * 1.05
    assert sum(stage_layers(training, plan)) == 32


def test_price_and_energy_of_a_billion_tokens() -> None:
    training, devices = Training("llama3-8b", 64), Devices("H100", 8)
    found = perf.estimate(training, devices, Plan(dp=8, zero=3, recompute=Recompute.FULL))
    cost = price(found, [devices])
    hours = 1e9 / found.tokens_per_s / 3600
    assert cost.usd_per_gtoken == pytest.approx(hours * 8 * catalog.accelerator("H100").usd_per_gpu_h)
    assert hours * 8 * 0.4 < cost.kwh_per_gtoken < hours * 8 * 1.1
    refused = perf.estimate(training, devices, Plan(dp=4))
    assert np.isinf(price(refused, [devices]).usd_per_gtoken)


def test_grouped_queries_and_gated_ffn_change_the_activations() -> None:
    devices = Devices("H100", 8)
    llama = setting_row(Training("llama3-8b", 64), devices)[0]
    plain = replace(catalog.model("llama3-8b"), kv_heads=32)
    full = setting_row(Training(plain, 64), devices)[0]
    assert full["act_token_split"] - llama["act_token_split"] == pytest.approx(4 * 24 * 128)

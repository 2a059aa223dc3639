"""SYSTEMS.md G3: published behaviours of hybrid-parallel training, each with its figure."""

from dataclasses import replace

import pytest

from hetenv import catalog, perf
from hetenv.perf import Devices, Plan, Training
from hetenv.perf.predictors import Operators, UserFunction, rank_accelerators
from hetenv.perf.timeline import timeline
from hetenv.perf.traffic import plan_traffic, sharded_weight_share


def test_bytes_per_plan_equal_the_formulas() -> None:
    training = Training("gpt3-6.7b", 64)
    plan = Plan(dp=4, tp=4, pp=2, micro_batch=2)
    found = plan_traffic(training, plan)
    block = 2 * 2048 * 4096 * 2
    assert found.tensor_bytes == 4 * block * 16 * 8
    assert found.pipeline_bytes == 2 * block * 8
    assert found.data_bytes == pytest.approx(2 * 3 / 4 * catalog.model("gpt3-6.7b").n_params / 8 * 2)


def test_nest_throughput_of_llama2_grows_as_its_pipelines_do() -> None:
    rates = []
    for n_gpus in (64, 128, 256):
        training = Training("llama2-7b", 4096)
        result = perf.estimate(training, Devices("H100", n_gpus, inter_link="IB-NDR-8x"), Plan(dp=n_gpus // 8, pp=8))
        rates.append(result.samples_per_s)
    assert rates[1] / rates[0] == pytest.approx(1.97, rel=0.03)
    assert rates[2] / rates[0] == pytest.approx(3.84, rel=0.03)


def bert_ex_large() -> Training:
    model = replace(catalog.model("bert-large"), name="bert-exlarge", layers=48)
    return Training(model, 16, 512, "fp16", "megatron-2021")


def test_distsim_two_way_tensor_parallel_with_eight_replicas_ranks_first() -> None:
    training, devices = bert_ex_large(), Devices("A10", 16, 4, inter_link="IB-HDR-4x")
    best, worst = {}, 0.0
    for tp in (1, 2, 4, 8, 16):
        for pp in (1, 2, 4, 8, 16):
            if 16 % (tp * pp):
                continue
            dp = 16 // (tp * pp)
            plans = [Plan(dp=dp, tp=tp, pp=pp, micro_batch=b) for b in (1, 2, 4, 8, 16) if (16 // dp) % b == 0]
            times = [perf.estimate(training, devices, plan).iter_s for plan in plans]
            best[tp, pp, dp], worst = min(times), max(worst, *times)
    assert min(best, key=lambda key: best[key]) == (2, 1, 8)
    # published best over worst: 7.4; ours depends on whether the worst layout may choose its micro-batch
    assert max(best.values()) / min(best.values()) < 7.4 < worst / min(best.values())


def test_distsim_timeline_has_a_block_per_micro_batch_and_way_on_each_stage() -> None:
    trace = timeline(bert_ex_large(), Devices("A10", 16, 4, inter_link="100GbE"), Plan(dp=2, tp=2, pp=4, micro_batch=2))
    events = [event for event in trace["traceEvents"] if event["cat"] != "communication"]  # type: ignore[attr-defined]
    for stage in range(4):
        mine = [event for event in events if event["tid"] == stage]
        assert sum(event["cat"] == "forward" for event in mine) == 4
        assert sum(event["cat"] == "backward" for event in mine) == 4
        ordered = sorted((event["ts"], event["ts"] + event["dur"]) for event in mine)
        assert all(later[0] >= earlier[1] - 1e-6 for earlier, later in zip(ordered, ordered[1:]))


def test_data_parallel_is_near_linear_to_64_gpus() -> None:
    rate = {}
    for n_gpus in (4, 64):
        devices = Devices("A100-SXM-40", n_gpus, 4, inter_link="IB-HDR-4x")
        training = Training("bert-large", 64 * n_gpus, 128, "fp16")
        rate[n_gpus] = perf.estimate(training, devices, Plan(dp=n_gpus, micro_batch=64)).samples_per_s
    assert rate[64] / rate[4] > 0.85 * 16


def test_tensor_parallel_over_sixteen_gpus_communicates_about_half_the_time() -> None:
    training = Training("gpt3-1.3b", 16, precision="fp16", stack="megatron-2021")
    found = perf.estimate(training, Devices("A100-SXM-40", 16, 4, inter_link="IB-HDR-4x"), Plan(tp=16, micro_batch=16))
    assert 0.3 < found.exposed_s / found.iter_s < 0.8


def test_zero_is_within_fifteen_percent_of_ddp_at_about_half_its_memory() -> None:
    training = Training("gpt3-1.3b", 128, precision="fp16", stack="fsdp")
    devices = Devices("A100-SXM-80", 16, 8, inter_link="IB-HDR-8x")
    ddp = perf.estimate(training, devices, Plan(dp=16, micro_batch=4))
    zero = perf.estimate(training, devices, Plan(dp=16, micro_batch=4, zero=2))
    assert zero.iter_s / ddp.iter_s < 1.15
    assert 0.42 <= zero.memory_bytes / ddp.memory_bytes <= 0.66


def test_vgg16_weights_when_dense_layers_are_sharded() -> None:
    dense = 25088 * 4096 + 4096 * 4096 + 4096 * 1000 + 4096 + 4096 + 1000
    for k in (1, 2, 4, 8):
        share = sharded_weight_share(dense, catalog.model("vgg16").n_params, k)
        assert share == pytest.approx(0.11 + 0.89 / k, abs=0.005)


def test_predictors_behind_one_protocol_rank_accelerators_alike() -> None:
    training, plan = Training("gpt3-1.3b", 64, precision="fp16"), Plan(dp=8, micro_batch=1)
    devices = [Devices(name, 8) for name in ("V100-SXM-32", "A100", "H100")]
    ours = rank_accelerators(Operators(), training, devices, plan)
    user = rank_accelerators(
        UserFunction(lambda t, d, p: 1e15 / d.accelerator_entry.peak_fp16_flops), training, devices, plan
    )
    assert [name for name, _ in ours] == [name for name, _ in user] == ["H100-SXM-80", "A100-SXM-80", "V100-SXM-32"]

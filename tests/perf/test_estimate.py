"""Estimates of plans: CASES P29, the identity the simulator relies on, properties over the whole catalog."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetenv import catalog, perf
from hetenv.errors import PlanError, ScenarioError
from hetenv.perf import Devices, Plan, Reason, Recompute, Schedule, Training
from hetenv.perf.comm import ring_all_reduce_s
from hetenv.perf.memory import model_state_bytes
from hetenv.perf.pipeline import bubble_share
from hetenv.perf.plan import check_split, split_layers
from hetenv.perf.search import plan_space

A100 = Devices("A100-SXM-80", 16)
LLAMA = Training("llama3-8b", 64)


def reason(training: Training, devices: Devices, plan: Plan) -> Reason:
    return perf.estimate(training, devices, plan).reason_code


def test_p29_thirty_layers_on_four_stages_split_evenly_and_sum_to_thirty() -> None:
    assert split_layers(30, 4) == (8, 8, 7, 7)


@pytest.mark.parametrize("split", [(8, 8, 7, 8), (10, 10, 10, 0), ()])
def test_p29_custom_split_with_wrong_sum_or_empty_stage_is_refused(split: tuple[int, ...]) -> None:
    with pytest.raises(PlanError):
        check_split(30, split)


def test_p29_tp_that_does_not_divide_heads_is_illegal_with_a_reason() -> None:
    model = replace(catalog.model("gpt2-xl"), name="odd")
    result = perf.estimate(Training(model, 64), Devices("A100-SXM-80", 2), Plan(tp=2))
    assert not result.is_legal and "heads" in result.reason


def test_p29_few_kv_heads_are_replicated() -> None:
    model = replace(catalog.model("llama3-405b"), layers=2)
    assert reason(Training(model, 64, 512), A100, Plan(tp=16)) == Reason.OK


def test_p29_model_whose_kv_heads_do_not_divide_heads_is_refused() -> None:
    with pytest.raises(ScenarioError, match="kv_heads=2 must divide heads=33"):
        replace(catalog.model("llama3-8b"), heads=33, kv_heads=2)


def test_p29_dp_times_micro_batch_must_divide_the_global_batch() -> None:
    assert reason(replace(LLAMA, global_batch=60), A100, Plan(dp=16)) == Reason.BATCH
    assert reason(LLAMA, A100, Plan(dp=16, micro_batch=8)) == Reason.BATCH


@pytest.mark.parametrize("field", ["dp", "tp", "pp", "cp", "ep", "micro_batch", "virtual_stages"])
def test_p29_zero_degrees_are_an_error(field: str) -> None:
    with pytest.raises(PlanError, match=field):
        Plan(**{field: 0})


@pytest.mark.parametrize(("zero", "gbytes"), [(0, 120.0), (1, 31.41), (2, 16.64), (3, 1.875)])
def test_p29_model_states_per_zero_stage(zero: int, gbytes: float) -> None:
    assert model_state_bytes(7.5e9, zero, 64) / 1e9 == pytest.approx(gbytes, abs=0.005)


@pytest.mark.parametrize(("p", "m", "share"), [(4, 8, 0.2727), (8, 32, 0.1795), (1, 7, 0.0), (4, 1, 0.75)])
def test_p29_bubble_share(p: int, m: int, share: float) -> None:
    assert bubble_share(p, m, 1) == pytest.approx(share, abs=5e-5)


def test_p29_one_gpu_never_communicates() -> None:
    result = perf.estimate(replace(LLAMA, seq_len=512), Devices("B200", 1), Plan())
    assert result.is_legal and result.comm_s == (0.0, 0.0, 0.0) and result.iter_s == result.compute_s


def test_p29_dead_link_is_infeasible_never_nan() -> None:
    result = perf.estimate(LLAMA, replace(A100, inter_bytes_per_s=0.0), Plan(dp=16, zero=3))
    assert result.reason_code == Reason.LINK and result.iter_s == math.inf and result.samples_per_s == 0.0
    alive = perf.estimate(LLAMA, A100, Plan(dp=16, zero=3))
    assert alive.step_s(1.0, (1.0, 0.0, 1.0)) == math.inf


def test_p29_mfu_counts_only_the_causal_half_of_attention() -> None:
    causal = perf.estimate(LLAMA, A100, Plan(dp=16, zero=3, recompute=Recompute.FULL))
    both_halves = replace(catalog.model("llama3-8b"), causal=False)
    full = perf.estimate(replace(LLAMA, model=both_halves), A100, Plan(dp=16, zero=3, recompute=Recompute.FULL))
    assert causal.mfu * causal.iter_s < full.mfu * full.iter_s


def test_ring_all_reduce_of_one_gigabyte() -> None:
    assert ring_all_reduce_s(1e9, 50e9, 8, 0.0) == pytest.approx(0.035, rel=1e-12)
    assert ring_all_reduce_s(1e9, 50e9, 1, 1.0) == 0.0


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (Plan(dp=8), Reason.DEVICES),
        (Plan(pp=16, virtual_stages=4, schedule=Schedule.INTERLEAVED), Reason.LAYERS),
        (Plan(dp=4, pp=4, micro_batch=8, virtual_stages=2, schedule=Schedule.INTERLEAVED), Reason.SCHEDULE),
        (Plan(dp=4, pp=4, schedule=Schedule.INTERLEAVED), Reason.SCHEDULE),
        (Plan(dp=4, pp=4, zero=3), Reason.ZERO),
        (Plan(dp=16, ep=2), Reason.EXPERTS),
        (Plan(dp=16), Reason.MEMORY),
        (Plan(dp=16, zero=3, recompute=Recompute.FULL), Reason.OK),
    ],
)
def test_reasons(plan: Plan, expected: Reason) -> None:
    assert reason(LLAMA, A100, plan) == expected


def test_unsupported_precision_is_refused() -> None:
    assert reason(replace(LLAMA, precision="fp8"), A100, Plan(dp=16, zero=3)) == Reason.PRECISION
    with pytest.raises(ScenarioError, match="unknown precision"):
        perf.estimate(replace(LLAMA, precision="int4"), A100, Plan(dp=16))


NAMES = st.sampled_from(catalog.names("accelerators"))
MODELS = st.sampled_from(catalog.names("models"))
SIZES = st.sampled_from([1, 2, 4, 8, 16, 64])
PICKS = st.integers(0, 10**9)


def draw_case(accelerator: str, model: str, n_gpus: int, pick: int) -> tuple[Training, Devices, Plan]:
    precision = "bf16" if catalog.accelerator(accelerator).peak_bf16_flops else "fp16"
    precision = "fp32" if accelerator == "K80" else precision
    training = Training(model, 64, precision=precision)
    devices = Devices(accelerator, n_gpus)
    plans = plan_space(training, devices)
    from hetenv.perf.plan import plan_of

    return training, devices, plan_of(plans[pick % len(plans)])


@settings(max_examples=80)
@given(NAMES, MODELS, SIZES, PICKS)
def test_estimates_are_finite_and_consistent_over_the_catalog(
    accelerator: str, model: str, n_gpus: int, pick: int
) -> None:
    result = perf.estimate(*draw_case(accelerator, model, n_gpus, pick))
    if result.reason_code not in (Reason.OK, Reason.MEMORY):
        assert result.iter_s == math.inf
        return
    assert 0 < result.iter_s < math.inf and 0 < result.mfu <= 1
    exposed = 0.0
    for comm, hideable in zip(result.comm_s, result.hideable_s):
        exposed += max(0.0, comm - hideable)
    assert result.iter_s == pytest.approx(result.compute_s + exposed, rel=1e-15)
    assert result.step_s() == result.iter_s
    assert 0 < result.straggler_share <= 1 and 0 <= result.bubble_share < 1
    assert result.power_comm_w <= result.power_compute_w or result.bubble_share > 0.3
    assert n_gpus > 1 or result.comm_s == (0, 0, 0)


@settings(max_examples=60)
@given(NAMES, MODELS, SIZES, PICKS)
def test_zero_never_raises_state_memory(accelerator: str, model: str, n_gpus: int, pick: int) -> None:
    training, devices, plan = draw_case(accelerator, model, n_gpus, pick)
    plain = perf.estimate(training, devices, replace(plan, zero=0))
    for zero in (1, 2):
        sharded = perf.estimate(training, devices, replace(plan, zero=zero))
        assert sharded.reason_code == Reason.ZERO or sharded.memory_bytes <= plain.memory_bytes


def test_estimate_many_equals_single_estimates() -> None:
    plans = plan_space(LLAMA, A100)
    rows = perf.estimate_many(LLAMA, A100, plans)
    from hetenv.perf.plan import plan_of

    for i in range(0, len(plans), 97):
        assert perf.estimate(LLAMA, A100, plan_of(plans[i])).iter_s == rows["iter_s"][i]
    assert np.isfinite(rows["memory_bytes"]).all()


def test_power_cap_slows_and_saves() -> None:
    plan = Plan(dp=16, zero=3, recompute=Recompute.FULL)
    free = perf.estimate(LLAMA, A100, plan)
    capped = perf.estimate(LLAMA, replace(A100, power_cap_w=250.0), plan)
    assert capped.iter_s > free.iter_s and capped.power_compute_w < free.power_compute_w <= 400


def test_sites_are_joined_by_the_wan_link_and_pipelines_cross_it_with_less() -> None:
    two_sites = Devices("H100", 64, inter_link="IB-NDR-8x", wan_link="wan-100G", n_sites=2)
    training = Training("gpt3-13b", 128)
    data = perf.estimate(training, two_sites, Plan(dp=8, tp=8, zero=1, seq_parallel=True))
    pipe = perf.estimate(training, two_sites, Plan(dp=4, tp=8, pp=2, zero=1, seq_parallel=True))
    near = perf.estimate(
        training, replace(two_sites, n_sites=1, wan_link=None), Plan(dp=8, tp=8, zero=1, seq_parallel=True)
    )
    assert near.comm_s[2] == 0 and data.comm_s[2] > 0 and pipe.comm_s[2] > 0
    assert data.iter_s > near.iter_s and data.comm_s[2] > pipe.comm_s[2]
    slow = perf.estimate(training, replace(two_sites, wan_link="wan-10G"), Plan(dp=8, tp=8, zero=1, seq_parallel=True))
    assert data.step_s(1.0, (1.0, 1.0, 0.1)) == pytest.approx(slow.iter_s, rel=0.03)
    with pytest.raises(ScenarioError, match="needs a wan_link"):
        Devices("H100", 64, n_sites=2)

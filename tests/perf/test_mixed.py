"""SYSTEMS.md G1 and G2 over two kinds of devices."""

from dataclasses import replace

import numpy as np
import pytest

from hetenv import catalog, perf
from hetenv.errors import PlanError
from hetenv.perf import Devices, Plan, Recompute, Training
from hetenv.perf.mixed import Pair, estimate_data, estimate_pipeline
from hetenv.perf.search_mixed import configurations_mixed, search_pair
from hetenv.perf.traffic import hetero_speed_up

GPT = Training("gpt3-1.3b", 768, precision="fp16")
H100 = Devices("H100", 8, inter_link="IB-NDR-8x")
A100 = Devices("A100", 8, inter_link="IB-NDR-8x")
PLAN = Plan(dp=8, micro_batch=2, zero=1)


def alone(pool: Devices, batch: int) -> float:
    return perf.estimate(replace(GPT, global_batch=batch), pool, PLAN).iter_s


def test_equal_shares_run_at_the_slow_kinds_speed() -> None:
    mixed = estimate_data(GPT, (H100, A100), (PLAN, PLAN), (384, 384))
    assert mixed.iter_s == pytest.approx(alone(A100, 384), rel=0.03)


def test_proportional_shares_run_at_the_sum_of_throughputs() -> None:
    rates = 768 / alone(H100, 768), 768 / alone(A100, 768)
    mixed = max(
        (estimate_data(GPT, (H100, A100), (PLAN, PLAN), (n, 768 - n)) for n in range(16, 768, 16)),
        key=lambda one: one.samples_per_s,
    )
    assert mixed.samples_per_s == pytest.approx(sum(rates), rel=0.06)
    assert mixed.samples_per_s <= sum(rates)


def test_equal_kinds_equal_the_plain_model_bit_for_bit() -> None:
    pools = (A100, replace(A100, n_gpus=8))
    plain = perf.search(GPT, A100.with_gpus(16), top=3).best
    assert search_pair(GPT, pools, top=3).best == plain
    assert configurations_mixed(GPT, pools)[0] == plain[0]


def test_a_job_may_run_faster_on_both_kinds_than_on_either() -> None:
    best = search_pair(GPT, (H100, A100), top=1).best[0]
    each = [perf.search(GPT, pool, top=1).best[0].samples_per_s for pool in (H100, A100)]
    assert best.samples_per_s > max(each)
    assert hetero_speed_up(best.samples_per_s, (each[0], each[1])) <= 1.0
    assert best.n_gpus == 16 and best.is_legal


def test_mixing_pays_more_than_the_sum_only_where_it_saves_recomputation() -> None:
    """H2: fast chips of 32 GB recompute everything alone; behind big first stages they recompute nothing."""
    training = Training("gpt3-6.7b", 64)
    fast = replace(catalog.accelerator("H100"), name="H100-32", memory_bytes=32e9)
    pools = Devices(fast, 4, inter_link="IB-HDR-8x"), Devices("A100-SXM-80", 4, inter_link="IB-HDR-8x")
    assert speed_up(training, pools) > 1.0
    alone, together = perf.search(training, pools[0], 1).best[0].plan, search_pair(training, pools, 1).best[0].plan
    assert alone.recompute == Recompute.FULL  # type: ignore[union-attr]
    assert all(part.recompute == Recompute.NONE for part in together.plans)  # type: ignore[union-attr]
    small = replace(training, model="gpt3-1.3b")
    assert speed_up(small, pools) <= 1.0 and speed_up(training, (H100, A100)) <= 1.0


def speed_up(training: Training, pools: Pair) -> float:
    each = [perf.search(training, pool, top=1).best[0].samples_per_s for pool in pools]
    return hetero_speed_up(search_pair(training, pools, top=1).best[0].samples_per_s, (each[0], each[1]))


def test_collectives_go_at_the_slowest_members_link() -> None:
    slow = replace(A100, inter_link="10GbE")
    fast = estimate_data(GPT, (H100, A100), (PLAN, PLAN), (512, 256))
    mixed = estimate_data(GPT, (H100, slow), (PLAN, PLAN), (512, 256))
    assert mixed.comm_s[1] > 50 * fast.comm_s[1]
    swapped = estimate_data(GPT, (replace(H100, inter_link="10GbE"), A100), (PLAN, PLAN), (512, 256))
    assert swapped.comm_s[1] == pytest.approx(mixed.comm_s[1], rel=0.01)


def test_big_memory_belongs_to_the_first_stages() -> None:
    """1F1B keeps most micro-batches in flight at the front: in the other order the small ones can take fewer layers."""
    training, plan = Training("gpt3-13b", 64), Plan(dp=2, tp=2, micro_batch=1, zero=1, seq_parallel=True)
    ratios = []
    for gbytes in range(14, 60, 6):
        small = replace(catalog.accelerator("A100-SXM-80"), name="A100-small", memory_bytes=gbytes * 1e9)
        pools = (A100, replace(A100, accelerator=small))
        first, last = (estimate_pipeline(training, pools, plan, (2, 2), first=i) for i in (0, 1))
        assert first.is_legal or not last.is_legal
        ratios.append(last.iter_s / first.iter_s)
    assert min(ratios) >= 1.0 and max(ratios) > 1.1


def test_layer_split_follows_speed_and_sums_to_the_model() -> None:
    plan = Plan(dp=4, tp=1, micro_batch=1, zero=1)
    found = estimate_pipeline(GPT, (H100, A100), plan, (2, 2), first=0)
    layers = found.plan.layers  # type: ignore[union-attr]
    assert sum(layers) == 24 and layers[0] > layers[1]


def test_parts_of_a_pipeline_of_equal_speed_split_evenly() -> None:
    other = replace(catalog.accelerator("A100-SXM-80"), name="A100-copy", usd_per_gpu_h=1.0)
    plan = Plan(dp=4, tp=1, micro_batch=1, zero=1)
    model = replace(catalog.model("gpt3-1.3b"), vocab=64)
    found = estimate_pipeline(replace(GPT, model=model), (A100, replace(A100, accelerator=other)), plan, (2, 2))
    assert found.plan.layers == (12, 12)  # type: ignore[union-attr]
    plain = perf.estimate(replace(GPT, model=model), A100.with_gpus(16), Plan(dp=4, pp=4, micro_batch=1, zero=1))
    assert found.iter_s == pytest.approx(plain.iter_s, rel=0.02)


def test_shares_must_sum_to_the_global_batch() -> None:
    with pytest.raises(PlanError, match="sum to the global batch 768"):
        estimate_data(GPT, (H100, A100), (PLAN, PLAN), (512, 512))


def test_step_identity_holds_over_mixed_pools() -> None:
    for one in search_pair(GPT, (H100, A100), top=20).best:
        exposed = sum(max(0.0, c - h) for c, h in zip(one.comm_s, one.hideable_s))
        assert one.iter_s == pytest.approx(one.compute_s + exposed, rel=1e-12)
        assert 0 < one.mfu <= 1 and np.isfinite(one.power_compute_w)

"""The complete search over two kinds of devices: against brute force on small jobs, never worse than one kind, fast."""

from math import inf

import pytest

from hetenv import perf
from hetenv.errors import PlanError
from hetenv.perf import Devices, Training
from hetenv.perf.mixed import Pair, estimate_data, estimate_pipeline
from hetenv.perf.plan import plan_of
from hetenv.perf.search import plan_space
from hetenv.perf.search_mixed import configurations_mixed, search_pair

GPT = Training("gpt3-350m", 12)
SMALL: Pair = (Devices("A100", 2), Devices("V100-SXM-32", 2, inter_link="25GbE"))


def brute_force_s(training: Training, pools: Pair) -> float:
    """Fastest legal step over every pair of plans and split, and every two-kind pipeline, one by one."""
    best = inf
    spaces = [[plan_of(row) for row in plan_space(training, pool)] for pool in pools]
    for batch in range(1, training.global_batch):
        for a in (plan for plan in spaces[0] if batch % (plan.dp * plan.micro_batch) == 0):
            for b in spaces[1]:
                if (training.global_batch - batch) % (b.dp * b.micro_batch) == 0:
                    one = estimate_data(training, pools, (a, b), (batch, training.global_batch - batch))
                    best = min(best, one.iter_s if one.is_legal else inf)
    n_a, n_b = (pool.n_gpus for pool in pools)
    for plan in spaces[0]:
        if plan.pp == 1 and plan.cp == 1 and plan.zero <= 1 and plan.virtual_stages == 1:
            for first in (0, 1):
                stages = n_a // (plan.tp * plan.dp), n_b // (plan.tp * plan.dp)
                if min(stages) and stages[0] * plan.tp * plan.dp == n_a and stages[1] * plan.tp * plan.dp == n_b:
                    one = estimate_pipeline(training, pools, plan, stages, first)
                    best = min(best, one.iter_s if one.is_legal else inf)
    return best


@pytest.mark.parametrize(("batch", "counts"), [(6, (1, 1)), (5, (2, 1)), (8, (1, 2))])
def test_best_plan_is_that_of_brute_force(batch: int, counts: tuple[int, int]) -> None:
    training = Training("gpt3-350m", batch, 512, "fp16")
    pools = SMALL[0].with_gpus(counts[0]), SMALL[1].with_gpus(counts[1])
    found = search_pair(training, pools, top=1).best[0]
    assert found.iter_s == pytest.approx(brute_force_s(training, pools), rel=1e-12)


def test_plans_are_legal_sorted_and_faster_than_on_either_kind_alone() -> None:
    training = Training("gpt3-1.3b", 64)
    pools = Devices("H100", 8), Devices("A100", 8)
    found = search_pair(training, pools, top=5)
    times = [one.iter_s for one in found.best]
    assert len(times) == 5 and times == sorted(times) and all(one.is_legal for one in found.best)
    assert times[0] < min(perf.search(training, pool, 1).best[0].iter_s for pool in pools)
    assert sum(found.illegal.values()) < found.n_plans
    assert search_pair(training, pools, top=1).best[0].iter_s == times[0]


def test_a_model_that_fits_nowhere_has_reasons_and_no_plan() -> None:
    found = search_pair(Training("llama3-405b", 64, precision="fp16"), (Devices("T4", 4), Devices("P100-SXM-16", 4)))
    assert found.best == () and "does not fit in the GPU's memory" in found.illegal


def test_a_kind_without_the_precision_takes_no_stage() -> None:
    found = search_pair(Training("gpt3-350m", 8), (Devices("A100", 1), Devices("V100-SXM-32", 1)))
    assert found.best == () and "the accelerator does not support the precision" in found.illegal


def test_shares_that_do_not_sum_are_refused() -> None:
    with pytest.raises(PlanError, match="sum to the global batch"):
        plan = plan_of(plan_space(GPT, SMALL[0])[0])
        estimate_data(GPT, SMALL, (plan, plan), (4, 4))


def test_what_a_simulator_tabulates_is_the_best_that_the_search_finds() -> None:
    """Bert is bound by launches: its time hardly grows with the batch, so no bound from seconds per sample holds."""
    training = Training("bert-large", 128, seq_len=128, precision="fp16")
    pools = Devices("H100", 8, inter_link="IB-NDR-8x"), Devices("A100", 8, inter_link="IB-HDR-8x")
    tabulated, found = configurations_mixed(training, pools), search_pair(training, pools, 1).best
    assert tabulated[0].iter_s == found[0].iter_s
    assert len(tabulated) == 2 and tabulated[1].iter_s >= tabulated[0].iter_s

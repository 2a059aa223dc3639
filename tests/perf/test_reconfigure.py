"""SYSTEMS.md G5: bytes that change owner, live and restart times."""

import numpy as np
import pytest

from hetenv.perf import Plan, Training
from hetenv.perf import reconfigure as rc

LLAMA = Training("llama3-70b", 512)


def test_equal_plans_move_nothing() -> None:
    for plan in (Plan(dp=8), Plan(dp=4, tp=4, pp=2, zero=1), Plan(dp=64, zero=3)):
        assert rc.received_bytes(LLAMA, plan, plan).sum() == 0
        assert rc.change(LLAMA, plan, plan, 50e9, rc.PRESETS["adaptdl"]).live_s == 0


def test_growing_dp_moves_only_to_new_ranks() -> None:
    received = rc.received_bytes(LLAMA, Plan(dp=4, tp=2), Plan(dp=6, tp=2))
    assert received[:8].sum() == 0 and (received[8:] > 0).all()
    assert received[8] == pytest.approx(16 * LLAMA.model_entry.n_params / 2)


def test_shrinking_dp_without_sharding_moves_nothing() -> None:
    assert rc.received_bytes(LLAMA, Plan(dp=8, tp=2), Plan(dp=4, tp=2)).sum() == 0


def test_changing_tp_for_pp_moves_at_most_every_shard_and_at_least_the_difference() -> None:
    received = rc.received_bytes(LLAMA, Plan(tp=8), Plan(tp=4, pp=2))
    share = 16 * LLAMA.model_entry.n_params / 8
    assert 0 < received.sum() <= 8 * share * (1 + 1e-9)
    assert (received <= share * (1 + 1e-9)).all()


def test_the_new_owners_hold_the_whole_state() -> None:
    old, new = Plan(dp=2, tp=2, zero=1), Plan(dp=1, tp=4, zero=1)
    received = rc.received_bytes(LLAMA, old, new)
    assert np.isfinite(received).all() and received.sum() < 16 * LLAMA.model_entry.n_params


def test_lower_bound_of_a_full_exchange_of_70b() -> None:
    assert rc.lower_bound_s(70e9, 16, 64, 50e9) == pytest.approx(0.35, abs=0.001)


def test_42_gbytes_over_a_ten_gigabit_path_take_about_34_seconds() -> None:
    assert rc.live_s(42.2e9, 1.25e9) == pytest.approx(34, rel=0.02)


def test_restart_is_at_least_ten_times_a_live_change() -> None:
    found = rc.change(LLAMA, Plan(dp=8, tp=8), Plan(dp=8, tp=4, pp=2), 50e9, rc.PRESETS["rubick"])
    assert found.restart_s >= 10 * found.live_s > 0


@pytest.mark.parametrize(
    ("preset", "n_params", "published_s"),
    [("adaptdl", 25e6, 30), ("sia-small", 11e6, 25), ("sia-large", 2.8e9, 250), ("rubick", 7e9, 260)],
)
def test_presets_are_within_thirty_percent_of_the_published_totals(
    preset: str, n_params: float, published_s: float
) -> None:
    assert rc.restart_s(14 * n_params, rc.PRESETS[preset]) == pytest.approx(published_s, rel=0.3)


def test_a_phase_shorter_than_break_even_does_not_switch() -> None:
    assert not rc.worth_changing(0.2, 100, 30) and rc.worth_changing(0.2, 200, 30)

"""`hetenv speed`: the promised keys, and actions replayed as they were drawn."""

import numpy as np
import pytest

from hetenv.bench.speed import (
    REPLAYS,
    _changed_bytes,
    _estimates_per_s,
    _footprint,
    _mixed_estimates_per_s,
    _recurrences_per_s,
    _Replay,
    busy_scenario,
    measure,
)

PROMISED = {
    "gym_make_decisions_per_cpu_s",
    "batch64_decisions_per_cpu_s",
    "batch256_decisions_per_cpu_s",
    "kernel_decisions_per_cpu_s",
    "perf_estimates_per_cpu_s",
    "mixed_estimates_per_cpu_s",
    "recurrence_estimates_per_cpu_s",
    "search_one_kind_s",
    "search_two_kinds_s",
    "compile_mixed_gpus_s",
    "sample_mixed_gpus_s",
    "import_s",
    "first_reset_s",
    "cold_compile_s",
    "state_bytes_per_env",
    "touched_bytes_per_step",
    "noise",
}


def test_actions_are_drawn_in_one_pass_and_replayed_in_the_next() -> None:
    passes: list[list[int]] = []

    def reset() -> np.ndarray:
        passes.append([])
        return np.ones(5, np.int8)

    def step(action: int) -> np.ndarray:
        passes[-1].append(action)
        return np.array([0, 1, 1, 0, 0], np.int8)

    rates = _Replay(reset, step, lambda: 1).rates(50, 10)
    assert len(rates) == REPLAYS and min(rates) > 0
    drawn, *replayed = passes
    assert replayed == REPLAYS * [drawn] and len(drawn) == 60
    assert set(drawn[1:]) == {1, 2}


def test_an_empty_queue_is_noticed() -> None:
    with pytest.raises(AssertionError, match="queue"):
        _Replay(lambda: np.ones(2, np.int8), lambda _: np.ones(2, np.int8), lambda: 0).rates(1, 0)


def test_changed_bytes_count_cache_lines() -> None:
    old = np.zeros(40, np.float64)
    new = old.copy()
    assert _changed_bytes(old, new) == 0
    new[[0, 1, 39]] = 1.0
    assert _changed_bytes(old, new) == 128


def test_the_footprint_is_that_of_one_environment() -> None:
    found = _footprint(busy_scenario(), 50)
    assert found["touched_bytes_per_step"] > 0 and 0 < found["state_bytes_per_env"] < 2**20


def test_estimates_of_all_three_ways_are_counted() -> None:
    for rates in (_estimates_per_s(100), _mixed_estimates_per_s(100), _recurrences_per_s(2)):
        assert len(rates) == REPLAYS and min(rates) > 0


@pytest.mark.slow
@pytest.mark.compiled
def test_speed_has_the_promised_keys() -> None:
    found = measure(1000)
    assert set(found) == PROMISED
    assert all(value > 0 for value in found.values())

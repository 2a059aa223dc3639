"""SYSTEMS.md G1 and G2: schedules by recurrence, partitions, uneven shares, each with its published figure."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hetenv.errors import PlanError
from hetenv.perf import schedule, shares
from hetenv.perf.partition import (
    crossing_bytes,
    partition_over_types,
    partition_replicated,
    replicated_stage_s,
)
from hetenv.perf.pipeline import bubble_share
from hetenv.perf.rows import Schedule

SHARED = Path(os.environ.get("HETENV_SHARED", Path(__file__).parents[2].parent / "shared"))
PROFILES = SHARED / "data" / "measured" / "pipeline_profiles"
needs_profiles = pytest.mark.skipif(not PROFILES.exists(), reason="pipeline profiles not there")


def even(p: int) -> NDArray[np.float64]:
    return np.ones(p)


@pytest.mark.parametrize("kind", [Schedule.ONE_F_ONE_B, Schedule.GPIPE])
@pytest.mark.parametrize(("p", "m"), [(1, 3), (2, 4), (4, 8), (8, 32)])
def test_equal_stages_give_the_closed_form(kind: Schedule, p: int, m: int) -> None:
    total = schedule.makespan_s(even(p), 2 * even(p), np.zeros(p), m, kind)
    assert total == pytest.approx(3.0 * (m + p - 1), rel=1e-12)
    assert 1 - 3.0 * m / total == pytest.approx(bubble_share(p, m, 1), abs=1e-12)


def test_unequal_stages_are_bounded_by_the_merged_form() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        p, m = int(rng.integers(2, 7)), int(rng.integers(1, 12))
        f, b = rng.uniform(0.5, 2, p), rng.uniform(1, 4, p)
        total = schedule.makespan_s(f, b, np.zeros(p), m)
        both = f + b
        assert m * both.max() <= total + 1e-9
        assert total <= both.sum() + (m - 1) * both.max() * 2 + 1e-9


def test_asynchronous_pipeline_has_no_bubble_but_versions() -> None:
    assert schedule.makespan_s(even(4), 2 * even(4), np.zeros(4), 8, Schedule.ASYNC_1F1B) == 24.0
    assert [schedule.weight_versions("pipedream", s, 4) for s in range(4)] == [4, 3, 2, 1]


@pytest.mark.parametrize(("w", "n", "v"), [(4, 2, 2), (4, 4, 1), (5, 2, 2), (5, 3, 2), (3, 3, 1)])
def test_nf1b_version_difference(w: int, n: int, v: int) -> None:
    assert schedule.version_difference(w, n) == v


def test_memory_order_pipedream_2bw_nf1b() -> None:
    copies = [sum(schedule.weight_versions(name, s, 4) for s in range(4)) for name in ("pipedream", "2bw", "nf1b")]
    assert copies == sorted(copies, reverse=True) and len(set(copies)) == 3


def test_distsim_two_way_tp_four_stages_has_four_blocks_each_and_busy_plus_idle_is_the_batch() -> None:
    total, begin, end = schedule.blocks(even(4), 2 * even(4), 0.1 * even(4), 4)
    assert begin.shape == (4, 2, 4)
    for stage in range(4):
        spans = sorted(zip(begin[stage].ravel(), end[stage].ravel()))
        busy = sum(stop - start for start, stop in spans)
        idle = spans[0][0] + sum(b[0] - a[1] for a, b in zip(spans, spans[1:])) + total - spans[-1][1]
        assert busy == pytest.approx(12.0) and busy + idle == pytest.approx(total)
        assert all(b[0] >= a[1] - 1e-12 for a, b in zip(spans, spans[1:]))


def test_a_slow_member_stretches_nearly_the_whole_long_pipeline() -> None:
    assert schedule.slow_member_share(even(4), 2 * even(4), np.zeros(4), 64, 1) == pytest.approx(64 / 67, abs=0.04)


def profile(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(layer seconds, weight bytes, bytes of the chain's borders, bytes of all crossing activations), input left
    out."""
    with (PROFILES / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    place = {row["node"]: i for i, row in enumerate(rows)}
    before = [[place[node] for node in row["predecessors"].split() if node in place] for row in rows]
    output = np.array([float(row["activation_bytes"]) for row in rows])
    crossing = crossing_bytes(before, output)
    keep = [i for i, row in enumerate(rows) if row["operator"] != "Input"]
    seconds = np.array([(float(row["forward_ms"]) + float(row["backward_ms"])) / 1e3 for row in rows])
    weights = np.array([float(row["parameter_bytes"]) for row in rows])
    return seconds[keep], weights[keep], output[keep], crossing[keep]


@needs_profiles
def test_pipedream_vgg16_on_four_gpus_splits_three_to_one() -> None:
    seconds, weights, chain, _ = profile("vgg16")
    found = partition_replicated(seconds, weights, chain, 4, 1.25e9)
    assert [stage.n_devices for stage in found.stages] == [3, 1]
    assert found.bottleneck_s == pytest.approx(0.1745, rel=0.02)
    assert seconds.sum() / found.bottleneck_s == pytest.approx(3.85, rel=0.02)
    data_parallel = replicated_stage_s(seconds.sum(), weights.sum(), 4, 1.25e9)
    assert data_parallel / found.bottleneck_s == pytest.approx(2.87, rel=0.02)


@needs_profiles
def test_pipedream_resnet50_is_near_data_parallel_when_cuts_carry_every_activation() -> None:
    seconds, weights, chain, crossing = profile("resnet50")
    data_parallel = replicated_stage_s(seconds.sum(), weights.sum(), 4, 1.25e9)
    real = partition_replicated(seconds, weights, crossing, 4, 1.25e9)
    assert 1.0 <= data_parallel / real.bottleneck_s <= 1.1
    naive = partition_replicated(seconds, weights, chain, 4, 1.25e9)
    assert naive.bottleneck_s <= real.bottleneck_s


def test_pipeedge_equal_devices_take_equal_parts() -> None:
    found = partition_over_types(np.ones((1, 48)), np.ones(48), np.zeros(48), [8], [100.0])
    assert [stage.last - stage.first + 1 for stage in found.stages] == [6] * 8


def test_pipeedge_leaves_out_a_device_that_is_too_slow() -> None:
    layer_s = np.stack([np.ones(8), 10 * np.ones(8)])
    found = partition_over_types(layer_s, np.ones(8), np.zeros(8), [2, 1], [100.0, 100.0])
    assert {stage.kind for stage in found.stages} == {0} and found.bottleneck_s == 4.0


def test_pipeedge_keeps_memory_limits() -> None:
    found = partition_over_types(np.ones((2, 8)), np.ones(8), np.zeros(8), [1, 1], [6.0, 2.0])
    assert {stage.kind: stage.last - stage.first + 1 for stage in found.stages} == {0: 6, 1: 2}
    with pytest.raises(PlanError):
        partition_over_types(np.ones((1, 8)), np.ones(8), np.zeros(8), [1], [4.0])


@pytest.mark.parametrize(
    ("cores", "expected", "gain"),
    [([12, 12, 8, 16], (32, 32, 23, 46), 1.5), ([9, 8, 6, 25], (32, 32, 22, 89), 2.0), ([12] * 4, (32,) * 4, 1.0)],
)
def test_omnilearn_dead_band_controller(cores: list[int], expected: tuple[int, ...], gain: float) -> None:
    times = [32 / core for core in cores]
    assert shares.dead_band_step([32] * 4, times, 0.2, 16, 96) == expected
    proportional = 32 * len(cores) / sum(cores)
    assert max(times) / proportional == pytest.approx(gain, rel=1e-9)


def test_hap_proportional_shards_and_the_cheaper_gather() -> None:
    speeds = [3.86e12] * 2 + [2.15e12] * 6
    portion = shares.shard_shares(speeds)
    cut = 1 - shares.shard_compute_s(1.0, portion, speeds) / shares.shard_compute_s(1.0, [1 / 8] * 8, speeds)
    assert cut == pytest.approx(0.17, abs=0.005)
    assert pytest.approx(1.034, abs=5e-4) == 9.46 / 9.15
    assert shares.gather_s(1e9, [1 / 8] * 8) == shares.padded_gather_s(1e9, [1 / 8] * 8)
    assert shares.gather_s(1e9, portion) == shares.grouped_gather_s(1e9)


def test_integer_shares_are_exact_and_even_for_equal_speeds() -> None:
    assert shares.integer_shares(10, [1, 1, 1]) in {(4, 3, 3), (3, 4, 3), (3, 3, 4)}
    assert shares.integer_shares(30, [2, 1]) == (20, 10)
    assert shares.slowest_s(shares.integer_shares(7, [3, 1]), [1 / 3, 1.0]) == pytest.approx(2.0)

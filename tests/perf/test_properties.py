"""Physics that holds for every plan: each accelerator and model of the catalog, plans drawn over their whole space."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hetenv import catalog, perf
from hetenv.jit import compiled
from hetenv.perf import Devices, Training
from hetenv.perf.search import plan_space

ACCELERATORS = catalog.names("accelerators")
STACKS = ("default", "megatron-2021", "fsdp", "deepseek")
SIZES = (2, 8, 16, 64)
N_PLANS = 150
pytestmark = pytest.mark.skipif(not compiled(), reason="millions of estimates: only compiled")
HDR = catalog.link("IB-HDR-4x")

Case = tuple[Training, Devices, NDArray[np.void]]


def cases(accelerator: str) -> Iterator[Case]:
    """Every model on every size, each with plans spread over its space that can be timed, stacks in turn."""
    entry = catalog.accelerator(accelerator)
    precision = "bf16" if entry.peak_bf16_flops else "fp16" if entry.peak_fp16_flops else "fp32"
    turn = 0
    for model in catalog.names("models"):
        for n_gpus in SIZES:
            training = Training(model, 64, precision=precision, stack=STACKS[turn % len(STACKS)])
            devices = Devices(entry, n_gpus)
            plans = plan_space(training, devices)
            plans = plans[turn % 7 :: max(1, len(plans) // N_PLANS)]
            turn += 1
            timed = np.isfinite(iter_s(training, devices, plans))
            if timed.any():
                yield training, devices, plans[timed]


def iter_s(training: Training, devices: Devices, plans: NDArray[np.void]) -> NDArray[np.float64]:
    return np.asarray(perf.estimate_many(training, devices, plans)["iter_s"])


def wider(devices: Devices, factor: float) -> list[Devices]:
    """The same devices with one thing faster."""
    entry = devices.accelerator_entry
    peaks = {
        name: getattr(entry, name) * factor
        for name in ("peak_fp32_flops", "peak_tf32_flops", "peak_fp16_flops", "peak_bf16_flops")
    }
    return [
        replace(devices, accelerator=replace(entry, **peaks)),
        replace(devices, accelerator=replace(entry, memory_bytes_per_s=entry.memory_bytes_per_s * factor)),
        replace(devices, accelerator=replace(entry, intra_bytes_per_s=entry.intra_bytes_per_s * factor)),
        replace(devices, intra_bytes_per_s=entry.intra_bytes_per_s * factor),
        replace(devices, inter_bytes_per_s=HDR.bytes_per_s * factor),
        replace(devices, inter_link=replace(HDR, bytes_per_s=HDR.bytes_per_s * factor)),
    ]


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_more_flops_or_bandwidth_never_slows(accelerator: str) -> None:
    for training, devices, plans in cases(accelerator):
        before = iter_s(training, devices, plans)
        for factor in (1.3, 4.0):
            for better in wider(devices, factor):
                assert (iter_s(training, better, plans) <= before * (1 + 1e-12)).all(), (training, better)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_ranks_moved_to_farther_nodes_never_speed_up(accelerator: str) -> None:
    """The same NIC share per GPU in nodes of half the size: more traffic leaves the node, none returns."""
    for training, devices, plans in cases(accelerator):
        times = [
            iter_s(
                training,
                replace(devices, gpus_per_node=size, inter_link=replace(HDR, bytes_per_s=size * 10e9)),
                plans,
            )
            for size in (16, 8, 4, 2)
        ]
        for near, far in zip(times, times[1:]):
            assert (far >= near * (1 - 1e-12)).all(), (training, devices)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_step_under_slower_links_is_near_a_new_estimate(accelerator: str) -> None:
    for training, devices, plans in cases(accelerator):
        rows = perf.estimate_many(training, devices, plans)
        intra = devices.accelerator_entry.intra_bytes_per_s
        for near, far in ((1.0, 0.25), (1.0, 0.5), (1.0, 0.75), (0.25, 1.0), (0.5, 0.5)):
            slower = replace(devices, intra_bytes_per_s=intra * near, inter_bytes_per_s=HDR.bytes_per_s * far)
            traffic = rows["comm_s"] / (near, far, 1.0)
            tabulated = rows["compute_s"] + np.maximum(0.0, traffic - rows["hideable_s"]).sum(1)
            np.testing.assert_allclose(tabulated, iter_s(training, slower, plans), rtol=0.03)


@given(
    st.sampled_from(ACCELERATORS),
    st.sampled_from(catalog.names("models")),
    st.sampled_from(STACKS),
    st.integers(1, 130),
    st.integers(1, 600),
    st.floats(0.25, 1.0),
)
def test_any_size_batch_and_link_factor(
    accelerator: str, model: str, stack: str, n_gpus: int, batch: int, factor: float
) -> None:
    """The same three properties off the grid."""
    entry = catalog.accelerator(accelerator)
    precision = "bf16" if entry.peak_bf16_flops else "fp16" if entry.peak_fp16_flops else "fp32"
    training, devices = Training(model, batch, precision=precision, stack=stack), Devices(accelerator, n_gpus)
    plans = plan_space(training, devices)[:4000:3]
    rows = perf.estimate_many(training, devices, plans)
    plans, rows = plans[np.isfinite(rows["iter_s"])], rows[np.isfinite(rows["iter_s"])]
    for better in wider(devices, 1.0 / factor):
        assert (iter_s(training, better, plans) <= rows["iter_s"] * (1 + 1e-12)).all()
    slower = iter_s(training, replace(devices, inter_bytes_per_s=HDR.bytes_per_s * factor), plans)
    traffic = rows["comm_s"] / (1.0, factor, 1.0)
    tabulated = rows["compute_s"] + np.maximum(0.0, traffic - rows["hideable_s"]).sum(1)
    np.testing.assert_allclose(tabulated, slower, rtol=0.03)
    near = iter_s(training, devices, plans)
    half = replace(devices, gpus_per_node=4, inter_link=replace(HDR, bytes_per_s=HDR.bytes_per_s / 2))
    assert (iter_s(training, half, plans) >= near * (1 - 1e-12)).all()

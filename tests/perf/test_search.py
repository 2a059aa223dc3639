"""Plan search and the configurations that a simulator tabulates."""

from dataclasses import replace

import pytest

from hetenv import perf
from hetenv.perf import Devices, Training

TRAINING = Training("llama3-8b", 256)
DEVICES = Devices("H100", 64, inter_link="IB-NDR-8x")


def test_best_plan_comes_first_and_is_legal() -> None:
    result = perf.search(TRAINING, DEVICES, top=5)
    times = [found.iter_s for found in result.best]
    assert len(times) == 5 and times == sorted(times) and all(found.is_legal for found in result.best)
    assert sum(result.illegal.values()) < result.n_plans
    assert any("memory" in why for why in result.illegal)


def test_nothing_fits_gives_reasons() -> None:
    result = perf.search(Training("llama3-405b", 64, precision="fp16"), Devices("T4", 4), top=3)
    assert result.best == () and any("memory" in why for why in result.illegal)
    assert perf.configurations(Training("llama3-405b", 64, precision="fp16"), Devices("T4", 4)) == []


@pytest.mark.parametrize("name", ["gpt2-small", "mixtral-8x7b", "resnet50", "vit-b", "bert-large"])
def test_configurations_hold_the_fastest_and_differ(name: str) -> None:
    training = replace(TRAINING, model=name)
    found = perf.configurations(training, DEVICES)
    best = perf.search(training, DEVICES, top=1).best[0]
    assert 1 <= len(found) <= 4
    assert found[0].iter_s == best.iter_s
    assert min(one.energy_j_per_sample for one in found) <= best.energy_j_per_sample
    assert len({(one.iter_s, one.memory_bytes, one.comm_s) for one in found}) == len(found)

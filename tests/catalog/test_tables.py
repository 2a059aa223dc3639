"""The catalog: names, aliases, exact parameter counts, column checks."""

from pathlib import Path

import pytest

from hetenv import catalog
from hetenv.catalog import csv_table
from hetenv.catalog.entries import Link
from hetenv.errors import ScenarioError


@pytest.mark.parametrize(
    ("name", "n_params"),
    [
        ("llama2-7b", 6_738_415_616),
        ("llama3-8b", 8_030_261_248),
        ("llama3-70b", 70_553_706_496),
        ("mixtral-8x7b", 46_702_792_704),
        ("gpt2-small", 124_439_808),
        ("bert-base", 109_482_240),
        ("bert-large", 335_141_888),
        ("vit-b", 86_567_656),
        ("resnet50", 25_557_032),
        ("vgg16", 138_357_544),
    ],
)
def test_parameter_counts_are_exact(name: str, n_params: int) -> None:
    assert catalog.model(name).n_params == n_params


def test_p29_ignoring_grouped_queries_would_be_wrong_by_ten_percent() -> None:
    model = catalog.model("llama3-8b")
    extra = model.layers * 2 * model.hidden * (model.heads - model.kv_heads) * model.head_dim
    assert model.n_params + extra == 8_835_567_616


@pytest.mark.parametrize("kind", ["accelerators", "links", "models", "stacks"])
def test_every_name_and_alias_resolves_in_any_case(kind: str) -> None:
    find = getattr(catalog, kind[:-1])
    for name in catalog.names(kind):
        entry = find(name)
        assert " " not in name
        assert find(name.upper()) is entry
        assert entry.source and entry.licence
        for alias in entry.aliases:
            assert find(alias) is entry


@pytest.mark.parametrize(
    "name",
    [
        "V100-SXM-32H",
        "H100-SXM-96-500W",
        "H800-SXM-80",
        "B300-SXM-288",
        "GB200-186",
        "GB300-288",
        "RTX-2080",
        "Titan-RTX",
        "A100-40",
        "V100-16",
        "GH-96",
    ],
)
def test_names_of_the_measured_tables_are_there(name: str) -> None:
    assert catalog.accelerator(name).memory_bytes > 1e9


def test_unknown_name_gives_the_nearest_and_all_choices() -> None:
    with pytest.raises(ScenarioError, match=r"did you mean 'A100-SXM-80'.*known: .*H100-SXM-80"):
        catalog.accelerator("A100-SXM-81")


def test_figures_are_plausible() -> None:
    for name in catalog.names("accelerators"):
        entry = catalog.accelerator(name)
        assert 0 < entry.idle_w < entry.tdp_w
        assert 0.4 <= entry.achievable_share <= 1
        assert entry.peak_bf16_flops in (0, entry.peak_fp16_flops) or entry.peak_fp16_flops <= entry.peak_bf16_flops
        assert 1e11 < entry.memory_bytes_per_s < 2e13


def test_columns_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text("name,aliases,tier,bytes_per_s\nx,,intra,1\n")
    with pytest.raises(ScenarioError, match="columns missing or unknown: latency_s"):
        csv_table.read(path, Link)


def test_bad_cell_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text("name,aliases,tier,bytes_per_s,latency_s,source,licence\nx,,intra,fast,0,s,l\n")
    with pytest.raises(ScenarioError, match=r"line 2.*fast"):
        csv_table.read(path, Link)

"""The catalog's tables, read once: `accelerator(name)`, `link(name)`, `model(name)`, `stack(name)`, `names(kind)`."""

from functools import cache
from pathlib import Path

from hetenv.catalog import csv_table
from hetenv.catalog.entries import Accelerator, Efficiency, EventPreset, Link, Model, Stack
from hetenv.errors import ScenarioError, unknown

_FOLDER = Path(__file__).parent


@cache
def accelerators() -> dict[str, Accelerator]:
    """All accelerators by name; every intra_link is a link of the catalog."""
    found = csv_table.read(_FOLDER / "accelerators.csv", Accelerator)
    for entry in found.values():
        link(entry.intra_link)
    return found


@cache
def links() -> dict[str, Link]:
    """All links by name."""
    return csv_table.read(_FOLDER / "links.csv", Link)


@cache
def models() -> dict[str, Model]:
    """All models by name."""
    return csv_table.read(_FOLDER / "models.csv", Model)


@cache
def stacks() -> dict[str, Stack]:
    """All software stacks by name; `default` is always there."""
    return csv_table.read(_FOLDER / "stacks.csv", Stack)


@cache
def efficiencies() -> dict[str, Efficiency]:
    """Fitted factors by architecture/precision class and by accelerator/name."""
    return csv_table.read(_FOLDER / "efficiencies.csv", Efficiency)


@cache
def event_presets() -> dict[str, EventPreset]:
    """All presets of causes of events by name."""
    return csv_table.read(_FOLDER / "event_presets.csv", EventPreset)


def event_preset(kind: str, name: str) -> EventPreset:
    """A preset of one kind of cause; ScenarioError lists those of the kind."""
    known = {entry.name: entry for entry in event_presets().values() if entry.kind == kind}
    return csv_table.resolve(name, csv_table.index(known, "preset"), tuple(known), f"preset of {kind}")


@cache
def _accelerator_index() -> dict[str, Accelerator]:
    return csv_table.index(accelerators(), "accelerator")


@cache
def _link_index() -> dict[str, Link]:
    return csv_table.index(links(), "link")


@cache
def _model_index() -> dict[str, Model]:
    return csv_table.index(models(), "model")


@cache
def _stack_index() -> dict[str, Stack]:
    return csv_table.index(stacks(), "stack")


def accelerator(name: str) -> Accelerator:
    """The accelerator of that name or alias."""
    return csv_table.resolve(name, _accelerator_index(), tuple(accelerators()), "accelerator")


def link(name: str) -> Link:
    """The link of that name or alias."""
    return csv_table.resolve(name, _link_index(), tuple(links()), "link")


def model(name: str) -> Model:
    """The model of that name or alias."""
    return csv_table.resolve(name, _model_index(), tuple(models()), "model")


def stack(name: str) -> Stack:
    """The software stack of that name or alias."""
    return csv_table.resolve(name, _stack_index(), tuple(stacks()), "stack")


def precision_class(precision: str) -> str:
    """FP16 and BF16 share one class of factors; the other precisions have one each."""
    return "16bit" if precision.upper() in ("FP16", "BF16") else precision.lower()


def _factor(name: str) -> float:
    found = efficiencies().get(name)
    return 1.0 if found is None else found.factor


def efficiency(entry: Accelerator, precision: str) -> float:
    """Share of the peak that large GEMMs reach: the measured share times the fitted factors, 1 where there is none."""
    kind = f"precision:{entry.architecture}/{precision_class(precision)}"
    return entry.achievable_share * _factor(kind) * _factor(f"accelerator:{entry.name}")


def memory_factor(entry: Accelerator) -> float:
    """Fitted factor on the HBM rate of an architecture."""
    return _factor(f"memory:{entry.architecture}")


def convolution_factor(entry: Accelerator, precision: str) -> float:
    """Fitted factor on the convolution rate of an architecture at a precision."""
    return _factor(f"conv:{entry.architecture}/{precision_class(precision)}")


def names(kind: str) -> tuple[str, ...]:
    """Names of one kind: accelerators, links, models, stacks or event_presets."""
    tables: dict[str, tuple[str, ...]] = {
        "accelerators": tuple(accelerators()),
        "links": tuple(links()),
        "models": tuple(models()),
        "stacks": tuple(stacks()),
        "event_presets": tuple(event_presets()),
    }
    if kind not in tables:
        raise ScenarioError(unknown("catalog table", kind, tables))
    return tables[kind]


@cache
def start_stack() -> Stack:
    """The values that fits start from (not fitted), in start_stack.csv."""
    return csv_table.read(_FOLDER / "start_stack.csv", Stack)["start"]

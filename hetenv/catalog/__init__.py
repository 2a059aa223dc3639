"""Facts of the world as CSV, each row with source and licence."""

from hetenv.catalog.entries import Accelerator, EventPreset, Link, Model, Stack
from hetenv.catalog.tables import (
    accelerator,
    convolution_factor,
    efficiency,
    event_preset,
    event_presets,
    link,
    memory_factor,
    model,
    names,
    stack,
)

__all__ = [
    "Accelerator",
    "EventPreset",
    "Link",
    "Model",
    "Stack",
    "accelerator",
    "convolution_factor",
    "efficiency",
    "event_preset",
    "event_presets",
    "link",
    "memory_factor",
    "model",
    "names",
    "stack",
]

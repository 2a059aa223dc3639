"""Facts of the world as CSV, each row with source and licence."""

from hetenv.catalog.entries import Accelerator, Link, Model, Stack
from hetenv.catalog.tables import (
    accelerator,
    convolution_factor,
    efficiency,
    link,
    memory_factor,
    model,
    names,
    stack,
)

__all__ = [
    "Accelerator",
    "Link",
    "Model",
    "Stack",
    "accelerator",
    "convolution_factor",
    "efficiency",
    "link",
    "memory_factor",
    "model",
    "names",
    "stack",
]

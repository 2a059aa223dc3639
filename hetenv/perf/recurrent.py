"""Seconds of an LSTM layer. Inputs are projected for all time steps at once; the recurrent part goes step by step, so that each
step reads its weights again and launches its kernels again."""

from dataclasses import dataclass

from hetenv import catalog
from hetenv.errors import ScenarioError
from hetenv.perf.rows import Precision
from hetenv.perf.training import Devices, peak_flops, precision_of

STEP_S = 10e-6
"""Launch of one time step's kernels."""
GATE_PASSES = 6.0
"""Reads and writes of the four gates' pre-activations, forward."""


@dataclass(frozen=True)
class LstmLayer:
    """inputs, hidden: widths. Parameters: 4*hidden*(inputs + hidden) and two biases (Hochreiter and Schmidhuber 1997)."""

    inputs: int
    hidden: int

    @property
    def n_params(self) -> int:
        """Weights and both bias vectors, as in cuDNN."""
        return 4 * self.hidden * (self.inputs + self.hidden) + 8 * self.hidden

    def forward_s(self, devices: Devices, batch: int, steps: int, precision: str | Precision = "fp32") -> float:
        """Forward seconds on one GPU; the backward pass takes about twice as long (`train_s`)."""
        entry, number = devices.accelerator_entry, precision_of(precision)
        rate = peak_flops(entry, number) * catalog.efficiency(entry, number.name)
        if rate <= 0.0:
            raise ScenarioError(f"{entry.name} does not support {number.name.lower()}")
        byte_s = 1.0 / (entry.memory_bytes_per_s * catalog.memory_factor(entry))
        width = 4 if number in (Precision.FP32, Precision.TF32) else 2
        tokens, gates = batch * steps, 4 * self.hidden
        inputs_s = 2.0 * tokens * self.inputs * gates / rate + width * self.inputs * gates * byte_s
        step_s = 2.0 * batch * self.hidden * gates / rate + width * self.hidden * gates * byte_s + STEP_S
        return inputs_s + steps * step_s + GATE_PASSES * width * tokens * gates * byte_s

    def train_s(self, devices: Devices, batch: int, steps: int, precision: str | Precision = "fp32") -> float:
        """Forward and backward seconds of one batch."""
        return 3.0 * self.forward_s(devices, batch, steps, precision)

"""One training step of a recommendation model: dense layers data-parallel, embedding tables spread over all GPUs.

Each table's rows are looked up where the table lives, for the whole batch; the pooled vectors go to the samples' GPUs by
all-to-all, and their gradients back (Naumov et al. 2019, Mudigere et al. 2022). The bottom layers need no vectors, so they hide
the all-to-alls; the gradients of the dense layers hide behind the whole backward pass (MAD-Max, ISCA 2024).
"""

from dataclasses import dataclass

from hetenv import catalog
from hetenv.perf.comm import transfer_s
from hetenv.perf.rows import Precision
from hetenv.perf.training import Devices, device_row, precision_of


@dataclass(frozen=True)
class Recommendation:
    """Dense layers of dense_width x dense_width, half of them below the interaction; n_tables tables of n_rows vectors of
    `dim`, of which a sample reads `pooling` each and sums them."""

    n_dense_layers: int
    dense_width: int
    n_tables: int
    n_rows: int
    dim: int
    pooling: float
    row_element_bytes: int = 4
    exchange_element_bytes: int = 2

    @property
    def dense_params(self) -> int:
        """Weights that every GPU holds."""
        return self.n_dense_layers * self.dense_width**2

    @property
    def n_params(self) -> int:
        """All parameters."""
        return self.dense_params + self.n_tables * self.n_rows * self.dim

    @property
    def forward_flops(self) -> float:
        """Of one sample."""
        return 2.0 * self.dense_params

    @property
    def lookup_bytes(self) -> float:
        """Rows that one sample reads."""
        return float(self.n_tables * self.pooling * self.dim * self.row_element_bytes)


@dataclass(frozen=True)
class RecommendationStep:
    """Seconds of one step by part; exposed_s: communication that nothing hides."""

    dense_s: float
    lookup_s: float
    all_to_all_s: float
    all_reduce_s: float
    exposed_s: float

    @property
    def iter_s(self) -> float:
        """The whole step."""
        return self.dense_s + self.lookup_s + self.exposed_s

    @property
    def exposed_share(self) -> float:
        """Exposed communication over the whole step."""
        return self.exposed_s / self.iter_s


def recommendation_step(
    model: Recommendation,
    devices: Devices,
    global_batch: int,
    precision: str | Precision = "tf32",
    inter_rate: float = 0.78,
) -> RecommendationStep:
    """A step on all GPUs of `devices`. inter_rate: share of the line rate between nodes that messages reach."""
    number = precision_of(precision)
    device = device_row(devices, number)[0]
    n, local = devices.n_gpus, min(devices.n_gpus, devices.gpus_per_node)
    samples = global_batch / n
    rate = float(device["peak_flops"] * device["clock"]) * catalog.efficiency(devices.accelerator_entry, number.name)
    forward_s = samples * model.forward_flops / rate
    read_s = samples * model.lookup_bytes / float(device["memory_bytes_per_s"])
    intra, nic = (
        float(device["intra_bytes_per_s"]),
        inter_rate * float(device["inter_bytes_per_s"]) / devices.gpus_per_node,
    )
    vectors = samples * model.n_tables * model.dim * model.exchange_element_bytes
    exchange_s = max(transfer_s(vectors * (local - 1) / n, intra), transfer_s(vectors * (n - local) / n, nic))
    gradients = 2.0 * model.dense_params * model.exchange_element_bytes
    nodes = n / local
    reduce_s = transfer_s(gradients * (local - 1) / local, intra)
    reduce_s += transfer_s(gradients * (nodes - 1) / nodes / local, nic)
    exposed = max(0.0, exchange_s - 0.5 * forward_s) + max(0.0, exchange_s - forward_s)
    exposed += max(0.0, reduce_s - 2.0 * forward_s - 2.0 * read_s)
    return RecommendationStep(3.0 * forward_s, 3.0 * read_s, 2.0 * exchange_s, reduce_s, exposed)

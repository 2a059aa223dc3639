"""The kinds of catalog entries: accelerators, links and models. One field is one CSV column, in SI units."""

from dataclasses import dataclass
from typing import Any

import yaml

from hetenv.errors import ScenarioError


@dataclass(frozen=True)
class Accelerator:
    """One accelerator type. Peaks are dense, FLOP/s; 0 means that the precision is not supported."""

    name: str
    aliases: tuple[str, ...]
    vendor: str
    architecture: str
    release_year: int
    peak_fp32_flops: float
    peak_tf32_flops: float
    peak_fp16_flops: float
    peak_bf16_flops: float
    peak_fp8_flops: float
    peak_fp4_flops: float
    achievable_share: float
    """Largest share of the 16-bit peak that a large GEMM was measured to reach (MAMF), or an estimate."""
    memory_bytes: float
    memory_bytes_per_s: float
    intra_link: str
    intra_bytes_per_s: float
    """Per direction, of one accelerator to its neighbours in the link domain."""
    host_launch_factor: float
    """Kernel launch time relative to an x86 host."""
    link_domain_gpus: int
    """Largest number of accelerators that intra_link joins."""
    tdp_w: float
    idle_w: float
    usd_per_gpu_h: float
    """On-demand price of a hyperscaler where known."""
    source: str
    licence: str


@dataclass(frozen=True)
class Link:
    """One link type; `tier` is intra (between GPUs of a node), inter (all NICs of a node) or wan (one site)."""

    name: str
    aliases: tuple[str, ...]
    tier: str
    bytes_per_s: float
    """Per direction."""
    latency_s: float
    source: str
    licence: str

    @property
    def bandwidth_gbytes_per_s(self) -> float:
        """Bandwidth per direction, 1e9 bytes/s."""
        return self.bytes_per_s / 1e9


@dataclass(frozen=True)
class Model:
    """One neural network. `kind` is transformer, or convolution (then the two train_ columns describe it)."""

    name: str
    aliases: tuple[str, ...]
    kind: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn_hidden: int
    """Of one expert where n_experts > 0."""
    gated: bool
    vocab: int
    positions: int
    """Rows of the learned position table, 0 where positions are not learned."""
    tied: bool
    norm: str
    """layer (scale and shift), rms (scale) or batch (counted in stated_params)."""
    bias: bool
    causal: bool
    n_experts: int
    topk: int
    n_dense_layers: int
    """Layers with a dense FFN of dense_ffn_hidden in a model with experts."""
    dense_ffn_hidden: int
    shared_ffn_hidden: int
    """FFN width of the experts that see every token."""
    expert_latent_hidden: int
    """Width that tokens are projected to on their way to the experts and back, 0 = hidden."""
    latent_attention_params: int
    """Attention weights of one layer where they are low-rank (multi-head latent attention), 0 = by the formula."""
    extra_params: int
    """What the formula does not see: pooler, patch embedding, token types."""
    head_share: float
    """Share of the positions that reach the vocabulary head (BERT: the masked ones); 3 with two heads for later tokens."""
    train_flops_per_sample: float
    train_bytes_per_sample: float
    """HBM traffic of one training sample at 16 bit."""
    stated_params: int
    default_seq_len: int
    source: str
    licence: str

    def __post_init__(self) -> None:
        if self.kind not in ("transformer", "convolution"):
            raise ScenarioError(f"model {self.name!r}: kind {self.kind!r} must be transformer or convolution")
        if self.kind == "transformer" and (self.heads < 1 or self.kv_heads < 1 or self.heads % self.kv_heads):
            raise ScenarioError(f"model {self.name!r}: kv_heads={self.kv_heads} must divide heads={self.heads}")

    @property
    def _norm_params(self) -> int:
        return self.hidden * (2 if self.norm == "layer" else 1)

    def _ffn_params(self, width: int, outside: int = 0) -> int:
        outside = outside or self.hidden
        weights = (3 if self.gated else 2) * outside * width
        return weights + ((2 if self.gated else 1) * width + outside if self.bias else 0)

    @property
    def attention_params(self) -> int:
        """Of one layer: query, key, value and output projections; grouped queries share keys and values."""
        if self.latent_attention_params:
            return self.latent_attention_params
        q, kv, h = self.heads * self.head_dim, self.kv_heads * self.head_dim, self.hidden
        return 2 * h * q + 2 * h * kv + ((q + 2 * kv + h) if self.bias else 0)

    @property
    def expert_hidden(self) -> int:
        """Width of a token inside the experts."""
        return self.expert_latent_hidden or self.hidden

    @property
    def expert_params(self) -> int:
        """Of one expert of one layer."""
        return self._ffn_params(self.ffn_hidden, self.expert_hidden)

    @property
    def shared_layer_params(self) -> int:
        """Of one layer of the main kind without its routed experts: attention, norms, router, shared experts or FFN."""
        ffn = self.hidden * self.n_experts + self._ffn_params(self.shared_ffn_hidden) * (self.shared_ffn_hidden > 0)
        if self.n_experts == 0:
            ffn = self._ffn_params(self.ffn_hidden)
        return self.attention_params + 2 * self._norm_params + ffn

    @property
    def dense_layer_params(self) -> int:
        """Of one of the `n_dense_layers`."""
        return self.attention_params + 2 * self._norm_params + self._ffn_params(self.dense_ffn_hidden)

    @property
    def embedding_params(self) -> int:
        """Token and position tables and what belongs to neither layer nor head."""
        return (self.vocab + self.positions) * self.hidden + self.extra_params

    @property
    def head_params(self) -> int:
        """The vocabulary head where it is not the token table, and the last norm."""
        return (0 if self.tied else self.vocab * self.hidden) + self._norm_params

    @property
    def n_params(self) -> int:
        """All parameters; exact (Llama-2-7B 6,738,415,616)."""
        if self.kind == "convolution":
            return self.stated_params
        main = self.layers - self.n_dense_layers
        layers = main * (self.shared_layer_params + self.n_experts * self.expert_params)
        layers += self.n_dense_layers * self.dense_layer_params
        return layers + self.embedding_params + self.head_params

    @property
    def n_active_params(self) -> int:
        """Parameters that one token meets."""
        if self.n_experts == 0:
            return self.n_params
        idle = (self.layers - self.n_dense_layers) * (self.n_experts - self.topk) * self.expert_params
        return self.n_params - idle


@dataclass(frozen=True)
class Stack:
    """Constants of one software stack on one kind of host. Shares are of datasheet figures unless said otherwise."""

    name: str
    aliases: tuple[str, ...]
    family: str
    gemm_efficiency: float
    """Share of the achievable share that layer GEMMs reach before the cap at 0.95."""
    operand_passes: float
    """HBM passes over the operands of a GEMM."""
    elementwise_passes: float
    """HBM passes over one activation (tokens x hidden) per layer, forward, of all element-wise work."""
    attention_rate: float
    """Share of the 16-bit peak of fused attention."""
    bmm_rate: float
    """Share of the 16-bit peak of the batched GEMMs of unfused attention."""
    score_passes: float
    """HBM passes over the attention scores when attention is not fused."""
    launch_s: float
    """CPU time to launch one pass of one layer."""
    intra_rate: float
    inter_rate: float
    tp_exposed: float
    """Share of tensor-parallel communication that is not overlapped with the GEMMs it feeds."""
    tp_latency_s: float
    dp_exposed: float
    """Multiplies the bytes of the gradient exchange."""
    dp_hidden: float
    """Gradient exchange hides behind this share of one micro-batch's backward seconds."""
    p2p_exposed: float
    sharded_hidden: float
    """Gathers of sharded parameters hide behind this share of compute."""
    sharded_slowdown: float
    """Extra compute time while gathers run beside it."""
    straggler: float
    """Relative step time added per doubling of the number of nodes."""
    full_recompute: float
    """Cost of full recomputation in forward passes."""
    selective_recompute: float
    """Cost of selective recomputation in forward GEMM passes; attention comes on top where scores are dropped."""
    head_passes: float
    """HBM passes over fp32 logits."""
    cast_passes: float
    """HBM passes over activations for casting to 8 bits and below."""
    expert_fixed_tokens: float
    """A grouped GEMM of n tokens per expert costs as one of n + this many."""
    expert_gemm_rate: float
    """Rate of grouped expert GEMMs relative to that of the other layer GEMMs."""
    expert_launch: float
    """Launch time of a layer with experts relative to one without."""
    expert_permute_passes: float
    expert_link_rate: float
    """Multiplies the time of the all-to-alls inside a node or NVLink domain."""
    expert_inter_rate: float
    """Multiplies the time of the all-to-alls between nodes."""
    expert_interleaved: float
    """Share of the all-to-alls that is not overlapped where stages are interleaved: one micro-batch's exchange runs under
    another's compute."""
    optimizer_passes: float
    """HBM bytes per local parameter of an optimizer step."""
    fixed_s: float
    """Per step: data loader, logging, loss scale."""
    convolution_efficiency: float
    input_samples_per_s: float
    """Cap of the input pipeline per GPU for convolution networks, 0 = none."""
    is_flash: bool
    skips_masked: bool
    launch_blocks: bool
    band_low: float
    """Measured over predicted time, 10th percentile over rows the stack was not fitted on."""
    band_high: float
    source: str
    licence: str


@dataclass(frozen=True)
class Efficiency:
    """A fitted factor on the GEMM rate of an architecture at a precision, or of one accelerator at all precisions.

    `name`: precision:hopper/fp8 (classes: fp32, tf32, 16bit, fp8, mxfp8, nvfp4), accelerator:NAME, memory:hopper (HBM
    rate) or conv:ampere/tf32 (convolutions).
    """

    name: str
    aliases: tuple[str, ...]
    factor: float
    n_rows: int
    """Measured rows behind it; 0 = prior."""
    source: str
    licence: str


@dataclass(frozen=True)
class EventPreset:
    """Fields of a cause of events that reproduce published rates, and those rates."""

    name: str
    aliases: tuple[str, ...]
    kind: str
    """Kind of the cause, e.g. failures."""
    settings: str
    """Flow mapping (YAML) of the cause's fields."""
    published: str
    """Flow mapping (YAML) of figure (see `hetenv.events.rates`) -> published value."""
    source: str
    licence: str

    @property
    def fields(self) -> dict[str, Any]:
        """The cause's fields."""
        return _mapping(self.settings)

    @property
    def figures(self) -> dict[str, float]:
        """Figure -> published value."""
        return {name: float(value) for name, value in _mapping(self.published).items()}


def _mapping(text: str) -> dict[str, Any]:
    found = yaml.safe_load(text)
    if not isinstance(found, dict):
        raise ValueError(f"{text!r} is no mapping such as {{mtbf_h: 100}}")
    return found

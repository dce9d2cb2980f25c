"""The matrices of a model: how large each is, and how many ranks split it.

Sharing follows vLLM's layers: projections are split, MLA's first projections, routers, norms and
the sparse indexer are whole on every rank (0.32.0, model_executor/models).
"""

from typing import NamedTuple

from inventory.base import NotKnownError, Unknown, known, need
from inventory.common.units import ceil_div, round_up
from inventory.fit.memory.ignored import Ignored, modules
from inventory.fit.memory.kv import kv_shape
from inventory.fit.memory.span import Guess
from inventory.fit.model.architecture import Architecture, Mla, Quantisation
from inventory.fit.model.quantisation import quantisation
from inventory.fit.settings.settings import EngineSettings

MXFP4_PAD = 256
"""Widths of experts under MXFP4 are padded to this: gpt-oss-120b printed 64.38 GiB and 20b 13.47
where the plain width of 2880 gives 60.7 and 12.8 (llm-d-planner, docs/empirical-vllm-memory)."""

VISION_LIKELY, VISION_MOST = 0.9e9, 2.0e9
"""Bytes of an image encoder that the configuration does not describe. Printed weights less the
text model's: 0.91 GB Mistral-Small-3.1, 0.9 Kimi-K2.5, 1.2 gemma-3-27b (NOTES.md cases)."""

_ROTARY_BYTES = 2


class Piece(NamedTuple):
    """Matrices of one kind in one layer, or outside the layers."""

    name: str
    size: Guess
    """Bytes."""
    share: int
    """Ranks that split it; 1 where every rank has the whole."""
    stored: bool = True
    """Whether the files hold it. Loading makes the others."""


def absorbed(architecture: Architecture, settings: EngineSettings) -> float:
    """Bytes a rank of what MLA makes while loading: its second projection again, unquantised
    (vLLM 0.32.0 attention/mla_attention.py, W_UK and W_UV)."""
    mla, heads = architecture.mla, architecture.heads
    if mla is None or isinstance(heads, Unknown):
        return 0.0
    if isinstance(mla.nope, Unknown) or isinstance(mla.value, Unknown):
        return 0.0
    layers = sum(kind == "full" for kind in architecture.kinds)
    per_layer = mla.kv_rank * heads * (mla.nope + mla.value) * settings.element_bytes
    return per_layer * layers / settings.tp / settings.pp


def rotary(architecture: Architecture) -> float:
    """Bytes of the table of rotary positions, one for all layers."""
    width = architecture.mla.rope if architecture.mla else architecture.head_dim
    return float(known(architecture.context, 0) * known(width, 0) * _ROTARY_BYTES)


class Matrices:
    """The matrices of one architecture, as one set of settings loads them.

    Every method raises NotKnownError if it needs an unknown dimension.
    """

    def __init__(self, architecture: Architecture, settings: EngineSettings) -> None:
        self._a = architecture
        self._settings = settings
        self._hidden = need(architecture.hidden)
        self._plain = float(settings.element_bytes)
        scheme = architecture.quantisation
        if scheme is None and settings.quantization is not None:
            scheme = quantisation({"quant_method": settings.quantization})
        self._scheme: Quantisation | None = scheme
        named = scheme.ignored if scheme else ()
        self._doubt = isinstance(named, Unknown)
        self._ignored = Ignored(known(named, ()))
        self._only = Ignored(scheme.only) if scheme is not None and scheme.only else None
        self._expert_layers = frozenset(architecture.experts.layers if architecture.experts else ())

    def layer(self, index: int) -> list[Piece]:
        """The pieces of one layer."""
        split, whole = self._attention(index)
        each = self._bytes("attention", index)
        return [
            Piece("attention", each * split, self._settings.tp),
            Piece("attention, first projections", each * whole, 1),
            self.plain("norms", 2 * self._hidden, 1),
            *self._mlp(index),
        ]

    def plain(self, name: str, count: float, share: int) -> Piece:
        """So many weights in the model's own type."""
        return Piece(name, Guess.exactly(count * self._plain), share)

    def vision(self) -> list[Piece]:
        """The image encoder, by the rule of a plain transformer."""
        encoder = self._a.vision
        if encoder is None or self._settings.language_model_only:
            return []
        share = 1 if self._settings.vision_data_parallel else self._settings.tp
        if isinstance(encoder.layers, Unknown) or isinstance(encoder.hidden, Unknown):
            unsaid = Guess(0.0, VISION_LIKELY, VISION_MOST) * (self._plain / 2)
            return [Piece("vision", unsaid, share)]
        inner = known(encoder.intermediate, 4 * encoder.hidden)
        size = encoder.layers * encoder.hidden * (4 * encoder.hidden + 2 * inner) * self._plain
        # The projector into the text model comes on top, and in some encoders a gated MLP.
        return [Piece("vision", Guess(size, 1.15 * size, 1.5 * size), share)]

    def draft(self) -> list[Piece]:
        """Layers of multi-token prediction: the last layer again, and two matrices to join."""
        number = self._a.draft_layers
        if not number:
            return []
        pieces = [self.plain("draft", number * 2 * self._hidden**2, self._settings.tp)]
        for piece in self.layer(need(self._a.layers) - 1):
            low, high = number * piece.size.low, number * piece.size.high
            if piece.name == "experts" and self._scheme is not None and self._doubt:
                # Quantisers of 4 bits mostly leave these layers alone (GLM-5.1-NVFP4-MTP).
                high = low * self._plain / self._packed()
            pieces.append(Piece("draft", Guess(low, high, high), piece.share))
        return pieces

    def _packed(self) -> float:
        """Bytes of one quantised weight with its scales."""
        scheme = self._scheme
        if scheme is None or isinstance(scheme.weight_bits, Unknown):
            return self._plain
        packed = (scheme.weight_bits + scheme.scale_bits) / 8
        if scheme.block:
            packed += 4 / (scheme.block[0] * scheme.block[1])
        return packed

    def _bytes(self, role: str, layer: int) -> Guess:
        """Bytes of one weight."""
        plain, scheme = self._plain, self._scheme
        if scheme is None:
            return Guess.exactly(plain)
        if isinstance(scheme.weight_bits, Unknown):
            return Guess(plain / 4, plain / 2, plain)
        names = modules(role, layer, self._a.experts)
        excepted = any(self._ignored.covers(module) for module in names)
        if excepted or (self._only and not any(self._only.covers(module) for module in names)):
            return Guess.exactly(plain)
        packed = self._packed()
        if role == "experts" and scheme.expert_bits is not None:
            packed = scheme.expert_bits / 8
        if self._doubt and role in {"attention", "shared"}:
            # Where the exceptions are not said: checkpoints of mixtures of experts mostly
            # quantise the experts alone (nvidia/MiniMax-M2.5-NVFP4, moonshotai/Kimi-K2.5), dense
            # ones everything (RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic).
            return Guess(packed, plain if self._a.experts else packed, plain)
        return Guess.exactly(packed)

    def _mlp(self, index: int) -> list[Piece]:
        a, settings, hidden = self._a, self._settings, self._hidden
        if a.kinds and a.kinds[index] == "none":
            return []
        moe = a.experts
        if moe is None or index not in self._expert_layers:
            count = (3 if a.gated else 2) * hidden * need(a.intermediate)
            return [Piece("dense MLP", self._bytes("dense", index) * count, settings.tp)]
        width = need(moe.intermediate)
        if self._scheme is not None and self._scheme.method == "mxfp4":
            width = round_up(ceil_div(width, settings.tp), MXFP4_PAD) * settings.tp
        routed = self._bytes("experts", index) * (3 * hidden * width * moe.count)
        # MiniMax-M2 keeps its routers in 32 bit (vLLM 0.32.0 models/minimax_m2.py).
        router = 4.0 if "MiniMaxM2" in known(a.name, "") else self._plain
        pieces = [
            Piece("experts", routed, settings.tp * settings.dp if settings.ep else settings.tp),
            Piece("router", Guess.exactly(hidden * moe.count * router), 1),
        ]
        if moe.shared_intermediate:
            shared = self._bytes("shared", index) * (3 * hidden * moe.shared_intermediate)
            pieces.append(Piece("shared experts", shared, settings.tp))
        return pieces

    def _attention(self, index: int) -> tuple[float, float]:
        """Weights of a layer's attention: split over ranks, whole on each."""
        a = self._a
        kind = a.kinds[index] if a.kinds else "full"
        if kind == "none":
            return 0.0, 0.0
        if kind == "linear":
            return self._linear(), 0.0
        if a.mla is not None:
            return self._latent(a.mla)
        heads = need(a.heads)
        kv, dim, value = kv_shape(a, kind)
        # A rank holds at least one pair of key and value: with more ranks than heads they repeat.
        kv = max(kv, self._settings.tp)
        queries = 2 if a.gated_attention and kind == "full" else 1
        per_hidden = queries * heads * dim + kv * (dim + value) + heads * value
        return float(self._hidden * per_hidden), 0.0

    def _latent(self, mla: Mla) -> tuple[float, float]:
        hidden = self._hidden
        if isinstance(self._a.heads, Unknown):
            raise NotKnownError(Unknown(unknown="num_attention_heads is not in config.json"))
        heads, nope, value = self._a.heads, need(mla.nope), need(mla.value)
        query = nope + mla.rope
        split = heads * value * hidden + mla.kv_rank * heads * (nope + value)
        whole = hidden * (mla.kv_rank + mla.rope)
        if mla.q_rank is None:
            split += hidden * heads * query
        else:
            split += mla.q_rank * heads * query
            whole += hidden * mla.q_rank
        indexer = self._a.indexer
        if indexer is not None and not isinstance(indexer.heads, Unknown):
            whole += (mla.q_rank or hidden) * indexer.heads * indexer.head_dim
            whole += hidden * (indexer.head_dim + indexer.heads)
        return float(split), float(whole)

    def _linear(self) -> float:
        state = need(self._a.state)
        if state is None:
            raise NotKnownError(Unknown(unknown="a linear layer without a state"))
        values = state.value_heads * state.value_dim
        # Inputs of the convolution, the gate, two numbers a head, and the output.
        inner = self._hidden * (state.conv_channels + 2 * values + 2 * state.value_heads)
        return float(inner + state.conv_channels * state.conv_kernel)

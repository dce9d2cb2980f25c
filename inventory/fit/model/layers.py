"""Which layer looks back how far: the many ways in which config.json says it."""

from inventory.base import Unknown
from inventory.fit.model.architecture import LayerKind
from inventory.fit.model.reading import Fields, as_texts

_KINDS: dict[str, LayerKind] = {
    "full_attention": "full",
    "attention": "full",
    "global": "full",
    "deepseek_sparse_attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
    "mamba": "linear",
    "mamba2": "linear",
    "conv": "linear",
    "recurrent": "linear",
    "moe": "none",
    "mlp": "none",
}
"""Words of ``layer_types`` and ``layers_block_type``
(transformers configuration_utils.ALLOWED_LAYER_TYPES, and the models of Jamba's family)."""

_PATTERN_LETTERS: dict[str, LayerKind] = {"M": "linear", "*": "full", "-": "none", "E": "none"}
"""Letters of ``hybrid_override_pattern`` (Nemotron-H)."""

_EVERY_NTH_IS_FULL: tuple[tuple[str, int], ...] = (
    ("gemma2", 2),
    ("gemma3", 6),
    ("gptoss", 2),
    ("cohere2", 4),
)
"""Families whose older files name a window but no pattern: the layer whose number (from one) is a
multiple sees everything (transformers' configuration of each)."""

_MOST_LAYERS = 4096


def layer_kinds(fields: Fields, family: str, layers: int) -> tuple[tuple[LayerKind, ...], str]:
    """The kind of every layer, and a remark where the file leaves doubt.

    + family: class and model type in lower case without punctuation, e.g. "gemma3forcausallm"
    """
    if layers > _MOST_LAYERS:
        return (), f"{layers} layers: more than any model has"
    for reading in (_named, _linear_lists, _letters, _type_list):
        kinds = reading(fields, layers)
        if kinds is not None:
            if len(kinds) == layers:
                return tuple(kinds), ""
            wrong = f"the list of layer kinds has {len(kinds)} entries for {layers} layers"
            return _all("full", layers), wrong
    return _by_rule(fields, family, layers), ""


def _named(fields: Fields, _layers: int) -> list[LayerKind] | None:
    names = as_texts(fields.raw("layer_types", "layers_block_type"))
    if not names:
        return None
    return [_KINDS.get(name, "full") for name in names]


def _linear_lists(fields: Fields, layers: int) -> list[LayerKind] | None:
    # Kimi-Linear: layer numbers from one.
    full = fields.mapping("linear_attn_config").get("full_attn_layers")
    if not isinstance(full, list):
        return None
    return ["full" if number in full else "linear" for number in range(1, layers + 1)]


def _letters(fields: Fields, _layers: int) -> list[LayerKind] | None:
    pattern = fields.text("hybrid_override_pattern")
    if not pattern:
        return None
    return [_PATTERN_LETTERS.get(letter, "full") for letter in pattern[: _MOST_LAYERS + 1]]


def _type_list(fields: Fields, _layers: int) -> list[LayerKind] | None:
    # MiniMax-Text-01 and M2: 1 is full attention, 0 linear. MiMo-V2: 1 slides, 0 is full.
    for name, one, zero in (
        ("attn_type_list", "full", "linear"),
        ("hybrid_layer_pattern", "sliding", "full"),
    ):
        marks = fields.raw(name)
        if isinstance(marks, list) and marks and all(mark in (0, 1) for mark in marks):
            kinds: dict[int, LayerKind] = {1: one, 0: zero}  # type: ignore[dict-item]
            return [kinds[int(mark)] for mark in marks]
    return None


def _by_rule(fields: Fields, family: str, layers: int) -> tuple[LayerKind, ...]:
    interval = fields.optional("full_attention_interval")
    if interval:
        return _pattern("linear", interval, layers)
    if fields.optional("attention_chunk_size") and "llama4" in family:
        every = fields.optional("no_rope_layer_interval") or 4
        return _pattern("chunked", every, layers)
    unused = fields.raw("use_sliding_window") is False
    if unused or isinstance(fields.count("sliding_window"), Unknown):
        return _all("full", layers)
    nth = fields.optional("sliding_window_pattern") or next(
        (n for part, n in _EVERY_NTH_IS_FULL if part in family), None
    )
    if nth:
        return _pattern("sliding", nth, layers)
    if fields.flag("use_sliding_window"):
        first = min(layers, fields.optional("max_window_layers") or 0)
        return _all("full", first) + _all("sliding", layers - first)
    return _all("sliding", layers)


def _all(kind: LayerKind, layers: int) -> tuple[LayerKind, ...]:
    return (kind,) * layers


def _pattern(kind: LayerKind, nth: int, layers: int) -> tuple[LayerKind, ...]:
    """Every nth layer, counted from one, sees everything."""
    return tuple(kind if number % nth else "full" for number in range(1, layers + 1))

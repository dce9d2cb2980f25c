"""Safetensors headers: the exact bytes of a checkpoint, without reading its weights.

A file starts with eight bytes, the little-endian length of a JSON text that follows; the text
names every tensor with its type, shape and place (safetensors 0.8, README "Format").
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from inventory.base import Unknown
from inventory.common.safetensors import LARGEST_HEADER, LENGTH_BYTES
from inventory.fit.model.architecture import Dimension, TensorSums
from inventory.fit.model.reading import as_mapping


class Tensor(NamedTuple):
    """One tensor of a header."""

    dtype: str
    shape: tuple[int, ...]
    size: int
    """Bytes in the file."""


Header = Mapping[str, Tensor]
"""The tensors of one file by name."""


def header_length(prefix: bytes) -> int | Unknown:
    """How many bytes of header follow the first eight.

    + prefix: the beginning of the file, eight bytes or more

    >>> header_length(b"version https://git-lfs").unknown
    'a git-lfs pointer, not weights: the download did not fetch the file itself'
    """
    if len(prefix) < LENGTH_BYTES:
        return Unknown(unknown=f"{len(prefix)} bytes: shorter than the length field")
    if prefix.startswith(b"version "):
        return Unknown(
            unknown="a git-lfs pointer, not weights: the download did not fetch the file itself"
        )
    length = int.from_bytes(prefix[:LENGTH_BYTES], "little")
    if not 2 <= length <= LARGEST_HEADER:  # noqa: PLR2004
        return Unknown(unknown=f"a header of {length} bytes is beyond the format's limit")
    return length


def read_header(prefix: bytes) -> Header | Unknown:
    """The tensors that a file holds.

    + prefix: the first ``8 + header_length`` bytes of the file, or more

    >>> read_header((2).to_bytes(8, "little") + b"{}")
    {}
    """
    length = header_length(prefix)
    if isinstance(length, Unknown):
        return length
    body = prefix[LENGTH_BYTES : LENGTH_BYTES + length]
    if len(body) < length:
        return Unknown(unknown=f"the header has {length} bytes and {len(body)} of them are here")
    try:
        entries = json.loads(body)
    except (ValueError, RecursionError):
        return Unknown(unknown="the header is not JSON")
    if not isinstance(entries, dict):
        return Unknown(unknown="the header is not a JSON object")
    tensors: dict[str, Tensor] = {}
    for name, raw in entries.items():
        if name == "__metadata__":
            continue
        tensor = _tensor(raw)
        if tensor is None:
            return Unknown(unknown=f"the entry of tensor {name[:60]!r} is damaged")
        tensors[name] = tensor
    return tensors


def _tensor(raw: object) -> Tensor | None:
    entry = as_mapping(raw)
    dtype = entry.get("dtype")
    shape, place = _counts(entry.get("shape")), _counts(entry.get("data_offsets"))
    if not isinstance(dtype, str) or shape is None or place is None:
        return None
    if len(place) != 2 or place[1] < place[0]:  # noqa: PLR2004
        return None
    return Tensor(dtype, shape, place[1] - place[0])


def _counts(value: object) -> tuple[int, ...] | None:
    """Whole numbers that are not negative; None for anything else."""
    if not isinstance(value, list):
        return None
    for item in value:
        if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < 1 << 63:
            return None
    return tuple(value)


_ROLES: tuple[tuple[str, re.Pattern[str]], ...] = (
    # In this order: a draft layer has experts of its own, a vision tower its own norms.
    ("draft", re.compile(r"(^|\.)(mtp|nextn|eagle)|(^|\.)mtp_")),
    (
        "vision",
        re.compile(r"(^|\.)(vision|visual|vit|image|audio|mm_projector|multi_modal_projector)"),
    ),
    ("experts", re.compile(r"\.experts?\.\d|\.experts\.(gate|up|down|w)")),
    ("first_stage", re.compile(r"(embed_tokens|word_embeddings|\bwte|embed_in)\.")),
    ("last_stage", re.compile(r"(^|\.)(lm_head|embed_out|output)\.weight")),
    (
        "replicated",
        re.compile(
            r"norm|\.ln|layernorm|(mlp|moe|ffn|feed_forward)\.gate\.|router|_a_proj|indexer"
            r"|score_correction|rotary|inv_freq|sinks"
        ),
    ),
)
_LAYER = re.compile(r"(?:^|\.)layers\.(\d{1,6})\.")


def tensor_sums(headers: Mapping[str, Header], layers: Dimension) -> TensorSums:
    """Bytes of a checkpoint by how ranks share them.

    + layers: of the model proper: tensors of a layer beyond it belong to multi-token prediction
    """
    sums = dict.fromkeys(TensorSums.model_fields, 0)
    for header in headers.values():
        for name, tensor in header.items():
            sums[_role(name, layers)] += tensor.size
    return TensorSums(**sums)


def _role(name: str, layers: Dimension) -> str:
    layer = _LAYER.search(name)
    beyond = layer and not isinstance(layers, Unknown) and int(layer.group(1)) >= layers
    if beyond and "vis" not in name:
        return "draft"
    return next((role for role, pattern in _ROLES if pattern.search(name)), "sharded")

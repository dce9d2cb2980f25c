"""What the stub reads of a model's folder: the numbers of its configuration, and its files."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MINIMAX_M25 = {
    "num_hidden_layers": 62,
    "num_attention_heads": 48,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 200064,
    "max_position_embeddings": 196608,
}
"""The numbers of MiniMax-M2.5, for a folder whose configuration says less."""

HEADER = 8
"""Bytes of the length that a safetensors file starts with."""


@dataclass(frozen=True)
class Model:
    """A model.

    + weights: bytes of its files
    + missing: files that the index names and that are not there
    + broken: what the safetensors library says of the first file that it cannot read
    """

    path: Path
    config: Mapping[str, Any]
    weights: int
    missing: tuple[str, ...]
    broken: str

    def number(self, name: str) -> int:
        """A number of the configuration."""
        return int(self.config.get(name) or MINIMAX_M25[name])

    @property
    def architecture(self) -> str:
        """The name of its class in vLLM."""
        return str((self.config.get("architectures") or ["MiniMaxM2ForCausalLM"])[0])

    def kv_bytes_per_token(self, ranks: int, cache_dtype: str) -> int:
        """Bytes of KV cache that a token takes on each rank.

        Heads are shared among the ranks, the latent of MLA is not (vLLM 0.32.0
        v1/kv_cache_interface.py:546, model_executor/layers/attention/mla_attention.py:1350).
        """
        width = 1 if cache_dtype.startswith("fp8") else 2
        layers = self.number("num_hidden_layers")
        latent = self.config.get("kv_lora_rank")
        if latent:
            return layers * (int(latent) + int(self.config.get("qk_rope_head_dim", 64))) * width
        heads = max(1, self.number("num_key_value_heads") // ranks)
        return layers * heads * 2 * self.number("head_dim") * width


def read_model(path: Path) -> Model:
    """Read a folder. Raises FileNotFoundError if it is none."""
    if not path.is_dir():
        raise FileNotFoundError(path)
    config: dict[str, Any] = {}
    if (path / "config.json").exists():
        config = json.loads((path / "config.json").read_text())
    index = path / "model.safetensors.index.json"
    named: set[str] = set()
    if index.exists():
        named = set(json.loads(index.read_text())["weight_map"].values())
    files = sorted(path.glob("*.safetensors"))
    return Model(
        path=path,
        config={**config, **config.get("text_config", {})},
        weights=sum(file.stat().st_size for file in files),
        missing=tuple(sorted(named - {file.name for file in files})),
        broken=next(filter(None, map(complaint, files)), ""),
    )


def complaint(file: Path) -> str:
    """What the safetensors library says of a file that it cannot read; empty if it can."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(HEADER)
        if len(start) < HEADER:
            return "header too small"
        (length,) = struct.unpack("<Q", start)
        if length > size:
            return "header too large"
        header = json.loads(stream.read(length))
    tensors = (value for name, value in header.items() if name != "__metadata__")
    end = max((tensor["data_offsets"][1] for tensor in tensors), default=0)
    return "" if HEADER + length + end == size else "incomplete metadata, file not fully covered"

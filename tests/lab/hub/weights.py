"""Small model repositories with the shape of real ones, for the local Hub to serve."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

DTYPE_BYTES = 1
"""Bytes of an F8_E4M3 element."""


def safetensors(name: str, size: int, seed: int = 0) -> bytes:
    """A valid safetensors file with one FP8 tensor of ``size`` bytes of noise."""
    tensor = {"dtype": "F8_E4M3", "shape": [size // DTYPE_BYTES], "data_offsets": [0, size]}
    header = json.dumps({name: tensor}).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + random.Random(seed).randbytes(size)


def write_model(
    folder: Path, shards: int = 3, shard_bytes: int = 64 * 1024, seed: int = 0
) -> tuple[str, ...]:
    """Write a sharded model: configuration, tokenizer, index, weights.

    + shard_bytes: of each shard's tensor; from 24 MB on the client asks for ranges of it when
      a download breaks (it reads in steps of 10 MiB)
    + seed: another seed gives other weights

    Returns the paths, sorted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"model-{n:05d}-of-{shards:05d}.safetensors" for n in range(1, shards + 1)]
    weight_map = {}
    for number, name in enumerate(names):
        tensor = f"model.layers.{number}.weight"
        (folder / name).write_bytes(safetensors(tensor, shard_bytes, seed * 1000 + number))
        weight_map[tensor] = name
    texts = {
        "config.json": {"architectures": ["MiniMaxM2ForCausalLM"], "model_type": "minimax_m2"},
        "generation_config.json": {"temperature": 1.0},
        "model.safetensors.index.json": {
            "metadata": {"total_size": shards * shard_bytes},
            "weight_map": weight_map,
        },
        "tokenizer_config.json": {"model_max_length": 4096},
    }
    for name, value in texts.items():
        (folder / name).write_text(json.dumps(value, indent=2) + "\n")
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "notes.md").write_text(f"Weights of seed {seed}.\n")
    return tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")))

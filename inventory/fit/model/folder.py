"""The files of a local folder that the fit needs of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inventory.base import Unknown
from inventory.common.safetensors import LENGTH_BYTES
from inventory.errors import DesiredStateError
from inventory.fit.model.architecture import Architecture
from inventory.fit.model.config import read_architecture
from inventory.fit.model.safetensors import Header, header_length, read_header

_SIDE = "hf_quant_config.json"


def architecture_in(folder: Path) -> Architecture:
    """The architecture of the model in a folder.

    + folder: holds config.json, and the weights or only the index of them
    + raises: DesiredStateError if config.json cannot be read
    """
    config = _json(folder / "config.json")
    if config is None:
        raise DesiredStateError(
            wanted=f"a model in {folder}",
            found="no config.json that can be read there",
            why="it holds the numbers that everything follows from",
            next_step="give the folder of the snapshot, the one with config.json in it",
        )
    files = {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()}
    headers = _headers(folder, files)
    indexed = _indexed(folder)
    if headers is None and indexed is not None:
        files = {name: size for name, size in files.items() if not name.endswith(".safetensors")}
        files["model.safetensors"] = indexed
    return read_architecture(config, files, headers, _json(folder / _SIDE))


def _headers(folder: Path, files: dict[str, int]) -> dict[str, Header] | None:
    """Headers of all weight files; None where one is missing or damaged."""
    index = _json(folder / "model.safetensors.index.json")
    named = index.get("weight_map") if index else None
    expected = set(named.values()) if isinstance(named, dict) else set()
    names = {name for name in files if name.endswith(".safetensors")}
    if not names or expected - names:
        return None
    headers: dict[str, Header] = {}
    for name in sorted(expected or names):
        with (folder / name).open("rb") as file:
            prefix = file.read(LENGTH_BYTES)
            length = header_length(prefix)
            if isinstance(length, Unknown):
                return None
            header = read_header(prefix + file.read(length))
        if isinstance(header, Unknown):
            return None
        headers[name] = header
    return headers


def _indexed(folder: Path) -> int | None:
    """Bytes of the weights by the index, which counts tensors and not the headers."""
    index = _json(folder / "model.safetensors.index.json")
    metadata = index.get("metadata") if index else None
    size = metadata.get("total_size") if isinstance(metadata, dict) else None
    return int(size) if isinstance(size, (int, float)) and size > 0 else None


def _json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None

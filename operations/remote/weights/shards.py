"""Whether an engine could load the files: index and headers against what is there.

The Hub's listing says what a complete snapshot is; an index is only one of its files, and some
name shards that were never uploaded. Counting names like ``model-00001-of-00126`` says nothing:
sets start at zero, carry an extra shard, or are named by another rule.
"""

import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from inventory.common.safetensors import LARGEST_HEADER, LENGTH_BYTES
from inventory.common.units import first_few


def problem_of(folder: Path, paths: Iterable[str]) -> str:
    """What would keep an engine from loading a snapshot, as a sentence; empty for nothing."""
    listed = set(paths)
    problems = []
    for path in sorted(listed):
        if path.endswith(".safetensors.index.json"):
            problems += _index(folder, path, listed)
        elif path.endswith(".safetensors"):
            problems += _header(folder, path)
    return first_few(problems, "; ", "; and {} more")


def _index(folder: Path, path: str, listed: set[str]) -> list[str]:
    try:
        named = set(json.loads((folder / path).read_text())["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return [f"{path} is not an index ({type(error).__name__})"]
    above = path.rpartition("/")[0]
    absent = sorted(
        str(name) for name in named if (f"{above}/{name}" if above else name) not in listed
    )
    if not absent:
        return []
    return [
        f"{path} names {len(named)} shards and {len(absent)} of them are not in the repository: "
        f"{first_few(absent)}"
    ]


def _header(folder: Path, path: str) -> list[str]:
    """Whether a shard is exactly as long as its header says: ``8 + header + last offset``."""
    try:
        with (folder / path).open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(LENGTH_BYTES))
            if length > LARGEST_HEADER:
                return [f"{path} has a header of {length} bytes: it is not a safetensors file"]
            header: dict[str, Any] = json.loads(stream.read(length))
            size = stream.seek(0, 2)
        spans = sorted(
            (int(tensor["data_offsets"][0]), int(tensor["data_offsets"][1]))
            for name, tensor in header.items()
            if name != "__metadata__"
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, struct.error):
        return [f"{path} has no safetensors header"]
    end = 0
    for first, last in spans:
        if first != end or last < first:
            return [f"the tensors of {path} do not cover it: a hole or an overlap at byte {end}"]
        end = last
    if size != LENGTH_BYTES + length + end:
        return [f"{path} has {size} bytes where its header speaks of {LENGTH_BYTES + length + end}"]
    return []

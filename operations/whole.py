"""Files on the controller that are either whole or not there."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace a file in one rename; its folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    if isinstance(content, str):
        draft.write_text(content)
    else:
        draft.write_bytes(content)
    draft.replace(path)

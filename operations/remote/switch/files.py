"""Small files that are either whole or not there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file in one rename; its folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(prefix=".boxwright.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w") as stream:
            stream.write(text)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        Path(draft).rename(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise

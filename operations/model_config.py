"""A model's configuration files, beside its lock: what the fit is computed from."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inventory.base import Unknown
from inventory.common.files import write_whole
from inventory.service import Model
from inventory.snapshot import Snapshot, SnapshotFile, lock_name

CONFIG = "config.json"
QUANTISATION = "hf_quant_config.json"
"""ModelOpt keeps here what config.json lacks."""


def model_config(
    model: Model, snapshot: Snapshot, name: str, locks: Path, *, token: str | None = None
) -> Mapping[str, Any] | Unknown | None:
    """One configuration file of a model, from beside its lock, else once from the Hub.

    + model: repository and revision
    + snapshot: the locked listing: the file is read only if its digest is the listed one
    + name: ``config.json`` or ``hf_quant_config.json``
    + locks: folder of the lock files
    + token: of the Hub
    + returns: the content; None where the listing has no such file; Unknown where it could not be
      had: the fit is then not computed, and the run goes on
    """
    file = next((one for one in snapshot.files if one.path == name), None)
    if file is None:
        return None
    path = locks / lock_name(model).replace(".json", f".{name}")
    content = path.read_bytes() if path.exists() else b""
    if not is_listed(content, file):
        fetched = _fetch(model, snapshot.commit, name, token)
        if isinstance(fetched, Unknown):
            return fetched
        if not is_listed(fetched, file):
            return Unknown(unknown=f"{name} from the Hub is not the listed one")
        content = fetched
        write_whole(path, content)
    try:
        parsed = json.loads(content)
    except ValueError as error:
        return Unknown(unknown=f"{name} is not JSON: {error}")
    return parsed if isinstance(parsed, dict) else Unknown(unknown=f"{name} is not a JSON object")


def is_listed(content: bytes, file: SnapshotFile) -> bool:
    """Whether a content is that of the listed file."""
    hasher = file.listed.hasher()
    hasher.update(content)
    return hasher.hexdigest() == file.listed.hex


def _fetch(model: Model, commit: str, name: str, token: str | None) -> bytes | Unknown:
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - see resolve.py

    try:
        with tempfile.TemporaryDirectory() as folder:
            path = hf_hub_download(
                model.repo,
                name,
                revision=commit,
                local_dir=folder,
                endpoint=model.endpoint,
                token=token or False,
            )
            return Path(path).read_bytes()
    except Exception as error:
        # The client lets through whatever the network, a proxy or a portal answers with.
        return Unknown(unknown=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")

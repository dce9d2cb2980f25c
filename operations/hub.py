"""The Hub, asked by the controller: once for a commit and its files, once for a configuration."""

import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inventory.base import Unknown
from inventory.common.files import write_whole
from inventory.errors import HubError
from inventory.service import Model
from inventory.snapshot import Snapshot, SnapshotFile, lock_name, lock_text, read_lock, short

# huggingface_hub is imported where it is used: that takes half a second, and a run with a lock
# file does without.

REQUEST_SECONDS = 20.0
"""Without a byte, before one request for the listing is given up. The client tries again."""

LISTING_SECONDS = 60.0
"""For the whole listing, before no further request is made."""

CONFIG_FILE = "config.json"
QUANTISATION_FILE = "hf_quant_config.json"
"""ModelOpt keeps here what config.json lacks."""


def hub_token() -> str | None:
    """The token of the person who runs this. It is never part of the desired state."""
    return os.environ.get("HF_TOKEN") or None


def endpoint_of(model: Model) -> str | None:
    """The Hub that is asked for a model; None for the client's own default."""
    return model.endpoint or os.environ.get("HF_ENDPOINT") or None


def locked_snapshot(model: Model, locks: Path, *, upgrade: bool = False) -> tuple[Snapshot, str]:
    """The snapshot of a model: from its lock file, or from the Hub and then into the lock file.

    + locks: folder of the lock files, part of the user's own git repository
    + upgrade: ask the Hub even where a lock exists
    + returns: the snapshot, and a sentence for the operator where the lock file changed
    + raises: DesiredStateError for a damaged lock, HubError where the Hub does not have it
    """
    path = locks / lock_name(model)
    before = read_lock(path.read_text(), str(path), model) if path.exists() else None
    if before is not None and not upgrade:
        return before, ""
    snapshot = list_snapshot(model)
    if snapshot == before:
        return snapshot, ""
    write_whole(path, lock_text(snapshot), mode=None)
    was = f"was {short(before.commit)}" if before else "new"
    return snapshot, f"{path}: {model.revision} is {snapshot.commit} ({was}); commit this file"


def list_snapshot(model: Model) -> Snapshot:
    """Commit, and every file with size and digest, as the Hub lists them.

    + raises: HubError
    """
    from huggingface_hub import HfApi  # noqa: PLC0415
    from huggingface_hub.hf_api import RepoFile  # noqa: PLC0415

    api = HfApi(endpoint=model.endpoint, token=hub_token() or False)
    try:
        with _impatient():
            commit = str(api.model_info(model.repo, revision=model.revision).sha)
            entries = list(
                api.list_repo_tree(model.repo, revision=commit, recursive=True, expand=False)
            )
    except Exception as error:
        # The client lets through whatever the network, a proxy or a portal answers with.
        raise _hub_error(model, *_meaning(error, model)) from None
    files = tuple(
        SnapshotFile(
            path=entry.path,
            size=entry.size,
            digest=f"sha256:{entry.lfs.sha256}" if entry.lfs else f"git-sha1:{entry.blob_id}",
        )
        for entry in entries
        if isinstance(entry, RepoFile)
    )
    if not files:
        raise _hub_error(model, "a commit without files", "choose another revision")
    return Snapshot(repo=model.repo, revision=model.revision, commit=commit, files=files)


@contextmanager
def _impatient() -> Iterator[None]:
    """Requests of the client that end: its listing waits for ever by itself (2.4.0)."""
    from huggingface_hub import get_session  # noqa: PLC0415

    began = time.monotonic()

    def limit(request: Any) -> None:
        if time.monotonic() - began > LISTING_SECONDS:
            raise TimeoutError(f"no whole listing within {LISTING_SECONDS:.0f} s")
        request.extensions["timeout"] = dict.fromkeys(
            ("connect", "read", "write", "pool"), REQUEST_SECONDS
        )

    session = get_session()
    before = session.event_hooks
    session.event_hooks = {**before, "request": [*before["request"], limit]}
    try:
        yield
    finally:
        session.event_hooks = before


def _meaning(error: Exception, model: Model) -> tuple[str, str]:
    """What was found, and what to do about it."""
    from huggingface_hub import errors  # noqa: PLC0415

    if isinstance(error, errors.GatedRepoError):
        return (
            f"a gated repository: {_words(error, 300)}",
            "accept the licence on the model's page and set HF_TOKEN in the environment of this "
            "command",
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            f"no repository {model.repo}, or a private one",
            "correct model.repo, or set HF_TOKEN in the environment of this command",
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return (
            f"no revision {model.revision} in {model.repo}",
            "correct model.revision: a branch, a tag or a 40-hex commit. A commit disappears when "
            "its author rewrites history",
        )
    return (
        f"no usable answer: {type(error).__name__}: {_words(error, 300)}",
        "check that this machine reaches the Hub (HF_ENDPOINT and proxies included), or put the "
        "lock file in place from a machine that does",
    )


def _words(error: Exception, most: int) -> str:
    return " ".join(str(error).split())[:most]


def _hub_error(model: Model, found: str, next_step: str) -> HubError:
    return HubError(
        wanted=f"the files of {model.repo} at {model.revision} from "
        f"{endpoint_of(model) or 'the Hub'}",
        found=found,
        why="without the listing nobody can say what complete means; nothing was touched",
        next_step=next_step,
    )


def model_config(
    model: Model, snapshot: Snapshot, name: str, locks: Path
) -> Mapping[str, Any] | Unknown | None:
    """One configuration file of a model: what the fit is computed from.

    It is kept beside the lock file, and taken once from the Hub.

    + snapshot: the locked listing: the file counts only if its digest is the listed one
    + name: :data:`CONFIG_FILE` or :data:`QUANTISATION_FILE`
    + locks: folder of the lock files
    + returns: the content; None where the listing has no such file; Unknown where it could not be
      had: then no fit is computed, and the run goes on
    """
    file = next((one for one in snapshot.files if one.path == name), None)
    if file is None:
        return None
    path = locks / lock_name(model).replace(".json", f".{name}")
    content = path.read_bytes() if path.exists() else b""
    if not _is_listed(content, file):
        fetched = _download(model, snapshot.commit, name)
        if isinstance(fetched, Unknown):
            return fetched
        if not _is_listed(fetched, file):
            return Unknown(unknown=f"{name} from the Hub is not the listed one")
        content = fetched
        write_whole(path, content, mode=None)
    try:
        parsed = json.loads(content)
    except ValueError as error:
        return Unknown(unknown=f"{name} is not JSON: {error}")
    return parsed if isinstance(parsed, dict) else Unknown(unknown=f"{name} is not a JSON object")


def _is_listed(content: bytes, file: SnapshotFile) -> bool:
    hasher = file.listed.hasher()
    hasher.update(content)
    return hasher.hexdigest() == file.listed.hex


def _download(model: Model, commit: str, name: str) -> bytes | Unknown:
    from huggingface_hub import hf_hub_download  # noqa: PLC0415

    try:
        with tempfile.TemporaryDirectory() as folder:
            path = hf_hub_download(
                model.repo,
                name,
                revision=commit,
                local_dir=folder,
                endpoint=model.endpoint,
                token=hub_token() or False,
            )
            return Path(path).read_bytes()
    except Exception as error:
        # The client lets through whatever the network, a proxy or a portal answers with.
        return Unknown(unknown=f"{type(error).__name__}: {_words(error, 200)}")

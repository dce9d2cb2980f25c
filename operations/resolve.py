"""From a branch or tag to a commit and its files: asked of the Hub once, by the controller."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inventory.common.files import write_whole
from inventory.errors import HubError
from inventory.service import Model
from inventory.snapshot import Snapshot, SnapshotFile, lock_name, lock_text, read_lock, short

REQUEST_SECONDS = 20.0
"""Without a byte, before one request for the listing is given up. The client tries again."""

LISTING_SECONDS = 60.0
"""For the whole listing, before no further request is made."""

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoFile


def locked_snapshot(
    model: Model, locks: Path, *, token: str | None = None, upgrade: bool = False
) -> tuple[Snapshot, str]:
    """The snapshot of a model: from its lock file, or from the Hub and then into the lock file.

    + model: repository and revision
    + locks: folder of the lock files, part of the user's own git repository
    + token: of the Hub, for a gated repository
    + upgrade: ask the Hub even where a lock exists
    + returns: the snapshot, and a sentence for the operator where the lock file changed
    + raises: DesiredStateError for a damaged lock, HubError where the Hub does not have it
    """
    path = locks / lock_name(model)
    before = read_lock(path.read_text(), str(path), model) if path.exists() else None
    if before is not None and not upgrade:
        return before, ""
    snapshot = list_snapshot(model, token)
    if snapshot == before:
        return snapshot, ""
    write_whole(path, lock_text(snapshot))
    was = f"was {short(before.commit)}" if before else "new"
    return snapshot, f"{path}: {model.revision} is {snapshot.commit} ({was}); commit this file"


def list_snapshot(model: Model, token: str | None) -> Snapshot:
    """Commit, and every file with size and digest, as the Hub lists them.

    + model: repository and revision
    + token: of the Hub
    + raises: HubError
    """
    # Here, because the import costs half a second and a run with a lock file does without.
    from huggingface_hub import HfApi  # noqa: PLC0415
    from huggingface_hub.errors import (  # noqa: PLC0415
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )
    from huggingface_hub.hf_api import RepoFile  # noqa: PLC0415

    api = HfApi(endpoint=model.endpoint, token=token or False)
    try:
        with _impatient():
            commit = str(api.model_info(model.repo, revision=model.revision).sha)
            entries: list[Any] = list(
                api.list_repo_tree(model.repo, revision=commit, recursive=True, expand=False)
            )
    except GatedRepoError as error:
        raise _hub_error(
            model,
            f"a gated repository: {_plain(error)}",
            "accept the licence on the model's page and set HF_TOKEN in the environment of this "
            "command",
        ) from None
    except RepositoryNotFoundError:
        raise _hub_error(
            model,
            f"no repository {model.repo}, or a private one",
            "correct model.repo, or set HF_TOKEN in the environment of this command",
        ) from None
    except RevisionNotFoundError:
        raise _hub_error(
            model,
            f"no revision {model.revision} in {model.repo}",
            "correct model.revision: a branch, a tag or a 40-hex commit. A commit disappears when "
            "its author rewrites history",
        ) from None
    except Exception as error:
        # The client lets through whatever the network, a proxy or a portal answers with.
        raise _hub_error(
            model,
            f"no usable answer: {type(error).__name__}: {_plain(error)}",
            "check that this machine reaches the Hub (HF_ENDPOINT and proxies included), or put "
            "the lock file in place from a machine that does",
        ) from None
    files = tuple(_file(entry) for entry in entries if isinstance(entry, RepoFile))
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


def _file(entry: RepoFile) -> SnapshotFile:
    digest = f"sha256:{entry.lfs.sha256}" if entry.lfs else f"git-sha1:{entry.blob_id}"
    return SnapshotFile(path=entry.path, size=entry.size, digest=digest)


def _plain(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _hub_error(model: Model, found: str, next_step: str) -> HubError:
    where = model.endpoint or os.environ.get("HF_ENDPOINT") or "the Hub"
    return HubError(
        wanted=f"the files of {model.repo} at {model.revision} from {where}",
        found=found,
        why="without the listing nobody can say what complete means; nothing was touched",
        next_step=next_step,
    )

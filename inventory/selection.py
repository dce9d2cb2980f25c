"""Which files of a repository are fetched: safetensors and text, unless more is asked for.

A pickle runs code when it is loaded, and Python beside a model runs when the engine is told to
trust it. A box gets them only if the desired state says so.
"""

from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from inventory.errors import DesiredStateError
from inventory.service import Service
from inventory.snapshot import Snapshot, SnapshotFile

_TEXT = frozenset(
    {"", ".json", ".jsonl", ".txt", ".md", ".jinja", ".jinja2", ".yaml", ".yml", ".toml", ".cfg"}
    | {".model", ".tiktoken", ".vocab", ".merges", ".bpe", ".spm", ".tokens", ".lst", ".csv"}
)
"""Text, and the tokenizers' own tables, which hold no code. No ending: LICENSE and such."""

_PICKLED = frozenset(
    {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".npy", ".npz", ".h5", ".ot"}
    | {".msgpack"}
)
"""Weights whose loaders can be made to run code."""

_CODE = frozenset({".py"})


def wanted(file: SnapshotFile, service: Service) -> bool:
    """Whether a service's box gets a file.

    + service: says whether pickled weights and remote code are asked for
    """
    ending = PurePosixPath(file.path).suffix.lower()
    model = service.model
    return (
        ending in _TEXT
        or ending == ".safetensors"
        or (ending in _CODE and service.engine.trust_remote_code)
        or (ending in _PICKLED and model.pickled_weights)
        or any(fnmatchcase(file.path, glob) for glob in model.also)
    )


def selected(snapshot: Snapshot, service: Service) -> tuple[Snapshot, tuple[str, ...]]:
    """The part of the snapshot that is fetched, and the paths that are left out.

    + raises: DesiredStateError where no weights would be left
    """
    files = tuple(file for file in snapshot.files if wanted(file, service))
    left_out = tuple(file.path for file in snapshot.files if not wanted(file, service))
    pickled = [path for path in left_out if PurePosixPath(path).suffix.lower() in _PICKLED]
    if pickled and not any(PurePosixPath(file.path).suffix == ".safetensors" for file in files):
        raise DesiredStateError(
            wanted=f"weights of {snapshot.repo} in safetensors",
            found=f"{len(pickled)} pickled files and no safetensors, such as {pickled[0]}",
            why="a pickle runs whatever code its author put there, as soon as it is loaded; "
            "nothing was touched",
            next_step="choose a repository with safetensors, or trust this one: "
            "model.pickled_weights=True",
        )
    return snapshot.model_copy(update={"files": files}), left_out

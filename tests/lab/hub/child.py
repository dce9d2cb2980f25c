"""What a test runs in a process of its own: the real client, several cases at once.

Reads ``[{"name", "call", "arguments"}, …]`` from standard input and prints
``{name: {"value"} | {"error", "message"}}``. The client reads its environment when it is
imported, which is why this is a program.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import huggingface_hub


def _digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _download(**arguments: Any) -> str:
    """The sha256 of what the client says it has downloaded."""
    return _digest(huggingface_hub.hf_hub_download(**arguments))


def _snapshot(**arguments: Any) -> dict[str, str]:
    """The sha256 of every file of a snapshot."""
    folder = Path(huggingface_hub.snapshot_download(**arguments))
    return {
        path.relative_to(folder).as_posix(): _digest(str(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".cache" not in path.relative_to(folder).parts
    }


def _info(**arguments: Any) -> dict[str, Any]:
    info = huggingface_hub.HfApi().model_info(files_metadata=True, **arguments)
    files = {
        file.rfilename: [file.size, file.lfs.sha256 if file.lfs else file.blob_id]
        for file in info.siblings or []
    }
    return {"sha": info.sha, "files": files, "gated": info.gated}


def _tree(**arguments: Any) -> list[str]:
    tree = huggingface_hub.HfApi().list_repo_tree(**arguments)
    return [f"{type(item).__name__} {item.path}" for item in tree]


def _refs(**arguments: Any) -> dict[str, str]:
    refs = huggingface_hub.HfApi().list_repo_refs(**arguments)
    return {ref.name: ref.target_commit for ref in [*refs.branches, *refs.tags]}


def _paths_info(**arguments: Any) -> list[str]:
    return [item.path for item in huggingface_hub.HfApi().get_paths_info(**arguments)]


def _verify(**arguments: Any) -> dict[str, Any]:
    found = huggingface_hub.HfApi().verify_repo_checksums(**arguments)
    return {
        "checked": found.checked_count,
        "mismatches": [item["path"] for item in found.mismatches],
        "missing": list(found.missing_paths),
    }


CALLS: Mapping[str, Callable[..., Any]] = {
    "download": _download,
    "snapshot": _snapshot,
    "info": _info,
    "tree": _tree,
    "refs": _refs,
    "paths_info": _paths_info,
    "verify": _verify,
}


def _run(case: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"value": CALLS[case["call"]](**case["arguments"])}
    except Exception as error:  # whatever the client raises is what the test asks about
        return {"error": type(error).__name__, "message": str(error)}


def main() -> None:
    """Run the cases, at most sixteen at once."""
    cases = json.load(sys.stdin)
    with ThreadPoolExecutor(16) as pool:
        results = pool.map(_run, cases)
        json.dump(
            {case["name"]: result for case, result in zip(cases, results, strict=True)}, sys.stdout
        )


if __name__ == "__main__":
    main()

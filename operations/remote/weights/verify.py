"""Hash every byte of a snapshot again: against bad memory, bad disks and edits that hide.

On the box, by hand too::

    python -m operations.remote.weights.verify --folder /shared/models/ORG/NAME/COMMIT

Reads the manifest, hashes all files on all cores, and strikes wrong ones out of the manifest: the
next run of boxwright sees them as changed and fetches them again. Exit status 0 where every byte is
right, 1 where one is not.
"""

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from inventory.common.files import write_whole
from inventory.common.paths import MANIFEST
from inventory.common.units import GIB
from operations.remote.weights.hashing import are_good
from operations.remote.weights.shards import problem_of
from operations.remote.weights.survey import manifest_in, proven_in


def wrong_files(folder: Path, workers: int) -> tuple[list[str], int]:
    """The files that are not what the manifest says, and the bytes that were hashed."""
    files = list(proven_in(folder).values())
    verdicts = are_good(folder, files, workers)
    wrong = sorted(file.path for file, good in zip(files, verdicts, strict=True) if not good)
    return wrong, sum(file.size for file in files)


def strike_out(folder: Path, wrong: list[str]) -> None:
    """Mark files as not proven, by a modification time that no file has."""
    manifest = manifest_in(folder)
    if manifest is not None:
        files = tuple(
            replace(file, modified_ns=-1) if file.path in wrong else file for file in manifest.files
        )
        write_whole(folder / MANIFEST, replace(manifest, files=files).text)


def main() -> int:
    """Parse the arguments and verify."""
    parser = argparse.ArgumentParser(description="Hash every byte of a snapshot again.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--headers", action="store_true", help="only index and headers: seconds")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    if os.getuid() == 0:
        # The manifest stays the owner's; and a file server may give root nothing.
        owner = folder.stat()
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)
    manifest = manifest_in(folder)
    if manifest is None:
        print(f"verify failed: {folder} has no manifest of boxwright", file=sys.stderr)
        return 1
    problem = problem_of(folder, manifest.by_path)
    if problem:
        print(f"verify failed: {problem}", file=sys.stderr)
    if arguments.headers:
        return 1 if problem else 0
    started = time.monotonic()
    wrong, size = wrong_files(folder, arguments.workers)
    seconds = max(time.monotonic() - started, 0.001)
    print(
        f"verify: {len(manifest.files)} files, {size / GIB:.2f} GiB in {seconds:.1f} s, "
        f"{size / seconds / 1e9:.2f} GB/s",
        flush=True,
    )
    if wrong:
        strike_out(folder, wrong)
        print(
            f"verify failed: {len(wrong)} files are not what the Hub lists: {', '.join(wrong)}. "
            "The next run of boxwright fetches them again; more than one hints at the memory "
            "(memtest) or the disk (smartctl)",
            file=sys.stderr,
        )
    return 1 if wrong or problem else 0


if __name__ == "__main__":
    sys.exit(main())

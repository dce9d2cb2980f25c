"""What finding nothing to do costs a box: the probe's look at a snapshot, and what it sends.

python -m tests.benchmarks.check --files 500 --rounds 21
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from facts.actual import read_actual
from facts.query import Query, script
from inventory.snapshot import LocalSnapshot, Snapshot, SnapshotFile
from operations.snapshot import snapshot_differences

COMMIT = "a" * 40


def write_snapshot(folder: Path, count: int) -> LocalSnapshot:
    """A snapshot of many empty shards, with its manifest."""
    folder.mkdir()
    digest = f"sha256:{'0' * 64}"
    files, entries = [], []
    for number in range(count):
        path = f"model-{number:05d}-of-{count:05d}.safetensors"
        (folder / path).touch()
        found = (folder / path).stat()
        files.append(SnapshotFile(path=path, size=0, digest=digest))
        entries.append(
            {
                "path": path,
                "size": 0,
                "digest": digest,
                "modified_ns": found.st_mtime_ns,
                "inode": found.st_ino,
            }
        )
    users = folder / ".boxwright" / "users"
    users.mkdir(parents=True)
    (users / Path("/proc/sys/kernel/hostname").read_text().strip()).touch()
    manifest = {"repo": "o/n", "commit": COMMIT, "problem": "", "files": entries}
    (folder / ".boxwright" / "manifest.json").write_text(json.dumps(manifest) + "\n")
    listing = Snapshot(repo="o/n", revision="main", commit=COMMIT, files=tuple(files))
    return LocalSnapshot(listing, str(folder.parent))


def look(text: str) -> tuple[float, float, str]:
    """Run the probe's script as the box does; seconds, seconds of processor, output."""
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(["sh"], input=text, capture_output=True, text=True, check=True)
    wall, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system
    return wall, cpu - before.children_user - before.children_system, done.stdout


def main() -> None:
    """Parse the arguments, measure, print."""
    parser = argparse.ArgumentParser(description="The cost of finding nothing to do.")
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=21)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / COMMIT
        want = write_snapshot(folder, arguments.files)
        with_it, without = script(Query(snapshot=str(folder)), "cafe"), script(Query(), "cafe")
        times, floors, cpu, output = [], [], 0.0, ""
        for _ in range(arguments.rounds):
            wall, used, _ = look(without)
            floors.append(wall)
            cpu -= used
            wall, used, output = look(with_it)
            times.append(wall)
            cpu += used
        started = time.perf_counter()
        left = snapshot_differences(want, read_actual(output, "cafe").snapshot)
        reading = time.perf_counter() - started
    if left:
        raise RuntimeError(f"there should be nothing to do: {left}")
    whole, floor = statistics.median(times), statistics.median(floors)
    print(
        f"{arguments.files} files: {1000 * (whole - floor):.1f} ms on the box (whole probe "
        f"{1000 * whole:.1f} ms, an empty one {1000 * floor:.1f} ms; "
        f"{1000 * cpu / arguments.rounds:.1f} ms of processor), {len(output) / 1000:.0f} kB, "
        f"{1000 * reading:.1f} ms to read and compare on the controller"
    )


if __name__ == "__main__":
    main()

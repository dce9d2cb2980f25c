"""boxwright's fetcher and ``hf download``, side by side from one local Hub, alternating.

    python -m tests.benchmarks.fetch --gib 2 --rounds 5 --throttle 200 --out docs/fetch-figures.json

Both write to the same file system and use plain HTTP. ``hf download`` hashes nothing; boxwright
hashes every byte. CPU seconds and peak memory are the kernel's account of each process (wait4).
"""

from __future__ import annotations

import argparse
import getpass
import hashlib
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from inventory.common.fetch import FetchRequest
from inventory.service import Model
from inventory.snapshot import Snapshot
from operations.hub import list_snapshot
from tests.lab.hub import RemoteHub, launched, write_model

REPO = "lab/large"
PROJECT = Path(__file__).parents[2]
GIB = 1 << 30
VERIFY = (sys.executable, "-m", "operations.remote.weights.verify", "--folder")


@dataclass(frozen=True)
class Measured:
    """One run. Seconds, and MiB of memory at its peak."""

    wall: float
    cpu: float
    peak_mib: float


def measure(command: list[str], environment: dict[str, str], stdin: str = "") -> Measured:
    """Run a command to its end and ask the kernel what it took."""
    started = time.monotonic()
    with subprocess.Popen(
        command,
        env=environment,
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdin
        assert running.stderr
        running.stdin.write(stdin)
        running.stdin.close()
        words = running.stderr.read()
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - started
    if running.returncode != 0:
        raise RuntimeError(f"{command[:4]} ended with {running.returncode}: {words[-500:]}")
    return Measured(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def hf_download(hub: RemoteHub, snapshot: Snapshot, folder: Path) -> Measured:
    """The client's own command, with its own number of workers."""
    environment = {**os.environ, **_settings(hub, folder)}
    command = [str(Path(sys.executable).with_name("hf")), "download", REPO]
    command += ["--revision", snapshot.commit, "--local-dir", str(folder / "hf")]
    return measure(command, environment)


def boxwright(hub: RemoteHub, snapshot: Snapshot, folder: Path) -> Measured:
    """The fetcher, as its unit runs it."""
    request = FetchRequest(
        user=getpass.getuser(),
        repo=REPO,
        commit=snapshot.commit,
        folder=folder / "boxwright" / snapshot.commit,
        files=tuple(file.listed for file in snapshot.files),
        endpoint=hub.url,
    )
    command = [sys.executable, "-m", "operations.remote.weights.fetch"]
    return measure(command, {**os.environ, **_settings(hub, folder)}, json.dumps(request.to_json()))


def _settings(hub: RemoteHub, folder: Path) -> dict[str, str]:
    return {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(folder / "home"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    }


def compare(
    hub: RemoteHub, snapshot: Snapshot, scratch: Path, rounds: int
) -> dict[str, list[Measured]]:
    """Both, in turns: whatever else the machine does hits both."""
    found: dict[str, list[Measured]] = {"hf download": [], "boxwright": []}
    for number in range(rounds):
        pair = [("hf download", hf_download), ("boxwright", boxwright)]
        for name, run in pair if number % 2 == 0 else reversed(pair):
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                found[name].append(run(hub, snapshot, Path(folder)))
    return found


def hash_rate(workers: int, size: int = 512 << 20) -> float:
    """Bytes a second that so many cores hash from memory, together."""
    started = time.monotonic()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(_hash_from_memory, [size] * workers))
    return workers * size / (time.monotonic() - started)


def _hash_from_memory(size: int) -> None:
    block, hasher = bytes(1 << 20), hashlib.sha256()
    for _ in range(size >> 20):
        hasher.update(block)


def verify_rates(
    hub: RemoteHub, snapshot: Snapshot, scratch: Path, rounds: int
) -> dict[str, list[float]]:
    """Bytes a second: one core from memory, all cores from memory, a full re-hash. Alternating."""
    found: dict[str, list[float]] = {"one core": [], "all cores": [], "re-hash": []}
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        boxwright(hub, snapshot, Path(folder))
        command = [*VERIFY, str(Path(folder) / "boxwright" / snapshot.commit)]
        for _ in range(rounds):
            found["one core"].append(hash_rate(1))
            found["all cores"].append(hash_rate(os.cpu_count() or 1))
            done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
            found["re-hash"].append(float(done.stdout.rsplit(",", 1)[1].split()[0]) * 1e9)
    return found


def median(runs: list[Measured], field: str) -> float:
    """The median of one figure."""
    return statistics.median(float(asdict(run)[field]) for run in runs)


def main() -> None:
    """Parse the arguments, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else ""
    )
    parser.add_argument("--gib", type=float, default=2.0, help="size of the model")
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--throttle",
        type=float,
        nargs="*",
        default=[0, 200],
        help="MB/s; 0 is none; without a figure, only the re-hash is measured",
    )
    parser.add_argument("--scratch", type=Path, default=Path("/dev/shm"))  # noqa: S108
    parser.add_argument("--disk", type=Path, help="where to re-hash; default is the scratch folder")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    figures: dict[str, object] = {"cores": os.cpu_count(), "gib": arguments.gib}
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as name:
        root = Path(name) / "hub"
        size = int(arguments.gib * GIB / arguments.shards)
        # In a process of its own: the kernel hands a parent's peak memory down to its children.
        writing = multiprocessing.get_context("spawn").Process(
            target=write_model, args=(root / REPO, arguments.shards, size)
        )
        writing.start()
        writing.join()
        with launched(root) as hub:
            snapshot = list_snapshot(Model(repo=REPO, endpoint=hub.url))
            for rate in arguments.throttle:
                hub.configure(throttle=int(rate * 1e6))
                found = compare(hub, snapshot, Path(name), arguments.rounds)
                case = f"{rate:.0f} MB/s" if rate else "unthrottled"
                figures[case] = {who: [asdict(run) for run in runs] for who, runs in found.items()}
                for who, runs in found.items():
                    print(
                        f"{case:12} {who:12} wall {median(runs, 'wall'):6.2f} s  cpu "
                        f"{median(runs, 'cpu'):6.2f} s  peak {median(runs, 'peak_mib'):5.0f} MiB",
                        flush=True,
                    )
                ratio = median(found["boxwright"], "wall") / median(found["hf download"], "wall")
                print(f"{case:12} boxwright / hf download: {ratio:.2f}", flush=True)
            hub.configure(throttle=0)
            rates = verify_rates(hub, snapshot, arguments.disk or Path(name), arguments.rounds)
        shutil.rmtree(root, ignore_errors=True)
    figures["bytes a second"] = rates
    one, cores, whole = (statistics.median(rates[kind]) for kind in rates)
    print(
        f"sha256 from memory {one / 1e9:.2f} GB/s on one core and {cores / 1e9:.2f} on all; full "
        f"re-hash {whole / 1e9:.2f}: {whole / cores:.2f} of all, "
        f"{whole / one / (os.cpu_count() or 1):.2f} of cores x one"
    )
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Faults of real vLLM under real systemd: each stops the run, and is named as what it is.

What boxwright sees beforehand never reaches the engine. What only the engine can see is met twice:
by whole runs, and below them by units that differ from boxwright's own in one thing.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from inventory.catalogue import KIMI_K25, MINIMAX_M25
from tests.deploys.wreck import Wreck, ended_at, wreck
from tests.lab import hub_service, layer, old_service
from tests.lab.base import Lab
from tests.lab.box import Box
from tests.lab.converge import Run, started
from tests.lab.desired import host
from tests.lab.hub import RemoteHub
from tests.lab.model import MODELS

# A start takes 15 to 50 s on two idle cores, and three times as long beside other tests.
pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

FOUR_PARTS = ["wanted", "found", "why", "next"]
UNIT = MINIMAX_M25.unit
TINY = MODELS["tiny-minimax-m2"].repo
SIGMOID = MODELS["tiny-minimax-m2-sigmoid"].repo
SHARD = "model-00002-of-00006.safetensors"
MOST_SECONDS_LATE = 2.0
"""From an event on the box to the line about it here."""
OUR_PORT, STRANGERS_PORT = 8100, 8999
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
WRECKS = "/shared/wrecks"

_VERDICT = re.compile(r"switch: failed|main process ended|crashed|exited with status|chat failed")


class Failed(NamedTuple):
    """A run that failed.

    + run: what it printed
    + began: seconds since the epoch
    + verdict: seconds since the epoch at which the first line about the failure came
    """

    run: Run
    began: int
    verdict: float


@pytest.fixture(scope="module")
def box(lab: Lab) -> Iterator[Box]:
    """A box that serves Kimi, set up by hand, with vLLM installed for what comes."""
    layers = [layer.tools().ensure(lab), layer.cpu_engine().ensure(lab)]
    with Box("faulty", lab, user="root", simulated=False, layers=layers) as box:
        old_service.install(box)
        yield box


@pytest.fixture(scope="module")
def hub(lab: Lab) -> RemoteHub:
    served = hub_service.find(lab)
    assert served
    return RemoteHub(served.url)


def run_with(box: Box, lab: Lab, folder: Path, **fields: dict[str, Any]) -> Failed:
    """Converge a box to a service that differs from the lab's MiniMax in these fields."""
    name, data = host(box.name, lab)
    data["override"][MINIMAX_M25.name] = fields
    path = folder / "inventory_of_a_test.py"
    path.write_text(f"boxes = [({name!r}, {data!r})]\n")
    lines: list[tuple[float, str]] = []
    began = time.time()
    with started("deploys/minimax.py", "-y", inventory=path) as running:
        assert running.stdout
        lines.extend((time.time(), line) for line in running.stdout)
    run = Run(running.returncode, re.sub(r"\x1b\[[0-9;]*m", "", "".join(t for _, t in lines)))
    assert run.status != 0
    assert run.four_parts == FOUR_PARTS, run.text
    told = [at for at, line in lines if _VERDICT.search(line)]
    return Failed(run, int(began), told[0] if told else 0.0)


def journal(box: Box, failed: Failed) -> str:
    """Of the service, since a run began; ``short-iso-precise``."""
    show = f"journalctl --no-pager -o short-iso-precise -u {UNIT} --since @{failed.began}"
    return box.run(f"journalctl --sync; {show}", user="root").stdout


def late(box: Box, failed: Failed) -> float:
    """Seconds from the end of the service's main process to the first line about the failure."""
    deadline = time.monotonic() + 60
    # A run may be over before the server has noticed that its engine is dead.
    while (ended := ended_at(journal(box, failed))) is None:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return failed.verdict - ended


def serves(box: Box) -> None:
    """Wait until something answers on the port of the services."""
    box.run(
        f"until timeout 2 bash -c ': </dev/tcp/{box.address}/8000' 2>/dev/null; do sleep 0.1; done"
    )


def kimi(box: Box) -> str:
    """The start of the old service that serves; it has to answer."""
    code = (
        "import json, urllib.request as r; "
        f"print(json.load(r.urlopen('http://{box.address}:8000/v1/models'))['data'][0]['id'])"
    )
    assert box.run(f'python3 -c "{code}"').stdout.strip() == KIMI_K25.served_model_name
    shown = box.run(f"systemctl show --value -p ActiveState,InvocationID {KIMI_K25.unit}").stdout
    assert "active" in shown.split()
    return shown


def listen(box: Box, port: int) -> None:
    """Have a stranger listen on a port."""
    server = f"python3 -m http.server --bind {box.address} {port}"
    box.run(f"systemd-run --quiet --unit=stranger {server}", user="root")
    box.run(f"until ss -Hltn src {box.address}:{port} | grep -q .; do sleep 0.1; done")


def test_a_port_that_a_stranger_holds(box: Box, lab: Lab, tmp_path: Path) -> None:
    listen(box, STRANGERS_PORT)
    before = kimi(box)
    failed = run_with(box, lab, tmp_path, listen={"port": STRANGERS_PORT})
    assert f"{STRANGERS_PORT}" in failed.run.text
    assert "stranger.service" in failed.run.text
    assert "--> Beginning operation run" not in failed.run.text
    assert kimi(box) == before


@pytest.mark.parametrize("fault", ["missing", "truncated"])
def test_a_repository_with_a_bad_shard(
    box: Box, lab: Lab, hub: RemoteHub, tmp_path: Path, fault: str
) -> None:
    """As its author uploaded it: every byte is right, and no engine can load it."""
    repo = f"lab/{fault}-shard"
    folder = shutil.copytree(lab.models / TINY, tmp_path / fault)
    damage(folder / SHARD, fault)
    hub.add_repo(repo, folder)
    before = kimi(box)
    try:
        failed = run_with(box, lab, tmp_path, model={"repo": repo})
    finally:
        hub.remove_repo(repo)
    assert SHARD in failed.run.text
    assert "the old service still serves" in failed.run.text
    assert f"{MINIMAX_M25.name}: unit file" not in failed.run.text
    assert UNIT not in journal(box, failed)
    assert kimi(box) == before


def damage(shard: Path, fault: str) -> None:
    if fault == "missing":
        shard.unlink()
    else:
        shard.write_bytes(shard.read_bytes()[:2_000_000])


@pytest.fixture(scope="module")
def three_ranks(box: Box, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Failed:
    """The run that also installs what the box lacks, of a service that cannot start."""
    box.run("dpkg --remove --force-depends libnuma1", user="root")
    folder = tmp_path_factory.mktemp("three")
    return run_with(box, lab, folder, engine={"tensor_parallel_size": 3})


def test_a_missing_library_is_installed_before_the_engine_needs_it(
    box: Box, three_ranks: Failed
) -> None:
    assert "~ package libnuma1: state: absent -> installed" in three_ranks.run.text
    assert "libnuma.so.1" in box.run("ldconfig -p").stdout


def test_a_tensor_parallel_size_that_does_not_divide_the_heads(
    box: Box, three_ranks: Failed
) -> None:
    told = three_ranks.run.text
    assert "attention heads do not divide among the GPUs" in told
    assert "attention heads (8) must be divisible by tensor parallel size (3)" in told
    assert "next: --tensor-parallel-size 1, 2 or 4: each divides 8 heads" in told
    assert late(box, three_ranks) <= MOST_SECONDS_LATE
    # What served before serves again.
    assert f"{KIMI_K25.unit} answers again" in told
    assert kimi(box)


@pytest.fixture(scope="module")
def wrecks(box: Box, three_ranks: Failed) -> dict[str, Wreck]:
    """Starts of units that differ from the one that boxwright wrote in one thing each."""
    assert three_ranks.run.status != 0
    # Where the failed service is still being restarted: these starts have the box to themselves.
    box.run(f"systemctl stop {UNIT}", user="root")
    text = box.run(f"cat /etc/systemd/system/{UNIT}").stdout
    box.run(PREPARED.format(unit=UNIT, file=f"/etc/systemd/system/{UNIT}"), user="root")
    tampered: dict[str, tuple[dict[str, str], str]] = {
        "missing": ({"--model": f"{WRECKS}/missing"}, ""),
        "truncated": ({"--model": f"{WRECKS}/truncated"}, ""),
        "library": ({}, f"BindReadOnlyPaths={WRECKS}/lib:{LIBRARIES}"),
        "tools": ({"--tool-call-parser": "minimax_m9"}, ""),
        "reasoning": ({"--reasoning-parser": "qwen33"}, ""),
        "port": ({"--port": str(STRANGERS_PORT)}, ""),
    }
    # Two at a time: an import keeps one core busy.
    with ThreadPoolExecutor(2) as pool:
        running = {
            name: pool.submit(
                wreck,
                box,
                text,
                name,
                {"--port": str(OUR_PORT + nth), "--tensor-parallel-size": "1", **flags},
                directives,
            )
            for nth, (name, (flags, directives)) in enumerate(tampered.items())
        }
        return {name: future.result() for name, future in running.items()}


PREPARED = f"""
set -e
mkdir -p {WRECKS}
model=$(sed -n 's/^    --model \\([^ ]*\\).*/\\1/p' {{file}})
for name in missing truncated; do cp -a "$model" {WRECKS}/$name; done
rm {WRECKS}/missing/{SHARD}
truncate -s 2000000 {WRECKS}/truncated/{SHARD}
cp -a {LIBRARIES} {WRECKS}/lib
rm {WRECKS}/lib/libnuma.so*
"""
"""Damaged copies of what is on the box. (Braces of the file's name are filled in later.)"""


@pytest.mark.parametrize(
    ("name", "cause", "line", "remedy"),
    [
        ("missing", "D1", SHARD, f"fetch {SHARD} again"),
        ("truncated", "D2", "SafetensorError", "again"),
        ("library", "C2-library-missing", "libnuma.so.1", "install libnuma1"),
        ("tools", "A13", "minimax_m9", "--tool-call-parser minimax_m3, minimax_m2"),
        ("reasoning", "A13", "qwen33", "--reasoning-parser qwen3"),
        ("port", "H7", "Address already in use", f"ss -ltnp 'sport = :{STRANGERS_PORT}'"),
    ],
)
def test_what_the_engine_itself_says(
    wrecks: dict[str, Wreck], name: str, cause: str, line: str, remedy: str
) -> None:
    found = wrecks[name].diagnosis
    assert found.cause == cause
    assert line in found.line.text
    assert remedy in found.next_step
    assert found.same == ()
    assert "status 1" in found.ending
    assert wrecks[name].late <= MOST_SECONDS_LATE


def test_a_parser_that_the_engine_does_not_have_is_refused_while_the_old_service_serves(
    box: Box, lab: Lab, tmp_path: Path, three_ranks: Failed
) -> None:
    assert three_ranks.run.status != 0
    box.run(f"systemctl start {KIMI_K25.unit}", user="root")
    serves(box)
    before = kimi(box)
    failed = run_with(box, lab, tmp_path, engine={"tool_call_parser": "minimax_m9"})
    assert "minimax_m9 is not among its values in vLLM" in failed.run.text
    assert "choose one of minimax_m3, minimax_m2" in failed.run.text
    assert kimi(box) == before


def test_healthy_and_dead_at_the_first_request(
    box: Box, lab: Lab, tmp_path: Path, three_ranks: Failed
) -> None:
    """/health says 200, the first token kills the engine, and its server exits with status 0."""
    assert three_ranks.run.status != 0
    failed = run_with(box, lab, tmp_path, model={"repo": SIGMOID})
    told = failed.run.text
    assert "the engine dies on the first request" in told
    assert 'assert self.scoring_func == "softmax"' in told
    assert "the MoE router of the CPU supports softmax scoring only" in told
    assert "exits with status 0 when its engine dies" in told
    assert 'assert self.scoring_func == "softmax"' in journal(box, failed)
    assert late(box, failed) <= MOST_SECONDS_LATE
    assert f"{KIMI_K25.unit} answers again" in told
    assert kimi(box)

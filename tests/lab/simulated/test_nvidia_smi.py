"""The simulated nvidia-smi, called as a probe calls it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.simulated import eight_gpus, install
from tests.lab.simulated.gpus.description import BOOKS, MODE, box_from_json

UUIDS = [gpu.uuid for gpu in eight_gpus().gpus]
FIELDS = "index,uuid,pci.bus_id,pstate,memory.total,memory.used,memory.free,memory.reserved,name"


def smi(root: Path, *words: str) -> tuple[int, str]:
    """Exit status and standard output of one call; standard error must stay empty."""
    ended = subprocess.run(
        [root / "usr/local/bin/nvidia-smi", *words],
        env={"SIMULATED_ROOT": str(root)},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert ended.stderr == ""
    return ended.returncode, ended.stdout


def rows(root: Path, fields: str, *options: str) -> list[list[str]]:
    """The cells of a query."""
    status, text = smi(root, f"--query-gpu={fields}", "--format=csv,noheader,nounits", *options)
    assert status == 0
    return [line.split(", ") for line in text.splitlines()]


@pytest.fixture
def holder(root: Path) -> Iterator[subprocess.Popen[str]]:
    """Another tenant: 20 GiB of card 2."""
    with subprocess.Popen(
        [root / "usr/local/bin/simulated-hold", "2", "20"],
        env={"SIMULATED_ROOT": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"holding 20 GiB of {UUIDS[2]}\n"
        yield process
        process.kill()


def test_eight_cards(root: Path) -> None:
    cells = rows(root, FIELDS)
    assert [row[1] for row in cells] == UUIDS
    name = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
    assert cells[6][2:] == ["00000000:A1:00.0", "P8", "97887", "0", "97247", "640", name]
    assert smi(root, "-L")[1].splitlines()[7] == f"GPU 7: {name} (UUID: {UUIDS[7]})"
    assert "CUDA Version        : 13.0\n" in smi(root, "--version")[1]


def test_units_and_header(root: Path) -> None:
    _, text = smi(root, "--query-gpu=index,memory.total,gpu_uuid", "--format=csv")
    assert text.splitlines()[:2] == [
        "index, memory.total [MiB], gpu_uuid",
        f"0, 97887 MiB, {UUIDS[0]}",
    ]


def test_an_unknown_field_voids_the_query(root: Path) -> None:
    refused = 'Field "nonsense" is not a valid field to query.\n\n'
    assert smi(root, "--query-gpu=index,nonsense", "--format=csv") == (2, refused)
    assert smi(root, "--query-compute-apps=pid,nonsense", "--format=csv") == (2, refused)


def test_a_driver_with_fewer_fields(fresh: Path) -> None:
    install(fresh, replace(eight_gpus(), unknown_fields=("compute_cap",)))
    status, text = smi(fresh, "--query-gpu=compute_cap", "--format=csv,noheader")
    assert (status, "compute_cap" in text) == (2, True)
    listed = smi(fresh, "--help-query-gpu")[1]
    assert '"uuid"' in listed
    assert '"compute_cap"' not in listed


def test_a_holder_shows_and_its_memory_lags(root: Path, holder: subprocess.Popen[str]) -> None:
    apps = ("--query-compute-apps=gpu_uuid,pid,used_memory,process_name", "--format=csv,noheader")
    assert smi(root, *apps) == (0, f"{UUIDS[2]}, {holder.pid}, 20480 MiB, /usr/bin/python3\n")
    assert rows(root, "pstate,memory.used,memory.free")[2] == ["P0", "20480", str(97247 - 20480)]
    assert "20480MiB / 97887MiB" in smi(root)[1]
    holder.kill()
    holder.wait()
    assert rows(root, "memory.used")[2] == ["20480"]
    assert smi(root, *apps) == (0, "")
    until = time.monotonic() + 10
    while rows(root, "memory.used")[2] != ["0"]:
        assert time.monotonic() < until


def test_one_card_only(root: Path) -> None:
    assert rows(root, "index", "-i", "3") == [["3"]]
    assert rows(root, "index", f"--id={UUIDS[5]}") == [["5"]]


def test_topology_bytes(root: Path) -> None:
    matrix = smi(root, "topo", "-m")[1].splitlines()
    names = "\t".join(f"GPU{index}" for index in range(8))
    assert matrix[0] == f"\t\x1b[4m{names}\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m"
    assert matrix[1] == "GPU0\t X \tPHB\tNODE\tNODE\tSYS\tSYS\tSYS\tSYS\t0-31,64-95\t0\t\tN/A"
    assert matrix[8].endswith("\tSYS\tNODE\tNODE\tPHB\t X \t32-63,96-127\t1\t\tN/A")
    peers = smi(root, "topo", "-p2p", "r")[1].splitlines()
    assert peers[0] == f" \t\x1b[4m{names}\t\x1b[0m"
    assert peers[2] == " GPU1\tOK\tX\tOK\tOK\tOK\tOK\tOK\tOK\t"


def test_the_table(root: Path) -> None:
    lines = smi(root)[1].splitlines()
    assert {len(line) for line in lines[1:] if line.startswith(("|", "+"))} == {91}
    assert any("No running processes found" in line for line in lines)


def mode(root: Path, **fields: object) -> None:
    """Let the driver misbehave."""
    (root / MODE).write_text(json.dumps(fields))


@pytest.mark.parametrize(
    ("name", "status", "text"),
    [
        ("mismatch", 18, "Failed to initialize NVML: Driver/library version mismatch"),
        ("no-driver", 9, "couldn't communicate with the NVIDIA driver"),
        ("no-devices", 6, "No devices were found"),
    ],
)
def test_a_broken_driver(root: Path, name: str, status: int, text: str) -> None:
    mode(root, mode=name)
    found, said = smi(root, "--query-gpu=index", "--format=csv")
    assert (found, text in said) == (status, True)
    (root / MODE).unlink()
    assert smi(root, "-L")[0] == 0


def test_a_lost_card(root: Path) -> None:
    mode(root, mode="lost", gpu=4)
    status, text = smi(root, "--query-gpu=index", "--format=csv,noheader")
    assert status == 15
    assert text.splitlines() == [
        *"0123567",
        "Unable to determine the device handle for GPU0000:81:00.0: Unknown Error",
    ]


def test_a_hang(root: Path) -> None:
    mode(root, mode="hang")
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(
            [root / "usr/local/bin/nvidia-smi", "-L"],
            env={"SIMULATED_ROOT": str(root)},
            capture_output=True,
            timeout=1,
            check=False,
        )


def test_a_replay(root: Path, tmp_path: Path) -> None:
    recorded = tmp_path
    (recorded / "topo.txt").write_bytes(b"\tGPU0\xff\n")
    index = {"topo -m": {"file": "topo.txt", "status": 3}}
    (recorded / "index.json").write_text(json.dumps(index))
    mode(root, mode="replay", folder=str(recorded))
    ended = subprocess.run(
        [root / "usr/local/bin/nvidia-smi", "topo", "-m"],
        env={"SIMULATED_ROOT": str(root)},
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (3, b"\tGPU0\xff\n")
    assert smi(root, "-L")[0] == 0, "what is not recorded is simulated"


def test_a_call_that_it_does_not_know(root: Path) -> None:
    assert smi(root, "--query-pikachu")[0] == 1


def test_a_description_survives_its_text() -> None:
    box = replace(eight_gpus(), links={"0-1": "NV18"}, p2p="NS", unknown_fields=("compute_cap",))
    assert box_from_json(box.to_json()) == box
    assert (box.link(1, 0), box.link(0, 2), box.link(0, 7)) == ("NV18", "NODE", "SYS")


def test_visible_devices() -> None:
    box = eight_gpus()
    assert box.visible(None) == box.gpus
    assert [gpu.uuid for gpu in box.visible(f"3, {UUIDS[1]},GPU-00000007")] == [
        UUIDS[3],
        UUIDS[1],
        UUIDS[7],
    ]
    assert box.visible("0,nonsense,1") == box.gpus[:1], "as CUDA reads the list"
    assert box.visible("") == ()


def test_installing_again_changes_the_box(fresh: Path) -> None:
    install(fresh, replace(eight_gpus(), gpus=eight_gpus().gpus[:2]))
    assert len(rows(fresh, "index")) == 2
    assert (fresh / BOOKS).stat().st_mode & 0o7777 == 0o1777
    wanted = fresh / "etc/systemd/system/sysinit.target.wants/simulated-gpus.service"
    assert "ExecStart=/bin/mkdir -p -m 1777 /dev/simulated-gpus" in wanted.read_text()

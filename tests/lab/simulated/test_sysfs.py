"""The sysfs tree of a simulated box, and the project's own probe on it."""

from __future__ import annotations

import os
import subprocess
from importlib import resources
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from facts.hardware.assemble import parse_hardware
from facts.sections import sections
from inventory.hardware import Hardware
from tests.lab.simulated import eight_gpus
from tests.lab.simulated.gpus.description import SYSFS
from tests.lab.simulated.sysfs import cpus, ranges


@given(st.frozensets(st.integers(0, 300)))
def test_kernel_lists_there_and_back(numbers: frozenset[int]) -> None:
    assert set(cpus(ranges(iter(numbers)))) == numbers


def test_the_files(root: Path) -> None:
    system = root / SYSFS / "devices/system"
    assert (system / "node/online").read_text() == "0-1\n"
    assert (system / "cpu/online").read_text() == "0-127\n"
    assert (system / "node/node1/cpulist").read_text() == "32-63,96-127\n"
    assert (system / "node/node1/distance").read_text() == "32 10\n"
    package = system / "node/node1/cpu40/topology/physical_package_id"
    assert package.read_text() == "1\n"
    devices = root / SYSFS / "bus/pci/devices"
    assert len(list(devices.iterdir())) == 9
    card = devices / "0000:a1:00.0"
    assert (card / "numa_node").read_text() == "1\n"
    assert (card / "driver").resolve().name == "nvidia"
    assert "pci0000:a0" in card.resolve().parts


def probe(root: Path) -> Hardware:
    """The box as the project's probe reads it."""
    scripts = resources.files("facts.probe")
    text = "".join(scripts.joinpath(name).read_text() for name in ("frame.sh", "hardware.sh"))
    ended = subprocess.run(
        ["sh", "-s"],
        input=text,
        env={
            "PATH": f"{root}/usr/local/bin:{os.environ['PATH']}",
            "NONCE": "n",
            "SYSFS": f"{root}/{SYSFS}",
            "SIMULATED_ROOT": str(root),
        },
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return parse_hardware(sections(ended.stdout, "n"))


def test_the_probe_reads_the_box(root: Path) -> None:
    hardware = probe(root)
    assert (hardware.state, hardware.driver, hardware.cuda) == ("ok", "580.159.04", "13.0")
    assert [gpu.uuid for gpu in hardware.gpus] == [gpu.uuid for gpu in eight_gpus().gpus]
    assert [gpu.numa_node for gpu in hardware.gpus] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [(node.cpus, node.socket) for node in hardware.numa_nodes] == [
        ("0-31,64-95", 0),
        ("32-63,96-127", 1),
    ]
    assert hardware.gpus[0].memory_free == 97247 * 1024 * 1024
    kinds = [link.kind for link in hardware.links]
    assert (len(kinds), kinds.count("PHB"), kinds.count("NODE")) == (28, 4, 8)
    assert all(link.p2p for link in hardware.links)
    assert hardware.processes == ()

"""probe/hardware.sh, run by dash and by bash on a made-up box: its trees, its tools."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from facts.hardware import parse_hardware
from facts.sections import Section, sections
from inventory.base import Unknown
from tests.facts.hardware.box import HEADER, NONCE, PROBE, Box
from tests.facts.hardware.samples import FIXTURES, row, sample


@pytest.fixture(params=["dash", "bash"])
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Box:
    """Two nodes, one card on each, two processes."""
    made = Box(tmp_path, request.param)
    for node, cpus in ((0, "0-31,64-95"), (1, "32-63,96-127")):
        folder = f"sys/devices/system/node/node{node}"
        made.write(f"{folder}/cpulist", f"{cpus}\n")
        made.write(f"{folder}/distance", "10 32\n" if node == 0 else "32 10\n")
        made.write(
            f"{folder}/meminfo",
            f"Node {node} MemTotal:  528003912 kB\nNode {node} MemFree:  500000000 kB\n"
            f"Node {node} MemUsed:  1 kB\n",
        )
        made.write(f"{folder}/cpu{node * 32}/topology/physical_package_id", f"{node}\n")
    made.write("sys/devices/system/node/online", "0-1\n")
    made.write("sys/devices/system/cpu/online", "0-127\n")
    for group in ("1", "2", "3"):
        (tmp_path / "sys/kernel/iommu_groups" / group).mkdir(parents=True)
    for address, place, near in (
        ("0000:17:00.0", "pci0000:15/0000:15:01.0/0000:16:00.0", "0"),
        ("0000:9a:00.0", "pci0000:97/0000:97:01.0/0000:98:00.0", "1"),
    ):
        device = made.card(address, place, numa_node=near)
        made.write(f"sys/groups/{address}/type", "DMA-FQ\n")
        (device / "iommu_group").symlink_to(tmp_path / "sys/groups" / address)
    made.write("proc/meminfo", "MemTotal: 1024 kB\nMemFree: 1 kB\nMemAvailable: 512 kB\n")
    made.write("proc/4242/cgroup", "0::/system.slice/vllm-kimi-k25.service\n")
    made.write("proc/4243/cgroup", "3:cpu:/x\n1:name=systemd:/system.slice/other.service\n")
    made.write(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build\n",
    )
    return made


def test_a_sound_box(box: Box) -> None:
    box.smi()
    before = sorted(path for path in box.root.rglob("*") if path.name != "calls.nvidia-smi")
    read = parse_hardware(box.run())
    assert (read.state, read.reason) == ("ok", "")
    assert [(node.id, node.socket, node.cpus) for node in read.numa_nodes] == [
        (0, 0, "0-31,64-95"),
        (1, 1, "32-63,96-127"),
    ]
    assert read.numa_nodes[1].memory_free == 500000000 * 1024
    assert read.numa_nodes[1].distances == ((0, 32), (1, 10))
    assert [(gpu.bus_id, gpu.numa_node, gpu.iommu) for gpu in read.gpus] == [
        ("0000:17:00.0", 0, "DMA-FQ"),
        ("0000:9a:00.0", 1, "DMA-FQ"),
    ]
    assert [(link.kind, link.p2p) for link in read.links] == [("PHB", False)]
    assert isinstance(read.processes, tuple)
    assert [(process.unit, process.name) for process in read.processes] == [
        ("vllm-kimi-k25.service", "python -c f(1, 2)"),
        ("other.service", "caf"),
    ]
    assert (read.kernel_driver, read.cuda) == ("590.48.01", "13.3")
    assert (read.host_memory_total, read.host_memory_available) == (1 << 20, 1 << 19)
    assert read.iommu_groups == 3
    assert box.calls() == [
        box.calls()[0],
        "--query-compute-apps=gpu_uuid,pid,used_memory,process_name",
        "topo",
        "topo",
        "--version",
    ]
    after = sorted(path for path in box.root.rglob("*") if path.name != "calls.nvidia-smi")
    assert after == before


def test_a_driver_that_lacks_fields_is_asked_for_those_that_it_lists(box: Box) -> None:
    box.smi(
        query="""case "$1" in
            *compute_cap*|*gpu_recovery_action*)
              echo 'Field "compute_cap" is not a valid field to query.'; echo; exit 2 ;;
            *) echo 'index, mig.mode.current, uuid, pci.bus_id, memory.total [MiB], name'
              echo '0, [N/A], GPU-0, 00000000:17:00.0, 16384, Tesla V100' ;;
            esac""",
        help='printf \'"memory.reserved"\\n"mig.mode.current"\\n\'',
    )
    read = parse_hardware(box.run())
    assert [gpu.name for gpu in read.gpus][:1] == ["Tesla V100"]
    assert read.gpus[0].compute_capability != "12.0"
    first, helped, second = box.told()[:3]
    assert helped == "--help-query-gpu"
    assert "=index,memory.reserved,mig.mode.current,uuid," in second
    assert ",compute_cap," in first


def test_a_driver_that_lists_nothing_is_asked_for_what_all_know(box: Box) -> None:
    box.smi(query='case "$1" in *mig*) exit 2 ;; esac', help="exit 1")
    box.run()
    assert box.told()[2].startswith("--query-gpu=index,uuid,pci.bus_id,pstate,memory.total,")


def test_after_a_time_out_nothing_more_is_asked(box: Box) -> None:
    box.smi(query="exec sleep 20")
    found = box.run(PROBE_TIMEOUT="0.3")
    assert found["nv.full"].rc == 124
    assert len(box.calls()) == 1
    read = parse_hardware(found)
    assert read.state == "unknown"
    assert "in time" in read.reason
    assert len(read.gpus) == 2  # the PCI bus still answers


def test_a_later_time_out_ends_it_too(box: Box) -> None:
    box.smi(topo="exec sleep 20")
    found = box.run(PROBE_TIMEOUT="1.5")
    assert found["nv.topo"].rc == 124
    assert "nv.p2p" not in found
    assert "nv.version" not in found
    read = parse_hardware(found)
    assert read.state == "ok"
    assert isinstance(read.links[0].p2p, Unknown)


def test_a_mismatch_is_read_from_the_module(box: Box) -> None:
    box.smi(query=f"cat {FIXTURES}/gpu/c02_version_mismatch.txt; exit 18", list="exit 18")
    found = box.run()
    assert found["nv.full"] == Section(18, tuple(sample("c02_version_mismatch.txt")[:2]))
    assert len(box.calls()) == 2
    read = parse_hardware(found)
    assert read.state == "driver-broken"
    assert read.kernel_driver == "590.48.01"


def test_slices_are_asked_for_on_a_mig_box_only(box: Box) -> None:
    uuid = "GPU-00000000-0000-4000-8000-000000000000"
    mig = row(0, "01", uuid=uuid, mig__mode__current="Enabled")
    box.smi(
        query=f"echo '{HEADER}'; echo '{mig}'",
        list=f"cat {FIXTURES}/gpu/c08_list_mig.txt",
        xml=f"cat {FIXTURES}/gpu/c11_qx_v12_mig_insufficient.xml",
    )
    read = parse_hardware(box.run())
    gpu = next(gpu for gpu in read.gpus if gpu.uuid == uuid)
    assert gpu.slices[0].memory_total == 19968 << 20
    assert "topo -p2p r" not in box.told()  # one GPU: no pair


def test_what_is_no_card_is_left_out(box: Box) -> None:
    box.smi()
    function = box.card("0000:17:00.4", "pci0000:15")
    (function / "physfn").symlink_to(box.root)
    box.card("0000:17:00.1", "pci0000:15", **{"class": "0x040300"})
    box.card("0000:00:02.0", "pci0000:00", vendor="0x8086", **{"class": "0x030000"})
    (gone,) = (box.card("0000:e1:00.0", "pci0000:e0") / "numa_node",)
    gone.unlink()
    read = parse_hardware(box.run())
    assert [gpu.bus_id for gpu in read.gpus] == ["0000:17:00.0", "0000:9a:00.0", "0000:e1:00.0"]
    assert read.gpus[2].health == "lost"


def test_binding_is_tried_node_by_node(box: Box) -> None:
    box.smi()
    box.tool("numactl", 'case "$1" in *=1) exit 1 ;; esac')
    read = parse_hardware(box.run())
    assert read.numactl is True
    assert read.bindable_nodes == (0,)
    assert box.told("numactl") == [
        "--cpunodebind=0 --membind=0 true",
        "--cpunodebind=1 --membind=1 true",
    ]


def test_binding_is_not_tried_on_one_node(box: Box) -> None:
    box.write("sys/devices/system/node/node1/cpulist", "\n")
    box.tool("numactl", "exit 1")
    read = parse_hardware(box.run())
    assert read.bindable_nodes == ()
    assert box.told("numactl") == []


def test_tools_of_other_vendors(box: Box) -> None:
    box.tool("amd-smi", f"cat {FIXTURES}/gpu/e05_amd_static.txt")
    box.tool("hl-smi", f"cat {FIXTURES}/gpu/e07_hl_smi.txt")
    found = box.run()
    assert found["amd.static"].lines[0] == "GPU: 0"
    assert found["hl.core"].lines[0].startswith("index, uuid, bus_id")
    assert box.told("amd-smi") == ["static"]


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_this_machine(shell: str) -> None:
    """On the machine that runs the tests: its own nodes hold its own CPUs."""
    script = f"NONCE={NONCE}\n" + "".join(
        (PROBE / name).read_text() for name in ("frame.sh", "hardware.sh")
    )
    done = subprocess.run([shell, "-c", script], capture_output=True, check=True)
    found = sections(done.stdout.decode("ascii"), NONCE)
    read = parse_hardware(found)
    assert any(node.cpus for node in read.numa_nodes)
    assert isinstance(read.host_memory_total, int)

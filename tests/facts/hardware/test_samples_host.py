"""Samples d03-d15, e01-e07, p02 and the h200 folder: read as their index says."""

from __future__ import annotations

from facts.hardware import parse_hardware
from facts.hardware.mig import parse_memory
from facts.hardware.numa import (
    GpuSources,
    gpu_node,
    parse_ids,
    parse_numa,
    with_cpus,
)
from facts.hardware.others import accelerators, parse_amd, parse_habana
from facts.hardware.pci import parse_module, parse_pci
from facts.hardware.processes import parse_processes
from facts.hardware.smi import parse_query
from facts.hardware.topology import parse_peers, parse_topology
from facts.sections import sections
from inventory.base import Unknown
from inventory.common.units import KIB, MIB
from tests.facts.hardware.samples import TWO_NODES, body, sample


def test_d05_memory_nodes_are_not_cpu_nodes() -> None:
    nodes = parse_numa(sample("d05_sysfs_gb200.txt"))
    assert [node.id for node in with_cpus(nodes)] == [0, 1]
    by_id = {node.id: node for node in nodes}
    assert by_id[2].cpus == ""
    assert by_id[2].memory_total == 192937984 * KIB
    assert by_id[3].memory_total == 0
    assert isinstance(by_id[0].memory_total, Unknown)  # the sample does not tell it


def test_d06_two_sockets() -> None:
    one, two = parse_numa(sample("d06_sysfs_two_socket.txt"))
    assert (one.cpus, two.cpus) == ("0-31,64-95", "32-63,96-127")
    assert one.distances == ((0, 10), (1, 32))
    assert two.distances == ((0, 32), (1, 10))
    assert one.memory_total == 528003912 * KIB
    assert two.memory_free == 490000000 * KIB


def test_distances_are_in_the_order_of_the_online_nodes() -> None:
    lines = [
        "/sys/devices/system/node/online:0,8",
        "/sys/devices/system/node/node0/distance:10 40",
        "/sys/devices/system/node/node8/distance:40 10",
    ]
    assert parse_numa(lines)[1].distances == ((0, 40), (8, 10))


def test_d08_a_kernel_without_numa_is_one_node() -> None:
    (node,) = parse_numa(sample("d08_no_numa_kernel.txt"))
    assert (node.id, node.cpus) == (0, "0,1,2,3")
    assert gpu_node(GpuSources(), (node,)) == 0
    (node,) = parse_numa(["/sys/devices/system/cpu/online:0-15"])
    assert node.cpus == "0-15"
    assert parse_numa([]) == ()


def test_d09_minus_one_is_not_node_zero() -> None:
    (device,) = parse_pci(sample("d09_pci_numa_minus1.txt"))
    assert device.numa_node == Unknown(unknown="-1")
    assert device.driver == "nvidia"
    assert device.path.endswith("/0000:17:00.0")
    nodes = parse_numa(TWO_NODES.lines)
    assert isinstance(gpu_node(GpuSources(sysfs=device.numa_node), nodes), Unknown)
    told = GpuSources(sysfs=device.numa_node, cpus="32-63,96-127")
    assert gpu_node(told, nodes) == 1
    restricted = GpuSources(sysfs=device.numa_node, cpus="40-41")
    assert gpu_node(restricted, nodes) == 1
    everywhere = GpuSources(sysfs=device.numa_node, cpus="0-127", nodes=(0, 1))
    assert isinstance(gpu_node(everywhere, nodes), Unknown)


def test_d10_sysfs_knows_where_nvml_does_not() -> None:
    devices = parse_pci(sample("d10_pci_numa_nvml_not_supported.txt"))
    nodes = parse_numa(TWO_NODES.lines)
    not_told = Unknown(unknown="N/A")
    read = [gpu_node(GpuSources(device.numa_node, not_told, not_told), nodes) for device in devices]
    assert read == [0, 0, 0, 0, 1, 1, 1, 1]


def test_d11_cpu_and_node_numbers_have_gaps() -> None:
    nodes = parse_numa(sample("d11_offline_cpus.txt"))
    assert [node.id for node in nodes] == [0, 8]
    ids = parse_ids(nodes[1].cpus)
    assert isinstance(ids, frozenset)
    assert max(ids) == 152
    assert gpu_node(GpuSources(cpus="144,152"), nodes) == 8


def test_d12_even_and_odd_cpus() -> None:
    nodes = parse_numa(sample("d12_interleaved_cpus.txt"))
    assert gpu_node(GpuSources(cpus=nodes[1].cpus), nodes) == 1
    assert isinstance(gpu_node(GpuSources(cpus="0-39"), nodes), Unknown)


def test_a_guest_says_so() -> None:
    guest = parse_hardware({"host": body("virt\tkvm")})
    assert guest.virtual_machine is True


def test_d15_the_loaded_module() -> None:
    module = parse_module(sample("d15_proc_nvidia.txt"))
    assert module.version == "580.95.05"
    (gpu,) = module.gpus
    assert (gpu.bus_id, gpu.name) == ("0000:62:00.0", "NVIDIA H100 80GB HBM3")
    assert gpu.uuid == "GPU-00000062-0000-4000-8000-000000000062"
    assert not gpu.excluded


def test_d15_before_first_use_and_excluded() -> None:
    text = "\n".join(sample("d15_proc_nvidia.txt"))
    text = text.replace("GPU-00000062-0000", "GPU-????????-????").replace("\t No", "\t Yes")
    (gpu,) = parse_module(text.split("\n")).gpus
    assert isinstance(gpu.uuid, Unknown)
    assert gpu.excluded


def test_e05_amd_megabytes_are_mebibytes() -> None:
    (card,) = parse_amd(sample("e05_amd_static.txt"))
    assert card.bus_id == "0000:01:00.0"
    assert card.numa_node == 0
    assert card.memory_total == 96434 * MIB
    with_cpu = ("CPU: 0", "    NUMA:", "        NODE: 7", *sample("e05_amd_static.txt"))
    assert parse_amd(with_cpu) == (card,)


def test_e07_habana_takes_numa_from_sysfs() -> None:
    (device,) = parse_habana(sample("e07_hl_smi.txt"))
    assert device.memory_total == 98304 * MIB
    pci = parse_pci(["dev\t0000:33:00.0\tvendor=0x1da3\tclass=0x120000\tnuma_node=1"])
    (card,) = accelerators(pci, [device])
    assert (card.vendor, card.numa_node, card.name) == ("habana", 1, "HL-225")


def test_p02_no_accelerators() -> None:
    found = sections("\n".join(sample("p02_probe_no_gpu_vm.txt")).replace("@@ ", "@@x "), "x")
    read = parse_hardware(found)
    assert read.state == "no-hardware"
    assert read.gpus == ()
    assert [node.id for node in read.numa_nodes] == [0]
    assert read.numa_nodes[0].socket == 0
    assert read.host_memory_available == 24264552 * KIB
    assert isinstance(read.virtual_machine, Unknown)  # a container's name: docker


def test_h200_whole() -> None:
    order = (
        "index uuid name pci.bus_id memory.total memory.used memory.free memory.reserved "
        "compute_cap mig.mode.current driver_version pcie.link.gen.current pcie.link.gen.max "
        "pcie.link.width.current pcie.link.width.max persistence_mode compute_mode "
        "ecc.mode.current"
    )
    header = ", ".join(order.split())
    read = parse_hardware(
        {
            "nv.full": body(header, *sample("query.csv", "h200")),
            "nv.apps": body(*sample("apps.csv", "h200")),
            "nv.topo": body(*sample("topo-m.txt", "h200")),
            "nv.p2p": body(*sample("topo-p2p.txt", "h200")),
            "pci": body("dev\t0000:00:06.0\tvendor=0x10de\tclass=0x030200\tnuma_node=-1"),
            "numa": body("/sys/devices/system/node/node0/cpulist:0-15"),
        }
    )
    assert read.state == "ok"
    (gpu,) = read.gpus
    assert gpu.name == "NVIDIA H200"
    assert gpu.bus_id == "0000:00:06.0"
    assert gpu.memory_free == 143156 * MIB
    assert gpu.numa_node == 0  # sysfs -1; the only node, and the driver says so too
    assert read.processes == ()
    assert read.driver == "580.159.04"


def test_h200_parts() -> None:
    assert parse_peers(sample("topo-p2p.txt", "h200")) == {}
    assert parse_topology(sample("topo-m.txt", "h200")).affinity["GPU0"].nodes == (0,)
    assert parse_memory("\n".join(sample("smi-qx.xml", "h200"))) == {}
    assert parse_processes(sample("apps.csv", "h200")) == ()
    assert parse_query(sample("smi-q.txt", "h200")).gpus == ()

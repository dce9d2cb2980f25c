"""Samples a01-a29: every row of the index, read as it says."""

from __future__ import annotations

from itertools import combinations

import pytest

from facts.hardware.numa import GpuSources, gpu_node, node_of_cpus, node_of_ids, parse_numa
from facts.hardware.topology import Topology, parse_peers, parse_topology
from inventory.base import Unknown
from tests.facts.hardware.samples import sample


def gpus(topology: Topology) -> list[str]:
    return [name for name in topology.devices if name.startswith("GPU")]


def nodes_of(topology: Topology) -> list[object]:
    return [topology.affinity[gpu].nodes for gpu in gpus(topology)]


def links(topology: Topology) -> dict[tuple[int, int], object]:
    names = gpus(topology)
    return {
        (int(a.removeprefix("GPU")), int(b.removeprefix("GPU"))): topology.link(a, b)
        for a, b in combinations(names, 2)
    }


def test_a01_nvswitch_with_ansi_header_and_empty_cell() -> None:
    read = parse_topology(sample("a01_topo_h100x8_nvswitch_nics.txt"))
    assert read.devices == tuple([f"GPU{n}" for n in range(8)] + [f"NIC{n}" for n in range(8)])
    assert set(links(read).values()) == {"NV18"}
    assert nodes_of(read) == [(0,)] * 4 + [(1,)] * 4
    assert read.affinity["GPU0"].cpus == "0-55,112-167"
    assert isinstance(read.affinity["NIC0"].cpus, Unknown)
    assert read.cells["NIC0", "GPU0"] == "PXB"


def test_a04_one_gpu_without_nvlink() -> None:
    read = links(parse_topology(sample("a04_topo_b200x8_one_gpu_without_nvlink.txt")))
    without = {pair for pair, kind in read.items() if not str(kind).startswith("NV")}
    assert without == {pair for pair in read if 2 in pair}
    assert read[0, 2] == "NODE"
    assert read[2, 4] == "SYS"


def test_a07_one_switch_per_socket() -> None:
    topology = parse_topology(sample("a07_topo_4090x8_pix_per_socket.txt"))
    read = links(topology)
    for (a, b), kind in read.items():
        assert kind == ("PIX" if a // 4 == b // 4 else "SYS")
    assert nodes_of(topology) == [(0,)] * 4 + [(1,)] * 4


def test_a08_two_a_socket_in_columns_of_blanks() -> None:
    topology = parse_topology(sample("a08_topo_l40s_x4_node_sys.txt"))
    read = links(topology)
    assert {pair for pair, kind in read.items() if kind == "NODE"} == {(0, 1), (2, 3)}
    assert nodes_of(topology) == [(0,), (0,), (1,), (1,)]


def test_a09_sys_inside_a_node() -> None:
    topology = parse_topology(sample("a09_topo_pcie_x8_sys_inside_node.txt"))
    assert set(links(topology).values()) == {"SYS"}
    assert nodes_of(topology) == [(0,), (0,), (0,), (1,), (2,), (2,), (2,), (3,)]


def test_a13_numa_column_not_available() -> None:
    affinity = parse_topology(sample("a13_topo_single_numa_na.txt")).affinity["GPU0"]
    assert affinity.cpus == "0-7"
    assert affinity.nodes == Unknown(unknown="N/A")
    one = parse_numa(["/sys/devices/system/node/node0/cpulist:0-7"])
    assert gpu_node(GpuSources(cpus=affinity.cpus, nodes=affinity.nodes), one) == 0


def test_a14_blank_affinity_is_not_read_from_the_next_column() -> None:
    affinity = parse_topology(sample("a14_topo_blank_affinity.txt")).affinity["GPU0"]
    assert isinstance(affinity.cpus, Unknown)
    assert isinstance(affinity.nodes, Unknown)


def test_a15_cpu_node_out_of_a_list_with_memory_nodes() -> None:
    topology = parse_topology(sample("a15_topo_gb200x4_gpu_numa_id.txt"))
    nodes = parse_numa(sample("d05_sysfs_gb200.txt"))
    read = [topology.affinity[gpu] for gpu in gpus(topology)]
    assert [node_of_ids(affinity.nodes, nodes) for affinity in read] == [0, 0, 1, 1]
    assert [node_of_cpus(affinity.cpus, nodes) for affinity in read] == [0, 0, 1, 1]
    # A node of GPU memory, offered by any source, is never the answer.
    for memory_node in (2, 10, 18, 26):
        sources = GpuSources(sysfs=memory_node, nodes=(memory_node,))
        assert isinstance(gpu_node(sources, nodes), Unknown)


def test_a16_old_driver_has_only_cpus_and_a_named_nic() -> None:
    topology = parse_topology(sample("a16_topo_2017_driver_mlx4_no_numa.txt"))
    assert topology.devices[-1] == "mlx4_0"
    assert all(isinstance(nodes, Unknown) for nodes in nodes_of(topology))
    assert topology.affinity["GPU7"].cpus == "10-19,30-39"
    assert topology.link("GPU0", "GPU1") == "PIX"


def test_a16_soc_is_the_old_sys_and_other_words_are_unknown() -> None:
    text = "\n".join(sample("a16_topo_2017_driver_mlx4_no_numa.txt"))
    older = parse_topology(text.replace("SYS", "SOC").split("\n"))
    assert older.link("GPU0", "GPU4") == "SYS"
    newer = parse_topology(text.replace("PHB", "C2C").split("\n"))
    assert newer.link("GPU0", "GPU2") == Unknown(unknown="C2C")
    assert newer.link("GPU0", "GPU1") == "PIX"


def test_a17_sixteen_gpus_and_nics_by_device_name() -> None:
    topology = parse_topology(sample("a17_topo_dgx2_x16_named_nics.txt"))
    assert len(gpus(topology)) == 16
    assert topology.devices[16:] == tuple(f"mlx5_{n}" for n in range(10))
    assert set(links(topology).values()) == {"NV6"}
    assert all(isinstance(nodes, Unknown) for nodes in nodes_of(topology))
    assert topology.affinity["GPU8"].cpus == "24-47,72-95"


def test_a18_glued_columns_leave_links_unknown_and_numa_readable() -> None:
    topology = parse_topology(sample("a18_topo_pasted_glued_columns.txt"))
    assert all(isinstance(kind, Unknown) for kind in links(topology).values())
    assert nodes_of(topology) == [(0,)] * 4 + [(1,)] * 4


def test_a20_mig_devices_are_not_in_the_matrix() -> None:
    topology = parse_topology(sample("a20_topo_mig_one_gpu.txt"))
    assert topology.devices == ("GPU0",)
    assert nodes_of(topology) == [(0,)]


def test_a22_without_gpu_numa_column_and_legend() -> None:
    topology = parse_topology(sample("a22_topo_x2_no_gpu_numa_column.txt"))
    assert topology.link("GPU0", "GPU1") == "PHB"
    assert nodes_of(topology) == [(0,), (0,)]


@pytest.mark.parametrize("name", ["a24_p2p_r_gns.txt", "a26_p2p_r_ns_spaces.txt"])
def test_a24_a26_peer_access_refused(name: str) -> None:
    assert parse_peers(sample(name)) == {("GPU0", "GPU1"): False, ("GPU1", "GPU0"): False}


def test_peer_words() -> None:
    text = "\n".join(sample("a24_p2p_r_gns.txt"))
    assert parse_peers(text.replace("GNS", "OK").split("\n"))["GPU0", "GPU1"] is True
    assert parse_peers(text.replace("GNS", "DR").split("\n"))["GPU0", "GPU1"] is False
    assert parse_peers(text.replace("GNS", "U").split("\n"))["GPU0", "GPU1"] == Unknown(unknown="U")


def test_a29_an_error_is_no_matrix() -> None:
    read = parse_topology(sample("a29_topo_m_i_error.txt"))
    assert read == Topology()
    assert isinstance(read.link("GPU0", "GPU1"), Unknown)


def test_asymmetric_cells_are_unknown() -> None:
    text = "\n".join(sample("a22_topo_x2_no_gpu_numa_column.txt"))
    read = parse_topology(text.replace("X      PHB", "X      PIX").split("\n"))
    assert read.link("GPU0", "GPU1") == Unknown(unknown="asymmetric: PIX and PHB")

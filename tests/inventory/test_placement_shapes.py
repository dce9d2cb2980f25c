"""The shapes of box that gpu samples record: each chooses or refuses as the rules say."""

from __future__ import annotations

import pytest

from facts.hardware import parse_hardware
from facts.sections import Section
from inventory.base import Unknown
from inventory.errors import PlacementError
from inventory.hardware import Hardware, Link
from inventory.placement import Chosen, place
from inventory.service import Placement
from tests.facts.hardware.samples import body, row, sample
from tests.inventory.boxes import GIB, box, gpu, links, node, numbers, story, uuid, with_gpus


def recorded(
    topology: str, *cpus: str, sockets: tuple[int, ...] = (0, 1), p2p: str = ""
) -> Hardware:
    """A box with the link matrix of a sample and a sound card in each of its rows.

    + cpus: CPU list of each node
    + p2p: word in every cell of the peer matrix; empty leaves the matrix out
    """
    matrix = sample(topology)
    count = sum(line.startswith("GPU") for line in matrix)
    numa = [f"/sys/devices/system/node/node{n}/cpulist:{list_}" for n, list_ in enumerate(cpus)]
    numa += [
        f"/sys/devices/system/node/node{n}/cpu0/topology/physical_package_id:{socket}"
        for n, socket in enumerate(sockets)
    ]
    names = [f"GPU{n}" for n in range(count)]
    peers = [" ".join(names)]
    peers += [" ".join([a, *("X" if a == b else p2p for b in names)]) for a in names]
    found = {
        "nv.full": body(*(row(n, f"{n + 16:02X}") for n in range(count))),
        "nv.apps": body(),
        "nv.topo": body(*matrix),
        "numa": body(*numa),
        "nv.p2p": body(*peers) if p2p else Section(rc=None),
    }
    return parse_hardware(found)


def error_of(wish: Placement, hardware: Hardware) -> PlacementError:
    with pytest.raises(PlacementError) as caught:
        place(wish, hardware)
    return caught.value


def test_a01_nvswitch_prefers_one_node_and_accepts_two() -> None:
    read = recorded("a01_topo_h100x8_nvswitch_nics.txt", "0-55,112-167", "56-111,168-223", p2p="OK")
    chosen = place(Placement(gpus=4), read)
    assert (numbers(chosen), chosen.closeness) == ([0, 1, 2, 3], "nvlink")
    assert numbers(place(Placement(gpus=8, within="nvlink"), read)) == list(range(8))
    spread = place(Placement(gpus=4, exclude=("GPU-0", "GPU-4")), read)
    assert spread.closeness == "nvlink"
    assert sorted(map(str, spread.numa_nodes)) in (["0", "0", "0", "1"], ["0", "1", "1", "1"])


def test_a04_the_gpu_without_nvlink_is_left_out() -> None:
    read = recorded(
        "a04_topo_b200x8_one_gpu_without_nvlink.txt", "0-55,112-167", "56-111,168-223", p2p="OK"
    )
    chosen = place(Placement(gpus=4), read)
    assert numbers(chosen) == [4, 5, 6, 7]  # the only node with four that NVLink joins
    assert any("no NVLink on GPU 2" in warning for warning in chosen.warnings)
    assert 2 not in numbers(place(Placement(gpus=7, within="nvlink"), read))
    error = error_of(Placement(gpus=8, within="nvlink"), read)
    assert "at most 7 with NVLink between every pair" in error.found
    assert 'within="host"' in error.next_step
    assert numbers(place(Placement(gpus=8, within="host"), read)) == list(range(8))


def test_a07_one_switch_without_peer_access() -> None:
    read = recorded("a07_topo_4090x8_pix_per_socket.txt", "0-27,56-83", "28-55,84-111", p2p="GNS")
    inside = place(Placement(gpus=4), read)
    assert numbers(inside) == [0, 1, 2, 3]
    assert any("6 of these pairs share one PCIe switch" in one for one in inside.warnings)
    # Anywhere: both uplinks are used, two GPUs on each.
    spread = place(Placement(gpus=2, within="host"), read)
    assert sorted(map(str, spread.numa_nodes)) == ["0", "1"]
    assert any("so they are spread" in one for one in spread.why)
    assert any("refuses peer access for 1 of 1 pairs" in one for one in spread.warnings)


def test_a07_one_switch_with_peer_access() -> None:
    read = recorded("a07_topo_4090x8_pix_per_socket.txt", "0-27,56-83", "28-55,84-111", p2p="OK")
    chosen = place(Placement(gpus=2, within="host"), read)
    assert (numbers(chosen), chosen.closeness) == ([0, 1], "numa-node")


def test_a08_four_of_two_sockets_are_told_of_pipeline_parallel() -> None:
    read = recorded("a08_topo_l40s_x4_node_sys.txt", "0-95,192-287", "96-191,288-383", p2p="OK")
    assert numbers(place(Placement(gpus=2), read)) == [0, 1]
    assert "at most 2 in one NUMA node" in error_of(Placement(gpus=4), read).found
    chosen = place(Placement(gpus=4, within="host"), read)
    assert any(
        "--tensor-parallel-size 2 --pipeline-parallel-size 2" in one for one in chosen.warnings
    )


SNC = ("0-15,64-79", "16-31,80-95", "32-47,96-111", "48-63,112-127")


def test_a09_split_sockets_3_1_3_1() -> None:
    read = recorded("a09_topo_pcie_x8_sys_inside_node.txt", *SNC, sockets=(0, 0, 1, 1), p2p="OK")
    assert [card.numa_node for card in read.gpus] == [0, 0, 0, 1, 2, 2, 2, 3]
    assert numbers(place(Placement(gpus=3), read)) == [0, 1, 2]
    chosen = place(Placement(gpus=4), read)
    assert (numbers(chosen), chosen.closeness) == ([0, 1, 2, 3], "socket")
    assert any("sockets are split (SNC or NPS)" in one for one in chosen.why)
    assert numbers(place(Placement(gpus=4, exclude=("GPU-1",)), read)) == [4, 5, 6, 7]
    assert "at most 4 on one socket" in error_of(Placement(gpus=5, within="socket"), read).found
    # One GPU: of the node that holds only one, so that a node of three stays whole.
    assert numbers(place(Placement(gpus=1), read)) == [3]


def test_a09_split_sockets_that_are_not_told_are_not_guessed() -> None:
    read = recorded("a09_topo_pcie_x8_sys_inside_node.txt", *SNC, sockets=(), p2p="OK")
    error = error_of(Placement(gpus=4), read)
    assert "at most 3 in one NUMA node" in error.found
    assert 'within="socket"' in error.next_step


def test_nps4_one_gpu_a_node() -> None:
    """Two sockets of four nodes, one GPU on each node."""
    gpus = [gpu(n, n) for n in range(8)]
    nps4 = box(gpus, nodes=[node(n, n // 4) for n in range(8)], bindable_nodes=tuple(range(8)))
    chosen = place(Placement(gpus=4), nps4)
    assert (numbers(chosen), chosen.closeness) == ([0, 1, 2, 3], "socket")
    assert chosen.numa_bind_nodes == (0, 1, 2, 3)
    assert numbers(place(Placement(gpus=2), nps4)) == [0, 1]
    assert 'within="host"' in error_of(Placement(gpus=8), nps4).next_step


def test_all_sys() -> None:
    gpus = [gpu(n, n // 4) for n in range(8)]
    chosen = place(Placement(gpus=4), box(gpus, links(gpus, "SYS")))
    assert (numbers(chosen), chosen.closeness) == ([0, 1, 2, 3], "numa-node")


def test_bridged_pairs_are_no_island() -> None:
    """Two NVLink bridges (0-1, 2-3): a chain of pairs is not all pairs."""
    gpus = [gpu(n) for n in range(4)]
    made = links(gpus, {(0, 1): "NV4", (2, 3): "NV4"}, across="PHB")
    bridged = box(gpus, made, [node(0, 0)])
    assert numbers(place(Placement(gpus=2, within="nvlink"), bridged)) == [0, 1]
    assert "at most 2 with NVLink" in error_of(Placement(gpus=4, within="nvlink"), bridged).found
    without = with_gpus(bridged, {0: {"health": "lost"}})
    assert numbers(place(Placement(gpus=2), without)) == [2, 3]
    assert numbers(place(Placement(gpus=1), without)) == [1]  # the pair 2-3 stays whole


def mixed() -> Hardware:
    """b10: two 5090 and three 4090 in one box."""
    order = (
        "index, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB], "
        "memory.reserved [MiB], driver_version, persistence_mode, compute_mode, mig.mode.current, "
        "compute_cap, addressing_mode, pcie.link.gen.current, pcie.link.gen.max, "
        "pcie.link.width.current, pcie.link.width.max, name"
    )
    return parse_hardware(
        {
            "nv.full": body(order, *sample("b10_csv_mixed_models.txt")),
            "nv.apps": body(),
            "numa": body("/sys/devices/system/node/node0/cpulist:0-31"),
        }
    )


def names(hardware: Hardware, chosen: Chosen) -> set[object]:
    return {card.name for card in hardware.gpus if card.uuid in chosen.gpus}


def test_b10_mixed_models_prefer_like_cards() -> None:
    read = mixed()
    two = place(Placement(gpus=2), read)
    assert names(read, two) == {"NVIDIA GeForce RTX 4090"}  # one 5090 has half of its lanes
    fast = place(Placement(gpus=2), with_gpus(read, {1: {"pcie_width_current": 16}}))
    assert names(read, fast) == {"NVIDIA GeForce RTX 5090"}  # leaves three alike
    three = place(Placement(gpus=3), read)
    assert names(read, three) == {"NVIDIA GeForce RTX 4090"}
    assert not any("different cards" in one for one in three.warnings)
    four = place(Placement(gpus=4), read)
    assert any("memory of the smallest, 24.0 GiB" in one for one in four.warnings)
    big = place(Placement(gpus=2), read, memory_needed=30 * GIB)
    assert names(read, big) == {"NVIDIA GeForce RTX 5090"}
    assert any("8 of 16 PCIe lanes" in one for one in big.warnings)


def test_like_cards_across_sockets_before_mixed_cards_in_one_node() -> None:
    gpus = [gpu(0, 0), gpu(1, 0, name="other", memory_total=48 * GIB), gpu(2, 1)]
    chosen = place(Placement(gpus=2, within="host"), box(gpus))
    assert numbers(chosen) == [0, 2]


def test_mig_parents_are_not_whole() -> None:
    cut = with_gpus(
        story(),
        {0: {"mig_enabled": True}, 1: {"mig_enabled": Unknown(unknown="[Unknown Error]")}},
    )
    chosen = place(Placement(gpus=4), cut)
    assert numbers(chosen) == [4, 5, 6, 7]
    assert chosen.rejected[0].reason == "cut into MIG devices"
    assert "MIG unknown" in chosen.rejected[1].reason
    error = error_of(Placement(gpus=7, within="host"), cut)
    assert "6 of 8 GPUs can be taken" in error.found


def test_a_restricted_process_belongs_to_the_mig_card() -> None:
    hidden = parse_hardware(
        {
            "nv.full": body(row(0, "10", mig__mode__current="Enabled"), row(1, "11")),
            "nv.apps": body(*sample("b17_apps_mig_restricted.txt")),
            "numa": body("/sys/devices/system/node/node0/cpulist:0-31"),
        }
    )
    assert numbers(place(Placement(gpus=1), hidden)) == [1]


@pytest.mark.parametrize(
    "health", ["reset-required", "lost", "excluded", "memory-failed", "unknown"]
)
def test_unhealthy_cards_are_not_taken(health: str) -> None:
    bad = with_gpus(
        story(state="degraded", reason="0000:11:00.0 bad"),
        {1: {"health": health, "health_reason": "in its words"}},
    )
    chosen = place(Placement(gpus=4), bad)
    assert numbers(chosen) == [4, 5, 6, 7]
    assert chosen.rejected[1].reason == f"{health}: in its words"
    assert "the box is degraded: 0000:11:00.0 bad" in chosen.warnings
    error = error_of(Placement(gpus=8, within="host"), bad)
    assert f"GPU 1 (0000:11:00.0) {health}: in its words" in error.found
    kept = place(Placement(gpus=4), bad, keep=[uuid(n) for n in range(4)])
    assert numbers(kept) == [4, 5, 6, 7]


def test_prohibited_and_nameless_cards_are_not_taken() -> None:
    bad = with_gpus(story(), {0: {"compute_mode": "Prohibited"}, 4: {"uuid": "PCI-0000:14:00.0"}})
    assert error_of(Placement(gpus=4), bad).found.startswith("6 free GPUs")


def test_a_virtual_machine_without_topology_goes_by_count() -> None:
    gpus = [gpu(n, Unknown(unknown="neither sysfs nor the driver says")) for n in range(4)]
    guest = box(gpus, (), virtual_machine=True)
    chosen = place(Placement(gpus=2), guest)
    assert (numbers(chosen), chosen.closeness) == ([0, 1], "unknown")
    assert any("locality is unknown" in one for one in chosen.warnings)
    assert chosen.numa_bind_nodes is None
    assert "not known" in chosen.numa_bind_reason
    assert "at most 1 with NVLink" in error_of(Placement(gpus=2, within="nvlink"), guest).found


def test_a_virtual_machine_with_a_topology_is_marked() -> None:
    chosen = place(Placement(gpus=4), story(virtual_machine=True))
    assert numbers(chosen) == [0, 1, 2, 3]
    assert any("inside a virtual machine" in one for one in chosen.warnings)


def test_unknown_nodes_below_one_bridge() -> None:
    gpus = [gpu(n, Unknown(unknown="-1")) for n in range(4)]
    made = links(gpus, {(0, 2): "PHB", (1, 3): "PHB"}, p2p=Unknown(unknown="not asked"))
    assert numbers(place(Placement(gpus=2), box(gpus, made))) == [0, 2]


def test_links_that_disagree_are_no_nvlink() -> None:
    gpus = [gpu(0), gpu(1)]
    link = Link(a=uuid(0), b=uuid(1), kind=Unknown(unknown="asymmetric"), p2p=True)
    error = error_of(Placement(gpus=2, within="nvlink"), box(gpus, (link,)))
    assert "at most 1 with NVLink between every pair" in error.found

"""All sources together: the five states, lost cards, MIG, shared memory, links, processes."""

from __future__ import annotations

from facts.hardware import parse_hardware
from facts.sections import sections
from inventory.base import Unknown
from inventory.common.units import GIB, KIB, MIB
from inventory.hardware import Hardware
from tests.facts.hardware.samples import FIXTURES, TWO_NODES, body, pci, row, sample

ROWS = body(row(0, "01"))
CARD = pci("0000:01:00.0")
LOST_CARD = "/proc/driver/nvidia/gpus/0000:1e:00.0/information"


def test_lost_gpu_is_the_pci_list_minus_the_rows() -> None:
    read = parse_hardware(
        {
            "nv.full": body(*sample("b20_csv_ragged_lost_gpu.txt")),
            "pci": pci("0000:1d:00.0", "0000:1e:00.0"),
            "nvproc": body(
                *(
                    f"{LOST_CARD}:{line}"
                    for line in (
                        "Model: 	 NVIDIA GeForce RTX 3090",
                        "GPU UUID: 	 GPU-1e",
                        "Bus Location: 	 0000:1e:00.0",
                    )
                )
            ),
        }
    )
    # The row of the sample has the columns of another order: it is no row here.
    assert [(gpu.uuid, gpu.health) for gpu in read.gpus][-1] == ("GPU-1e", "lost")
    assert read.gpus[-1].name == "NVIDIA GeForce RTX 3090"


def test_lost_gpu_beside_a_sound_one() -> None:
    read = parse_hardware({"nv.full": ROWS, "pci": pci("0000:01:00.0", "0000:02:00.0")})
    assert [(gpu.uuid, gpu.health) for gpu in read.gpus] == [
        ("GPU-0", "ok"),
        ("PCI-0000:02:00.0", "lost"),
    ]
    assert read.reason == "0000:02:00.0 lost"


def test_rows_of_an_answer_that_failed_do_not_count() -> None:
    read = parse_hardware({"nv.full": body(row(0, "01"), rc=15), "pci": CARD})
    assert [(gpu.health, gpu.uuid) for gpu in read.gpus] == [("unknown", "PCI-0000:01:00.0")]


def test_a_card_given_to_a_guest_degrades_nothing() -> None:
    read = parse_hardware(
        {
            "nv.full": ROWS,
            "pci": body(*CARD.lines, *pci("0000:02:00.0", driver="vfio-pci").lines),
        }
    )
    assert read.state == "ok"
    assert read.gpus[1].health == "excluded"
    assert "vfio-pci" in read.gpus[1].health_reason


def test_gpus_come_in_bus_order_and_links_follow_the_index() -> None:
    matrix = [
        "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity",
        "GPU0\t X \tPIX\tSYS\t0-31,64-95\t0",
        "GPU1\tPIX\t X \tPHB\t0-31,64-95\t0",
        "GPU2\tSYS\tPHB\t X \t32-63,96-127\t1",
    ]
    peers = ["\tGPU0\tGPU1\tGPU2", "GPU0\tX\tOK\tNS", "GPU1\tOK\tX\tOK", "GPU2\tNS\tNS\tX"]
    read = parse_hardware(
        {
            "nv.full": body(row(0, "C1"), row(1, "41"), row(2, "0A")),
            "nv.topo": body(*matrix),
            "nv.p2p": body(*peers),
            "numa": TWO_NODES,
        }
    )
    assert [gpu.bus_id for gpu in read.gpus] == ["0000:0a:00.0", "0000:41:00.0", "0000:c1:00.0"]
    assert [gpu.numa_node for gpu in read.gpus] == [1, 0, 0]
    found = {(link.a, link.b): (link.kind, link.p2p) for link in read.links}
    assert found["GPU-1", "GPU-0"] == ("PIX", True)
    assert found["GPU-2", "GPU-0"] == ("SYS", False)
    assert found["GPU-2", "GPU-1"] == ("PHB", Unknown(unknown="the two directions differ"))


def test_links_by_pci_path_where_the_matrix_is_missing() -> None:
    def device(address: str, path: str) -> str:
        return f"dev\t{address}\tvendor=0x10de\tclass=0x030200\tpath=/sys/devices/{path}/{address}"

    switch = "pci0000:15/0000:15:01.0/0000:16:00.0"
    read = parse_hardware(
        {
            "nv.full": body(row(0, "18"), row(1, "19"), row(2, "1F"), row(3, "9A")),
            "pci": body(
                device("0000:18:00.0", f"{switch}/0000:17:00.0"),
                device("0000:19:00.0", f"{switch}/0000:17:01.0"),
                device("0000:1f:00.0", "pci0000:15/0000:15:02.0"),
                device("0000:9a:00.0", "pci0000:97/0000:97:01.0"),
            ),
        }
    )
    kinds = {(link.a[-1], link.b[-1]): link.kind for link in read.links}
    assert kinds["0", "1"] == "PIX"
    assert kinds["0", "2"] == "PHB"
    assert isinstance(kinds["0", "3"], Unknown)


def test_mig_devices_with_their_memory() -> None:
    uuid = "GPU-00000000-0000-4000-8000-000000000000"
    xml = "\n".join(sample("c11_qx_v12_mig_insufficient.xml"))
    second = xml.replace("<index>0<", "<index>3<").replace("00000000:01", "00000000:02")
    read = parse_hardware(
        {
            "nv.full": body(row(0, "02", uuid=uuid, mig__mode__current="Enabled"), row(1, "03")),
            "nv.list": body(*sample("c08_list_mig.txt")),
            "nv.slices": body(*second.split("\n")),
        }
    )
    parent, whole = read.gpus
    assert parent.mig_enabled is True
    assert [part.profile for part in parent.slices][-1] == "1g.18gb"
    assert parent.slices[3].memory_total == 19968 * MIB
    assert isinstance(parent.slices[0].memory_total, Unknown)
    assert whole.slices == ()
    assert read.state == "ok"


def gb10(*host: str, apps: tuple[str, ...] = ()) -> Hardware:
    cells = {"addressing_mode": "ATS", "name": "NVIDIA GB10", "mig__mode__current": "[N/A]"}
    absent = dict.fromkeys(("memory__total", "memory__used", "memory__free"), "[N/A]")
    return parse_hardware(
        {
            "nv.full": body(row(0, "01", **cells, **absent)),
            "host": body("MemTotal:  125829120 kB", "MemAvailable: 104857600 kB", *host),
            "nv.apps": body(*apps),
        }
    )


def test_shared_memory_is_the_hosts_and_its_use_is_that_of_processes() -> None:
    (gpu,) = gb10(apps=("GPU-0, 77, 2048, python3",)).gpus
    assert gpu.unified_memory
    assert gpu.memory_total == 120 * GIB
    assert gpu.memory_free == 100 * GIB
    assert gpu.memory_used == 2 * GIB
    (gpu,) = gb10(apps=("GPU-0, 77, [N/A], python3",)).gpus
    assert isinstance(gpu.memory_used, Unknown)


def test_shared_memory_with_huge_pages_set_aside() -> None:
    host = ("HugePages_Total: 100", "HugePages_Free: 7", "Hugepagesize: 2048 kB")
    (gpu,) = gb10(*host).gpus
    assert gpu.memory_free == 7 * 2048 * KIB
    (gpu,) = gb10("HugePages_Total: 100", "HugePages_Free: ?").gpus
    assert isinstance(gpu.memory_free, Unknown)


def processes(*apps: str, rc: int = 0, units: tuple[str, ...] = ()) -> object:
    read = parse_hardware(
        {"nv.full": ROWS, "nv.apps": body(*apps, rc=rc), "nv.units": body(*units)}
    )
    return read.processes


def test_processes_with_their_unit() -> None:
    found = processes(
        "GPU-0, 10, 90000, VLLM::Worker_TP0",
        "GPU-0, 11, 500, python",
        "GPU-0, 12, 10, gone",
        "GPU-0, 4294967295, 10, x",
        units=(
            "10\t0::/system.slice/vllm-kimi-k25.service",
            "11\t1:name=systemd:/user.slice/user-0.slice/session-3.scope",
            "11\t0::/",
        ),
    )
    assert isinstance(found, tuple)
    assert [process.unit for process in found] == [
        "vllm-kimi-k25.service",
        "session-3.scope",
        Unknown(unknown="no process 12 in /proc"),
        Unknown(unknown="the driver says 4294967295"),
    ]
    assert isinstance(found[3].pid, Unknown)


def test_processes_not_told_are_not_none() -> None:
    assert processes() == ()
    assert processes("Insufficient Permissions", rc=4) == Unknown(
        unknown="Insufficient Permissions"
    )
    assert isinstance(parse_hardware({"nv.full": ROWS}).processes, Unknown)


def test_other_vendors_are_shown_and_not_called_no_hardware() -> None:
    read = parse_hardware(
        {
            "nv.full": body(rc=127),
            "pci": body(
                "dev\t0000:01:00.0\tvendor=0x1002\tclass=0x120000\tnuma_node=0\tdriver=amdgpu",
                "dev\t0000:c5:00.0\tvendor=0x1002\tclass=0x030000\tnuma_node=0\tdriver=amdgpu",
            ),
            "amd.static": body(*sample("e05_amd_static.txt")),
        }
    )
    assert read.state == "unknown"
    assert "amd" in read.reason
    (card,) = read.accelerators  # the display part of the processor is none
    assert (card.name, card.memory_total) == ("AMD Instinct MI300A", 96434 * MIB)


def test_binding_and_iommu() -> None:
    read = parse_hardware(
        {"numabind": body("0\t0", "1\t1"), "host": body("iommu_groups\t74", "virt\tnone")}
    )
    assert read.numactl is True
    assert read.bindable_nodes == (0,)
    assert read.iommu_groups == 74
    assert read.virtual_machine is False
    absent = parse_hardware({"numabind": body(rc=127)})
    assert absent.numactl is False
    assert isinstance(absent.bindable_nodes, Unknown)


def test_a_real_machine_with_two_gpus() -> None:
    text = (FIXTURES / "h200" / "probe-x2.txt").read_text()
    read = parse_hardware(sections(text, "abc"))
    assert read.state == "ok"
    assert [gpu.index for gpu in read.gpus] == [0, 1]
    assert [gpu.numa_node for gpu in read.gpus] == [0, 0]  # sysfs -1, one node
    assert read.gpus[1].memory_used == 1643 * MIB
    (link,) = read.links
    assert (link.kind, link.p2p) == ("NV18", True)
    assert isinstance(read.processes, tuple)
    (process,) = read.processes
    assert (process.gpu, process.memory) == (read.gpus[1].uuid, 1634 * MIB)
    assert process.unit == "vllm-minimax-m25.service"
    assert (read.driver, read.kernel_driver, read.cuda) == ("580.159.04", "580.159.04", "13.0")
    assert read.host_memory_total == 263998500 * KIB
    assert read.bindable_nodes == ()
    assert read.iommu_groups == 0
    assert read.gpus[0].iommu == "none"


def test_json_goes_there_and_back() -> None:
    text = (FIXTURES / "h200" / "probe-x2.txt").read_text()
    read = parse_hardware(sections(text, "abc"))
    assert Hardware.model_validate(read.to_json()) == read

"""Samples c02-c15: errors, lists, versions, XML, the drawn table; read as the index says."""

from __future__ import annotations

import pytest

from facts.hardware.smi import parse_query
from facts.hardware.smitext import (
    Failure,
    failure,
    parse_list,
    parse_nvlink,
    parse_table,
    parse_versions,
    table_versions,
)
from facts.hardware.smixml import parse_xml
from inventory.base import Unknown
from inventory.common.units import MIB
from tests.facts.hardware.samples import sample


@pytest.mark.parametrize(
    ("rc", "name", "kind"),
    [
        (18, "c02_version_mismatch.txt", "mismatch"),
        (255, "c04_no_supported_gpus.txt", "no-devices"),
    ],
)
def test_c02_c04_errors(rc: int, name: str, kind: Failure) -> None:
    assert failure(rc, sample(name)) == kind
    assert parse_query(sample(name)).gpus == ()


@pytest.mark.parametrize(
    ("rc", "text", "kind"),
    [
        (9, "... it couldn't communicate with the NVIDIA driver", "no-module"),
        (255, "Failed to initialize NVML: Unknown Error", "unknown"),
        (6, "No devices were found", "no-devices"),
        (0, "No devices were found", "no-devices"),
        (124, "", "hung"),
        (137, "", "hung"),
        (127, "", "no-tool"),
        (0, "", "none"),
        (None, "", "unknown"),
    ],
)  # fmt: skip
def test_exit_statuses(rc: int | None, text: str, kind: Failure) -> None:
    assert failure(rc, [text]) == kind


def test_c07_list() -> None:
    one, two = parse_list(sample("c07_list_plain.txt"))
    assert (one.index, one.name, one.uuid) == (
        0,
        "NVIDIA H200",
        "GPU-00000000-0000-4000-8000-000000000000",
    )
    assert two.index == 1
    assert one.slices == ()


def test_c08_list_with_mig() -> None:
    one, two = parse_list(sample("c08_list_mig.txt"))
    assert [part.profile for part in one.slices] == [
        "1c.3g.71gb",
        "2c.3g.71gb",
        "2g.35gb",
        "1g.18gb",
    ]
    assert one.slices[3].uuid == "MIG-00000003-0000-5000-8000-000000000003"
    assert two.slices == ()


def test_c08_old_form_of_a_mig_uuid() -> None:
    lines = [
        "GPU 0: NVIDIA A100 (UUID: GPU-aa)",
        "  MIG 3g.20gb Device 0: (UUID: MIG-GPU-aa/1/0)",
    ]
    (gpu,) = parse_list(lines)
    assert gpu.slices[0].uuid == "MIG-GPU-aa/1/0"


def test_c09_c10_versions_under_old_and_new_labels() -> None:
    old = parse_versions(sample("c09_version_590.txt"))
    assert (old.driver, old.cuda) == ("590.48.01", "13.1")
    new = parse_versions(sample("c10_version_610.txt"))
    assert (new.driver, new.cuda) == ("610.57.04", "13.3")


def test_a_deprecated_label_alone_is_unknown() -> None:
    lines = ['CUDA version        : Deprecated, see "CUDA UMD version" instead']
    assert isinstance(parse_versions(lines).cuda, Unknown)


def test_c11_memory_of_slices_is_not_that_of_the_gpu() -> None:
    (gpu,) = parse_xml("\n".join(sample("c11_qx_v12_mig_insufficient.xml")))
    assert gpu.bus_id == "0000:01:00.0"
    assert gpu.memory_total == Unknown(unknown="Insufficient Permissions")
    (part,) = gpu.slices
    assert part.number == 0
    assert part.memory_total == 19968 * MIB


def test_c13_drawn_table_of_a_gb10() -> None:
    (drawn,) = parse_table(sample("c13_table_gb10.txt"))
    assert (drawn.name, drawn.bus_id) == ("NVIDIA GB10", "000f:01:00.0")
    assert drawn.memory_total == Unknown(unknown="Not Supported")
    assert drawn.memory_used == Unknown(unknown="Not Supported")
    versions = table_versions(sample("c13_table_gb10.txt"))
    assert (versions.driver, versions.cuda) == ("580.126.09", "13.0")


def test_c15_only_links_with_a_speed_count() -> None:
    read = parse_nvlink(sample("c15_nvlink_s_variants.txt"))
    assert list(read.values())[:3] == [1, 0, 0]
    assert isinstance(read["GPU-00000003-0000-4000-8000-000000000003"], Unknown)

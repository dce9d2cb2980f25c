"""Samples c02-c11: errors, lists, versions, XML; read as the index says."""

from __future__ import annotations

import pytest

from facts.hardware.mig import parse_list, parse_memory
from facts.hardware.smi import parse_query
from facts.hardware.smitext import Failure, failure, parse_versions
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
    read = parse_list(sample("c07_list_plain.txt"))
    assert list(read) == [f"GPU-0000000{n}-0000-4000-8000-00000000000{n}" for n in (0, 1)]
    assert set(read.values()) == {()}


def test_c08_list_with_mig() -> None:
    one, two = parse_list(sample("c08_list_mig.txt")).values()
    assert [part.profile for part in one] == [
        "1c.3g.71gb",
        "2c.3g.71gb",
        "2g.35gb",
        "1g.18gb",
    ]
    assert one[3].uuid == "MIG-00000003-0000-5000-8000-000000000003"
    assert two == ()


def test_c08_old_form_of_a_mig_uuid() -> None:
    lines = [
        "GPU 0: NVIDIA A100 (UUID: GPU-aa)",
        "  MIG 3g.20gb Device 0: (UUID: MIG-GPU-aa/1/0)",
    ]
    (part,) = parse_list(lines)["GPU-aa"]
    assert part.uuid == "MIG-GPU-aa/1/0"


def test_c09_c10_versions_under_old_and_new_labels() -> None:
    old = parse_versions(sample("c09_version_590.txt"))
    assert (old.driver, old.cuda) == ("590.48.01", "13.1")
    new = parse_versions(sample("c10_version_610.txt"))
    assert (new.driver, new.cuda) == ("610.57.04", "13.3")


def test_a_deprecated_label_alone_is_unknown() -> None:
    lines = ['CUDA version        : Deprecated, see "CUDA UMD version" instead']
    assert isinstance(parse_versions(lines).cuda, Unknown)


def test_c11_memory_of_slices_is_not_that_of_the_gpu() -> None:
    read = parse_memory("\n".join(sample("c11_qx_v12_mig_insufficient.xml")))
    assert read == {("0000:01:00.0", 0): 19968 * MIB}

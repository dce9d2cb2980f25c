"""Whatever a machine prints: a result or Unknown, never an exception, no unknown a number."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facts.hardware import parse_hardware
from facts.hardware.cells import bus_id, flag, kibibytes, mebibytes, number, table, word
from facts.hardware.host import bindable, numactl_exists, parse_host
from facts.hardware.mig import parse_list, parse_memory
from facts.hardware.numa import (
    GpuSources,
    gpu_node,
    parse_ids,
    parse_numa,
)
from facts.hardware.others import parse_amd, parse_habana
from facts.hardware.pci import link_by_path, parse_module, parse_pci
from facts.hardware.processes import parse_processes, unit_of
from facts.hardware.smi import COLUMNS, parse_query
from facts.hardware.smitext import (
    failure,
    lost_bus_ids,
    parse_versions,
)
from facts.hardware.topology import parse_peers, parse_topology
from facts.sections import Section
from inventory.base import Unknown
from inventory.hardware import Hardware
from tests.facts.hardware.samples import FIXTURES, row, sample

SAMPLES = sorted(path.name for path in (FIXTURES / "gpu").glob("[a-p][0-9]*"))
SECTIONS = (
    "numa numabind host pci nvproc nv.full nv.list nv.apps nv.units nv.topo nv.p2p nv.slices "
    "nv.version amd.static hl.core"
).split()
SENTINELS = (
    "[N/A]",
    "N/A",
    "[Not Supported]",
    "[Unknown Error]",
    "[Insufficient Permissions]",
    "[GPU requires reset]",
    "ERR!",
    "[Requested functionality has been deprecated]",
    "",
    "-1",
    "12.5",
    "1e6",
    "0x10",
    "١٢",
    "9" * 5000,
)

PARSERS: tuple[Callable[[Sequence[str]], object], ...] = (
    table,
    parse_query,
    lambda lines: failure(len(lines), lines),
    lost_bus_ids,
    parse_list,
    parse_versions,
    lambda lines: parse_memory("\n".join(lines)),
    parse_topology,
    parse_peers,
    parse_processes,
    lambda lines: parse_processes(["GPU-1, 1, 1, x"], lines),
    unit_of,
    parse_numa,
    parse_pci,
    parse_module,
    lambda lines: link_by_path("\n".join(lines), "/sys/devices/pci0000:15/x"),
    parse_host,
    lambda lines: bindable(Section(rc=0, lines=tuple(lines))),
    lambda lines: numactl_exists(Section(rc=0, lines=tuple(lines))),
    parse_amd,
    parse_habana,
)


@st.composite
def damaged(draw: st.DrawFn) -> list[str]:
    """The lines of a sample with words replaced, lines dropped, and the end cut off."""
    lines = list(sample(draw(st.sampled_from(SAMPLES))))
    for _ in range(draw(st.integers(0, 4))):
        where = draw(st.integers(0, len(lines) - 1))
        words = re.split(r"([\s,:=]+)", lines[where])
        words[draw(st.integers(0, len(words) - 1))] = draw(
            st.sampled_from(SENTINELS) | st.text(max_size=8)
        )
        lines[where] = "".join(words)
    return lines[: draw(st.integers(0, len(lines)))]


any_lines = st.lists(st.text(max_size=60), max_size=8) | damaged()


@settings(max_examples=300, deadline=None)
@given(lines=any_lines)
def test_no_text_makes_a_parser_raise(lines: list[str]) -> None:
    for parse in PARSERS:
        parse(lines)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(SECTIONS),
        st.builds(
            Section,
            rc=st.sampled_from([None, 0, 0, 0, 2, 9, 15, 18, 124, 127, 255]),
            lines=any_lines.map(tuple),
        ),
    )
)
def test_no_sections_make_the_reading_raise(found: dict[str, Section]) -> None:
    read = parse_hardware(found)
    assert Hardware.model_validate(read.to_json()) == read
    assert len({gpu.uuid for gpu in read.gpus}) == len(read.gpus)


NUMBERS = {
    "index": "index",
    "memory.total": "memory_total",
    "memory.used": "memory_used",
    "memory.free": "memory_free",
    "pcie.link.width.current": "pcie_width_current",
    "pcie.link.width.max": "pcie_width_max",
}


@pytest.mark.parametrize("column", NUMBERS)
@settings(deadline=None)
@given(
    cell=st.sampled_from(SENTINELS) | st.text(st.characters(exclude_characters=","), max_size=12)
)
def test_a_cell_that_is_no_number_is_unknown(column: str, cell: str) -> None:
    cells = row(0, "01").split(", ")
    cells[COLUMNS.index(column)] = cell
    for gpu in parse_query([", ".join(cells)]).gpus:
        value = getattr(gpu, NUMBERS[column])
        if re.fullmatch(r"[0-9]{1,12}( ?Mi?B)?", cell.strip()) is None:
            assert isinstance(value, Unknown)


@settings(deadline=None)
@given(st.text(max_size=12))
def test_single_cells(cell: str) -> None:
    bare = cell.strip()
    if re.fullmatch(r"[0-9]+", bare) is None:
        assert isinstance(number(cell), Unknown)
    if re.fullmatch(r"[0-9]+( ?Mi?B)?", bare) is None:
        assert isinstance(mebibytes(cell), Unknown)
    if re.fullmatch(r"[0-9]+ kB", bare) is None:
        assert isinstance(kibibytes(cell), Unknown)
    if bare.lower() not in ("yes", "no", "enabled", "disabled"):
        assert isinstance(flag(cell), Unknown)
    if ":" not in cell:
        assert isinstance(bus_id(cell), Unknown)
    value = word(cell)
    assert isinstance(value, Unknown) or value == bare


@settings(deadline=None)
@given(st.integers(0, 0xFFFFFFFF), st.integers(0, 255), st.integers(0, 31), st.integers(0, 7))
def test_bus_ids_become_those_of_sysfs(domain: int, bus: int, device: int, function: int) -> None:
    cell = f"{domain:08X}:{bus:02X}:{device:02X}.{function}"
    assert bus_id(cell) == f"{domain:04x}:{bus:02x}:{device:02x}.{function}"


@settings(deadline=None)
@given(st.frozensets(st.integers(0, 5000), max_size=40))
def test_cpu_lists(ids: frozenset[int]) -> None:
    assert parse_ids(",".join(map(str, sorted(ids)))) == ids


@settings(deadline=None)
@given(st.text(max_size=20))
def test_cpu_lists_of_any_text_are_bounded(text: str) -> None:
    ids = parse_ids(text)
    assert isinstance(ids, Unknown) or len(ids) <= 1 << 16


@settings(deadline=None)
@given(
    place=st.integers(-5, 9) | st.none(),
    cpus=st.sampled_from(["0", "2", "3", "2-3", "0-3", "9", "N/A", ""]),
    nodes=st.lists(st.integers(0, 9), max_size=3).map(tuple),
)
def test_a_node_is_never_made_up(place: int | None, cpus: str, nodes: tuple[int, ...]) -> None:
    box = parse_numa([f"/sys/devices/system/node/node{n}/cpulist:{n}" for n in (0, 2, 3)])
    told = number(str(place)) if place is not None else Unknown(unknown="not asked")
    node = gpu_node(GpuSources(told, cpus, nodes), box)
    if isinstance(node, int):
        assert node in (0, 2, 3)
        assert node in (place, *nodes) or str(node) == cpus


def test_every_sample_is_read_by_a_test() -> None:
    here = FIXTURES.parent / "facts" / "hardware"
    text = "".join(path.read_text() for path in here.glob("test_samples_*.py"))
    assert [name for name in SAMPLES if name not in text] == []
    index = (FIXTURES / "gpu" / "INDEX.md").read_text()
    assert re.findall(r"^\| ([a-p][0-9]{2}_\S+) \|", index, flags=re.M) == SAMPLES

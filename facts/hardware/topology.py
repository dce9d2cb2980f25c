"""``nvidia-smi topo``: the link matrix, peer access, and where a GPU's CPUs are.

The matrix is split on blanks, never by tab index: header and rows have different numbers of
tabs, and they vary with the driver. nvidia-smi underlines the header even into a pipe.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from facts.hardware.cells import read, unknown
from facts.hardware.numa import parse_ids
from inventory.base import NOT_ASKED, Unknown
from inventory.common.engine_log import uncoloured

_LINK = r"(?:X|NV[0-9]+|PIX|PXB|PHB|NODE|SYS|SOC)"
_TAIL = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_PEER = {"OK": True, "CNS": False, "GNS": False, "TNS": False, "NS": False, "DR": False}


@dataclass(frozen=True)
class Affinity:
    """The tail of a GPU's row.

    + cpus: CPU list, e.g. 0-55,112-167; under a cpuset or Slurm only the allowed part
    + nodes: NUMA nodes; on Grace it mixes nodes with CPUs and nodes of GPU memory
    """

    cpus: str | Unknown = NOT_ASKED
    nodes: tuple[int, ...] | Unknown = NOT_ASKED


@dataclass(frozen=True)
class Topology:
    """The matrix by the names that it uses (GPU0, NIC0, mlx5_0).

    + devices: column names in order
    + cells: (row, column) -> link word; a row that does not fit the header is all Unknown
    + affinity: row -> tail
    """

    devices: tuple[str, ...] = ()
    cells: Mapping[tuple[str, str], str | Unknown] = field(default_factory=dict)
    affinity: Mapping[str, Affinity] = field(default_factory=dict)

    def link(self, a: str, b: str) -> str | Unknown:
        """The link word of a pair, where both of its cells say the same."""
        there, back = self.cells.get((a, b), NOT_ASKED), self.cells.get((b, a), NOT_ASKED)
        if isinstance(there, Unknown) or isinstance(back, Unknown):
            return there if isinstance(there, Unknown) else back
        return there if there == back else unknown(f"asymmetric: {there} and {back}")


def parse_topology(lines: Sequence[str]) -> Topology:
    """Read ``nvidia-smi topo -m``."""
    devices: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    cells: dict[tuple[str, str], str | Unknown] = {}
    affinity: dict[str, Affinity] = {}
    for line in map(uncoloured, lines):
        if not devices:
            head, found, rest = line.partition("CPU Affinity")
            if found and "GPU0" in head.split():
                devices = tuple(head.split())
                tail = tuple(name for name in _TAIL if name in found + rest)
            continue
        label, *words = line.split() or [""]
        if label not in devices or label in affinity:
            continue
        row, end = _split(words, devices.index(label), len(devices), len(tail))
        for column, cell in zip(devices, row, strict=True):
            cells[label, column] = cell
        affinity[label] = _affinity(end, tail)
    return Topology(devices, cells, affinity)


def _split(
    words: list[str], own: int, width: int, columns: int
) -> tuple[list[str | Unknown], list[str]]:
    """Cut a row into its cells and its tail; cells are never shifted to make them fit."""
    end = words[width:]
    glued = any(re.fullmatch(f"{_LINK}{{2,}}", word) for word in words[:width])
    fits = len(words) >= width and len(end) <= columns and words[own] == "X"
    if fits and not glued and not any(re.fullmatch(_LINK, word) for word in end):
        return [_link(word) for word in words[:width]], end
    links = [n for n, word in enumerate(words) if re.fullmatch(f"{_LINK}+", word)]
    end = words[links[-1] + 1 :] if links else []
    reason = unknown(f"{len(words) - len(end)} cells do not fit {width} columns")
    return [reason] * width, end


def _link(word: str) -> str | Unknown:
    """A link word; SOC is the old name of SYS."""
    if not re.fullmatch(_LINK, word):
        return unknown(word)
    return "SYS" if word == "SOC" else word


def _affinity(words: list[str], columns: tuple[str, ...]) -> Affinity:
    """Columns may be empty and then leave no word behind: fewer words than columns say nothing."""
    if len(words) != len(columns):
        missing = unknown(f"{len(words)} of {len(columns)} columns")
        return Affinity(missing, missing)
    told = dict(zip(columns, words, strict=True))
    cpus = told.get("CPU Affinity", "")
    nodes = read(told, "NUMA Affinity", parse_ids)
    return Affinity(
        cpus=cpus if isinstance(parse_ids(cpus), frozenset) else unknown(cpus),
        nodes=nodes if isinstance(nodes, Unknown) else tuple(sorted(nodes)),
    )


def parse_peers(lines: Sequence[str]) -> Mapping[tuple[str, str], bool | Unknown]:
    """Read ``nvidia-smi topo -p2p r``: (row, column) -> whether the driver permits it."""
    devices: list[str] = []
    found: dict[tuple[str, str], bool | Unknown] = {}
    for words in (uncoloured(line).split() for line in lines):
        if not devices:
            if words and all(re.fullmatch(r"GPU[0-9]+", word) for word in words):
                devices = words
            continue
        if not words or words[0] not in devices:
            continue
        label, row = words[0], words[1:]
        fits = len(row) == len(devices) and row[devices.index(label)] == "X"
        for n, column in enumerate(devices):
            if column != label:
                word = row[n] if fits else "row does not fit the header"
                found[label, column] = _PEER.get(word, unknown(word))
    return found

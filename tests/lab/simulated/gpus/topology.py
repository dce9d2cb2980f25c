"""``nvidia-smi topo -m`` and ``topo -p2p r``, byte for byte as driver 580 shapes them: the
header is underlined even into a pipe, and rows have more cells than the header.
"""

from __future__ import annotations

from .description import Box

UNDERLINE, PLAIN = "\x1b[4m", "\x1b[0m"

LINKS = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes \
(e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges \
within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""
PEERS = """
Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  GNS  = GPU not supported
  TNS  = Topology not supported
  NS   = Not supported
  U    = Unknown
"""


def matrix(box: Box) -> str:
    """The text of ``topo -m``."""
    names = [f"GPU{index}" for index in range(len(box.gpus))]
    tail = ["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]
    lines = ["\t" + UNDERLINE + "\t".join(names + tail) + PLAIN]
    for index, gpu in enumerate(box.gpus):
        cells = [
            " X " if other == index else box.link(index, other) for other in range(len(box.gpus))
        ]
        node = box.node(gpu)
        lines.append("\t".join([names[index], *cells, node.cpus, str(node.id), "", "N/A"]))
    return "\n".join(lines) + "\n" + LINKS


def peers(box: Box) -> str:
    """The text of ``topo -p2p r``."""
    names = [f"GPU{index}" for index in range(len(box.gpus))]
    lines = [" \t" + UNDERLINE + "\t".join(names) + "\t" + PLAIN]
    for index, name in enumerate(names):
        cells = ["X" if other == index else box.p2p for other in range(len(names))]
        lines.append(f" {name}\t" + "\t".join(cells) + "\t")
    return "\n".join(lines) + "\n" + PEERS

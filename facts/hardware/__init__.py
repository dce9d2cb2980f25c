"""The hardware of a box, read from the sections that probe/hardware.sh prints.

Pure functions: text in, typed values out. No text makes them raise, and what the box did not
tell is Unknown, never a number.

- cells: single values and rows, as the tools print them
- smi, smitext, mig, topology, processes: what nvidia-smi says
- pci, numa, host: what the kernel says
- others: AMD and Habana
- assemble: all of it together, :func:`parse_hardware`
"""

from facts.hardware.assemble import parse_hardware

__all__ = ["parse_hardware"]

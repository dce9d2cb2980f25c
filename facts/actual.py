"""The actual state of a box: everything that one read told, as one frozen value."""

from facts.hardware import parse_hardware
from facts.reading.disks import Disk, Folder, read_disks, read_folders
from facts.reading.engines import EngineState, read_engine
from facts.reading.host import HostState, read_host
from facts.reading.listeners import EndpointAnswer, Listener, read_answer, read_listeners
from facts.reading.neighbours import Neighbours, read_neighbours
from facts.reading.snapshots import SnapshotState, read_snapshot
from facts.reading.units import UnitState, read_units
from facts.sections import complete, sections
from inventory.base import Frozen, Unknown
from inventory.hardware import Hardware


class Actual(Frozen):
    """What a box is, at one moment."""

    complete: bool
    """Whether the read ran to its end."""
    host: HostState
    units: tuple[UnitState, ...] | Unknown
    folders: tuple[Folder, ...]
    disks: tuple[Disk, ...]
    snapshot: SnapshotState
    neighbours: Neighbours
    engine: EngineState
    listeners: tuple[Listener, ...] | Unknown
    answer: EndpointAnswer
    hardware: Hardware

    def unit(self, name: str) -> UnitState | Unknown:
        """One of the units that were asked for.

        + name: with its ending, e.g. ``vllm-kimi-k25.service``
        """
        if isinstance(self.units, Unknown):
            return self.units
        for unit in self.units:
            if unit.name == name:
                return unit
        return Unknown(unknown=f"{name} was not read")

    def folder(self, path: str) -> Folder | Unknown:
        """One of the folders that were asked for."""
        for folder in self.folders:
            if folder.path == path:
                return folder
        return Unknown(unknown=f"{path} was not read")

    def disk(self, path: str) -> Disk | Unknown:
        """The file system that holds, or will hold, one of the paths that were asked for."""
        for disk in self.disks:
            if disk.path == path:
                return disk
        return Unknown(unknown=f"the file system of {path} was not read")


def read_actual(text: str, nonce: str = "") -> Actual:
    """Everything that the probe printed, typed.

    + text: the probe's output, whatever it is: nothing in it raises
    + nonce: the token that this read was given
    """
    found = sections(text, nonce)
    return Actual(
        complete=complete(found),
        host=read_host(found),
        units=read_units(found),
        folders=read_folders(found),
        disks=read_disks(found),
        snapshot=read_snapshot(found),
        neighbours=read_neighbours(found),
        engine=read_engine(found),
        listeners=read_listeners(found),
        answer=read_answer(found),
        hardware=parse_hardware(found),
    )

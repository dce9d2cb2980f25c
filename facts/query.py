"""What one read of a box asks for, and the shell text that asks it."""

import shlex
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from facts.reading.units import STATE_PROPERTIES
from inventory.base import Frozen
from inventory.common import paths
from inventory.service import Model, Service

PACKAGES = ("python3-venv", "libnuma1", "iproute2")
"""Debian packages that a box needs: to make environments, to load the engine (vLLM's extension
links libnuma and dies without it), and to name the listener of a port."""


class Query(Frozen):
    """The parts of a box that a run is about. Empty parts are not read."""

    units: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    disks: tuple[str, ...] = ()
    """Paths whose file system is of interest, existing or not."""
    snapshot: str = ""
    """Folder of the snapshot."""
    caches: tuple[str, ...] = ()
    """The repository's folder in each cache of huggingface_hub."""
    neighbours: bool = False
    """Read the other snapshots of the repository even where this one is there."""
    environment: str = ""
    """Folder of the engine environment."""
    tools: str = ""
    """Folder of boxwright's own programs."""
    account: str = ""
    packages: tuple[str, ...] = ()
    host: str = ""
    port: int | None = None
    hardware: bool = False
    """GPUs and NUMA nodes too: the slow part where nvidia-smi has to wake the cards."""
    sysfs: str = "/sys"
    """Another tree in its place, for a simulated machine."""


def query_for(
    service: Service,
    *,
    folder: str,
    tools: str,
    replaces: tuple[Service, ...] = (),
    sysfs: str = "/sys",
    neighbours: bool = False,
) -> Query:
    """Everything that serving one service is about.

    + service: what should be served
    + folder: the snapshot's folder
    + tools: folder of boxwright's own programs
    + replaces: services that should be gone
    + sysfs: root of the sysfs tree
    + neighbours: whether other snapshots of the repository matter, because one may be deleted
    """
    return Query(
        units=(service.unit, *(old.unit for old in replaces), *verify_units(service)),
        folders=(
            service.model.under,
            service.model.home,
            service.engine.under,
            paths.STATE,
            paths.READY,
        ),
        disks=(folder, service.engine.environment_folder),
        snapshot=folder,
        caches=cache_folders(service.model),
        neighbours=neighbours,
        environment=service.engine.environment_folder,
        tools=tools,
        account=service.user,
        packages=PACKAGES,
        host=service.listen.connect_host,
        port=service.listen.port,
        hardware=service.placement.gpus > 0,
        sysfs=sysfs,
    )


def verify_units(service: Service) -> tuple[str, str]:
    """The service that hashes a snapshot again, and the timer that starts it."""
    return f"boxwright-verify@{service.name}.service", f"boxwright-verify@{service.name}.timer"


def cache_folders(model: Model) -> tuple[str, ...]:
    """The model's folder in each cache of huggingface_hub that the fetch would look into."""
    name = f"models--{model.repo.replace('/', '--')}"
    return tuple(f"{cache}/{name}" for cache in model.caches)


def script(query: Query, nonce: str) -> str:
    """The whole read as POSIX sh.

    + query: what to read
    + nonce: token that marks the frame lines of this read
    """
    variables = {
        "NONCE": nonce,
        "SYSFS": query.sysfs,
        "UNITS": " ".join(query.units),
        "FOLDERS": " ".join(query.folders),
        "DISKS": " ".join(query.disks),
        "SNAPSHOT": query.snapshot,
        "CACHES": " ".join(query.caches),
        "NEIGHBOURS": "1" if query.neighbours else "",
        "ENVIRONMENT": query.environment,
        "TOOLS": query.tools,
        "ACCOUNT": query.account,
        "PACKAGES": " ".join(query.packages),
        "HOST": query.host,
        "PORT": "" if query.port is None else str(query.port),
        "PROPERTIES": ",".join(STATE_PROPERTIES),
        "UNIT_FILES": paths.UNITS,
        "READY": paths.READY,
        "MEASURED": paths.MEASURED,
        "OWN": paths.OWN,
        "MANIFEST": paths.MANIFEST,
        "USERS": paths.USERS,
        "FETCHING": paths.FETCHING,
        "INCOMING": paths.INCOMING,
    }
    return framed(variables, "box.sh", *(["hardware.sh"] if query.hardware else []))


def framed(variables: Mapping[str, str], *parts: str) -> str:
    """A read as POSIX sh.

    + variables: what the parts are told; ``NONCE`` among them
    + parts: files of facts/probe, in their order
    """
    assignments = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    texts = map(_text, ("frame.sh", *parts))
    return "\n".join([*assignments, *texts, 'echo "@@$NONCE end 0"', "exit 0"])


@cache
def _text(name: str) -> str:
    """A part of the script, without its comments: the box has no use for them."""
    lines = files("facts.probe").joinpath(name).read_text().splitlines()
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))

"""The lab: real boxes on this machine. `python -m tests.lab COMMAND`, from the repository's root.

up       make what is slow to make (image, wheelhouse, models) and start the Hub
boot     boot a box, making it first if there is none
rebuild  throw away all that was done in a box and boot it: a freshly installed host
reboot   reboot a box from inside
cut      cut the power of a box; `boot` boots it again
destroy  remove a box with all its files
down     stop the boxes and the Hub of this checkout; their files stay
status   what there is and what runs
clean    down, and remove everything that the lab has made

All state is in .lab/. Every command may be repeated, and copes with what a killed one left behind.
Where pip is not set up to find torch's CPU wheel: LAB_PIP_ARGS="--extra-index-url URL".
"""

import argparse
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.lab import hub_service, image, model, wheelhouse
from tests.lab.base import Lab, LabError, lock, require
from tests.lab.box import Box, connections
from tests.lab.group import groups


def up(lab: Lab) -> None:
    """Make image, wheelhouse and models unless they are there, and start the Hub."""
    require()
    if image.find(lab) is None:
        print("Making the image (about 90 s) ...", flush=True)
    made = image.ensure(lab)
    if not wheelhouse.is_complete(lab):
        print("Making the wheelhouse (600 MB, about 70 s) ...", flush=True)
    wheelhouse.ensure(lab, image.python_version(made))
    with lock(lab.caches / "models.lock"):
        for tiny in model.MODELS.values():
            model.build(tiny, lab.models)
    served = hub_service.ensure(lab)
    print(f"The lab is up. Hub: {served.url}. Next: python -m tests.lab boot NAME")


def down(lab: Lab) -> None:
    """End every process that this lab has started: boxes, Hub, and what killed runs left.

    Their mounts are in mount namespaces of their own and go with them.
    """
    require()
    for one in (lab, *lab.of_workers):
        hub_service.stop(one)
        for link in connections(one):
            Box(link.name, one).cut()
        for group in groups(one):
            group.end()


def clean(lab: Lab) -> None:
    """Stop everything and remove the lab's folders, caches included."""
    down(lab)
    for folder in {lab.root, lab.caches}:
        if folder.exists():  # caches may lie in the root that is gone already
            shutil.rmtree(folder)


def status(lab: Lab) -> None:
    """Print what there is and what runs."""
    require()
    made = image.find(lab)
    served = hub_service.find(lab)
    models = sorted(path.name for path in lab.models.glob("*/*") if path.is_dir())
    print(f"image       {made.name if made else 'none'}")
    print(f"wheelhouse  {_size(lab.wheelhouse) if wheelhouse.is_complete(lab) else 'none'}")
    print(f"models      {', '.join(models) or 'none'}")
    print(f"hub         {served.url if served else 'off'}")
    for link in connections(lab):
        box = Box(link.name, lab)
        state = "running" if box.is_running else "off"
        kind = "" if link.systemd else ", no systemd"
        kind += ", simulated GPUs" if link.simulated else ""
        place = f"{link.ssh_user}@{link.ssh_hostname} port {link.ssh_port}"
        print(f"box         {link.name}: {state}, {place}{kind}")


def _size(folder: Path) -> str:
    files = [path for path in folder.iterdir() if path.is_file()]
    return f"{len(files)} files, {sum(path.stat().st_size for path in files) // 2**20} MiB"


def _boot(box: Box) -> None:
    box.boot()
    link = box.connection
    print(f"{box.name} is up: {link.ssh_user}@{link.ssh_hostname} port {link.ssh_port}")


def _rebuild(box: Box) -> None:
    box.rebuild()
    print(f"{box.name} is rebuilt and up: {box.address}")


def _reboot(box: Box) -> None:
    box.reboot()
    print(f"{box.name} is back: {box.address}")


def _cut(box: Box) -> None:
    box.cut()
    print(f"{box.name} is off.")


def _destroy(box: Box) -> None:
    box.destroy()
    print(f"{box.name} is gone.")


_OF_LAB: Final[Mapping[str, Callable[[Lab], None]]] = {
    "up": up,
    "down": down,
    "status": status,
    "clean": clean,
}
_OF_BOX: Final[Mapping[str, Callable[[Box], None]]] = {
    "boot": _boot,
    "rebuild": _rebuild,
    "reboot": _reboot,
    "cut": _cut,
    "destroy": _destroy,
}


def main(arguments: Sequence[str] | None = None, lab: Lab | None = None) -> int:
    """Carry out one command line; 0 if it did, 1 with a message on stderr if not."""
    lab = lab or Lab()
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in _OF_LAB:
        commands.add_parser(name)
    for name in _OF_BOX:
        command = commands.add_parser(name)
        command.add_argument("name", metavar="NAME")
        if name in {"boot", "rebuild"}:
            _add_kinds(command)
    chosen = vars(parser.parse_args(arguments))
    command_name = chosen.pop("command")
    try:
        if command_name in _OF_LAB:
            _OF_LAB[command_name](lab)
        else:
            _OF_BOX[command_name](Box(chosen.pop("name"), lab, **chosen))
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. The same command goes on from here.", file=sys.stderr)
        return 130
    return 0


def _add_kinds(command: argparse.ArgumentParser) -> None:
    """What kind of box; what is not said stays as it was."""
    users = command.add_mutually_exclusive_group()
    for option, user, may in (
        ("--user", image.ADMINISTRATOR, "may use sudo"),
        ("--guest", image.GUEST, "may not use sudo"),
        ("--root", "root", "the default"),
    ):
        help_text = f"{user} logs in ({may})"
        users.add_argument(option, dest="user", action="store_const", const=user, help=help_text)
    command.add_argument(
        "--simulated",
        action=argparse.BooleanOptionalAction,
        help="with the simulated GPUs",
    )
    command.add_argument(
        "--systemd",
        action=argparse.BooleanOptionalAction,
        help="--no-systemd: sshd is the only process",
    )


if __name__ == "__main__":
    sys.exit(main())

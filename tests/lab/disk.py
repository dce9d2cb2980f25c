"""A box's disk: the image below, layers on it, and a folder on top that takes all changes.

`NAME/image` names the image that the box was made of, `NAME/layer-1` and so on what lies on it,
`NAME/upper` holds the changes, `NAME/work` belongs to the overlay filesystem, and `NAME/root` is
where the box's own processes mount it.
"""

import os
import shlex
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.lab.base import LabError, run
from tests.lab.connection import Connection

_HOST_KEY: Final = "etc/ssh/ssh_host_ed25519_key"


def create(folder: Path, image: Path, connection: Connection, layers: Sequence[Path] = ()) -> None:
    """Make a fresh disk, with a machine id and an SSH host key of its own.

    + folder: appears complete or not at all
    + image: folder of the image
    + layers: folders that lie on the image, the lowest first (tests/lab/layer.py)
    """
    draft = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    for name in ("upper/etc/ssh/sshd_config.d", "work", "root"):
        (draft / name).mkdir(parents=True, mode=0o755)
    (draft / "image").symlink_to(image)
    for number, layer in enumerate(layers, 1):
        (draft / f"layer-{number}").symlink_to(layer)
    upper = draft / "upper"
    (upper / "etc/machine-id").write_text(f"{uuid.uuid4().hex}\n")
    key = upper / _HOST_KEY
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", connection.name, "-f", str(key)])
    address(draft, connection)
    draft.rename(folder)


def address(folder: Path, connection: Connection) -> None:
    """Write into a disk that is not mounted how its box is reached, and trust its host key."""
    upper = folder / "upper"
    host, port, name = connection.ssh_hostname, connection.ssh_port, connection.name
    public = Path(connection.ssh_key).with_suffix(".pub").read_text()
    texts = {
        "etc/hostname": f"{name}\n",
        "etc/hosts": f"127.0.0.1 localhost\n::1 localhost ip6-localhost\n{host} {name}\n",
        "etc/ssh/lab_key.pub": public,
        "etc/ssh/sshd_config.d/box.conf": f"ListenAddress {host}:{port}\n",
    }
    for path, text in texts.items():
        (upper / path).write_text(text)
    kind, key = (upper / f"{_HOST_KEY}.pub").read_text().split()[:2]
    marked = host if port == 22 else f"[{host}]:{port}"
    Path(connection.ssh_known_hosts_file).write_text(f"{marked} {kind} {key}\n")


def remove(folder: Path) -> None:
    """Remove a disk that is not mounted; none there is no error."""
    if folder.exists():
        shutil.rmtree(folder)


def mount_script(folder: Path) -> str:
    """Shell lines that mount the disk on `NAME/root`, to run in a mount namespace of the box.

    The overlay is named by relative paths: a colon or a comma in a folder's name means something
    to it. Raises LabError when the image or a layer is gone.
    """
    below = [*sorted((path.name for path in folder.glob("layer-*")), reverse=True), "image"]
    for name in below:
        if not (folder / name).is_dir():
            raise LabError(
                f"The {name} of the box {folder.name} was removed. Rebuild the box: it gets a "
                "new one."
            )
    options = f"lowerdir={':'.join(below)},upperdir=upper,workdir=work"
    return f"cd {shlex.quote(os.fspath(folder))} && mount -t overlay -o {options} overlay root\n"

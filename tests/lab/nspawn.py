"""The shell script that keeps a box going: it mounts the disk and boots it, and boots it again."""

import shlex
from pathlib import Path
from typing import Final

from tests.lab import disk
from tests.lab.connection import Connection

# With --keep-unit, systemd-nspawn leaves a reboot to whoever runs it, and ends with this status.
_REBOOT: Final = 133


def script(folder: Path, connection: Connection, wheelhouse: Path) -> str:
    """The script, for /bin/sh.

    It runs in a mount namespace of its own, so all its mounts go when its last process goes.

    + folder: the box's disk
    + wheelhouse: shown in the box as /srv/wheelhouse, read-only, if it is there
    """
    command = [
        "systemd-nspawn",
        "--quiet",
        f"--directory={folder / 'root'}",
        f"--machine={connection.name}",
        "--register=no",
        "--keep-unit",
        "--link-journal=no",
        "--console=passive",
    ]
    if wheelhouse.is_dir():
        source = str(wheelhouse.resolve()).replace("\\", "\\\\").replace(":", "\\:")
        command += [f"--bind-ro={source}:/srv/wheelhouse"]
    if connection.systemd:
        command += ["--boot"]
    else:
        sshd = "mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e"
        command += ["--as-pid2", "/bin/sh", "-c", sshd]
    inner = (
        "set -e\n"
        # systemd-nspawn removes a folder in here at the end, and refuses where /run is on a disk.
        "mkdir -p /run/systemd/nspawn\n"
        "mount -t tmpfs -o mode=0755 tmpfs /run/systemd/nspawn\n"
        f"{disk.mount_script(folder)}"
        "set +e\n"
        "cd /\n"
        # /tmp on the disk, as on a Debian server; otherwise it gets a tenth of the memory.
        "export SYSTEMD_NSPAWN_TMPFS_TMP=0\n"
        "while :; do\n"
        f"    {shlex.join(command)}\n"
        f"    [ $? -eq {_REBOOT} ] || exit\n"
        "done\n"
    )
    return f"exec unshare --mount sh -c {shlex.quote(inner)}\n"

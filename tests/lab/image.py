"""The image that boxes are made of: a Debian or Ubuntu with systemd and sshd, made once.

It is of this machine's own release, from this machine's own mirror. It appears complete or not at
all: it is made in a folder beside its place, and that folder is renamed at the end.
"""

import hashlib
import json
import shlex
import shutil
from pathlib import Path
from typing import Final

from tests.lab import apt
from tests.lab.base import Lab, LabError, require, run
from tests.lab.group import Group, making

# What a freshly installed server has, and what vLLM needs besides Python: libnuma1.
PACKAGES: Final = (
    *("systemd", "systemd-sysv", "libpam-systemd", "dbus", "openssh-server", "sudo"),
    *("python3", "python3-venv", "libnuma1", "iproute2", "procps", "ca-certificates"),
)

# Needless in a box, or meant for a machine with a console, a clock and disks of its own.
_MASKED: Final = (
    *("console-getty.service", "getty@.service", "systemd-networkd.service"),
    *("systemd-resolved.service", "systemd-timesyncd.service", "systemd-udevd.service"),
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "fstrim.timer"),
    *("e2scrub_all.timer", "e2scrub_reap.service", "motd-news.timer", "man-db.timer"),
)

ADMINISTRATOR: Final = "operator"  # may use sudo without a password
GUEST: Final = "guest"  # may not

_FINISH: Final = f"""
set -e
export DEBIAN_FRONTEND=noninteractive
for user in {ADMINISTRATOR} {GUEST}; do
    # Debian reserves `operator` as a group.
    getent group $user > /dev/null || groupadd $user
    useradd --create-home --shell /bin/bash --gid $user $user
done
echo '{ADMINISTRATOR} ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/{ADMINISTRATOR}
chmod 0440 /etc/sudoers.d/{ADMINISTRATOR}
echo LANG=C.UTF-8 > /etc/default/locale
mkdir -p /var/log/journal /srv/wheelhouse /shared
rm -f /etc/ssh/ssh_host_*_key* /etc/machine-id /etc/hostname
rm -rf /var/cache/apt/archives/*.deb /var/lib/apt/lists/*
# Ubuntu listens through ssh.socket, which does not read where sshd is told to listen.
systemctl disable ssh.socket 2> /dev/null || true
systemctl enable ssh.service 2> /dev/null
ln -sf /lib/systemd/system/multi-user.target /etc/systemd/system/default.target
for unit in {" ".join(_MASKED)}; do ln -sf /dev/null /etc/systemd/system/$unit; done
"""

_SSHD: Final = """\
PasswordAuthentication no
AuthorizedKeysFile .ssh/authorized_keys /etc/ssh/lab_key.pub
# Tests open many connections in a short time.
MaxStartups 200:30:400
UseDNS no
"""


def ensure(lab: Lab) -> Path:
    """Make the image unless it is there, and return its folder. Takes about 90 s the first time.

    Raises LabError when a tool, a mirror or the network is missing.
    """
    require("debootstrap", "chroot")
    codename, sources = _release()
    recipe = json.dumps([codename, [s.line() for s in sources], PACKAGES, _FINISH, _SSHD])
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:12]
    folder = lab.caches / f"image-{codename}-{digest}"
    if folder.is_dir():
        return folder
    with making(lab, "image") as group:
        if folder.is_dir():  # made while this process waited for its turn
            return folder
        draft = lab.caches / "image.part"
        # An interrupted run leaves half an image. What it had mounted in there is gone: that was
        # in a mount namespace of its own.
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        _bootstrap(draft, codename, sources, group, lab.caches / "image.log")
        _configure(draft, sources)
        return draft.rename(folder)


def find(lab: Lab) -> Path | None:
    """The newest complete image, if there is one."""
    found = [path for path in lab.caches.glob("image-*") if path.is_dir()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def python_version(image: Path) -> str:
    """The version of Python in the image, such as `3.11`."""
    return (image / "usr/bin/python3").readlink().name.removeprefix("python")


def _release() -> tuple[str, tuple[apt.Source, ...]]:
    """This machine's release and where its packages come from."""
    lines = Path("/etc/os-release").read_text().splitlines()
    pairs = dict(line.partition("=")[::2] for line in lines)
    codename = "".join(shlex.split(pairs.get("VERSION_CODENAME", "")))
    sources = apt.of_release(apt.sources(), codename)
    if not codename or not sources or sources[0].suite != codename:
        raise LabError(
            "The lab needs a Debian or Ubuntu machine: /etc/apt names no source for its release."
        )
    return codename, sources


def _bootstrap(
    draft: Path, codename: str, sources: tuple[apt.Source, ...], group: Group, log: Path
) -> None:
    source = sources[0]
    components = ",".join(c for c in source.components if c in {"main", "universe"})
    command = ["debootstrap", "--variant=minbase", f"--components={components}"]
    command += [f"--include={','.join(PACKAGES)}"]
    if source.keyring and Path(source.keyring).is_file():
        command += [f"--keyring={source.keyring}"]
    command += [codename, str(draft), source.uri]
    try:
        # In a mount namespace of its own: what debootstrap mounts ends with it.
        run(group.inside(["unshare", "--mount", *command]), log=log, timeout=1200)
    except LabError as error:
        raise LabError(f"The image could not be made (all of it: {log}). {error}") from None


def _configure(draft: Path, sources: tuple[apt.Source, ...]) -> None:
    run(["chroot", str(draft), "/bin/sh", "-c", _FINISH], timeout=300)
    (draft / "etc/ssh/sshd_config.d/lab.conf").write_text(_SSHD)
    (draft / "etc/apt/sources.list").write_text("".join(f"{s.line()}\n" for s in sources))
    # A site's proxy and certificate authorities hold inside the box too.
    lines = run(["apt-config", "dump"]).splitlines()
    kept = [line for line in lines if line.startswith(("Acquire::http", "Acquire::Check"))]
    (draft / "etc/apt/apt.conf.d/90lab").write_text("".join(f"{line}\n" for line in kept))
    bundle = Path("/etc/ssl/certs/ca-certificates.crt")
    if bundle.is_file():
        shutil.copyfile(bundle, draft / "etc/ssl/certs/ca-certificates.crt")

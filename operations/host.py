"""The ground: Debian packages, the service's user, folders."""

import shlex

from pyinfra.api import operation

from facts.actual import Actual
from facts.query import PACKAGES, Query
from inventory.base import Unknown
from inventory.common import paths
from inventory.service import Service
from operations.difference import Difference, differing
from operations.steps import Commands, Step, alone, converge, guarded


def ground_differences(service: Service, actual: Actual) -> tuple[Difference, ...]:
    """What the ground lacks."""
    found: list[Difference] = []
    for name in _missing_packages(actual):
        found += differing(f"package {name}", [("state", "installed", "absent")])
    if actual.host.account_home is None:
        found += differing(f"user {service.user}", [("state", "system user", "absent")])
    for path, owner in _folders(service).items():
        folder = actual.folder(path)
        if isinstance(folder, Unknown):
            continue
        found += differing(f"folder {path}", [("kind", "directory", folder.kind)])
        if folder.kind == "directory" and path in {paths.READY, service.model.home}:
            found += differing(f"folder {path}", [("owner", owner, folder.owner)])
    return tuple(found)


def _missing_packages(actual: Actual) -> list[str]:
    packages = actual.host.packages
    if isinstance(packages, Unknown):
        return []
    return [name for name in PACKAGES if name not in packages]


def _folders(service: Service) -> dict[str, str]:
    """Folder -> owner, parents first. An existing folder above the model's own keeps its owner:
    /shared is often somebody else's export."""
    return {
        paths.STATE: "root",
        paths.READY: "root",
        service.engine.under: "root",
        service.model.under: service.user,
        service.model.home: service.user,
    }


@operation()
@guarded
def ground(service: Service, query: Query) -> Commands:
    """Install the packages, make the user and the folders that a service stands on."""
    yield from converge(
        query,
        lambda actual: ground_differences(service, actual),
        lambda actual: Step(
            ground_script(service, actual),
            wanted=f"packages, user and folders for {service.name}",
            why="the engine cannot be installed or started without them; nothing else was touched",
            next_step="read the last lines above; a package manager that cannot reach its mirror, "
            "a full disk and a read-only file system are the usual causes",
        ),
        unchanged=f"packages, user and folders of {service.name} are in place",
        look=f"getent passwd {service.user}; stat {service.model.home} on the box",
    )


def ground_script(service: Service, actual: Actual) -> str:
    """The commands that make the ground."""
    user = shlex.quote(service.user)
    lines = ["set -e"]
    if missing := _missing_packages(actual):
        names = " ".join(map(shlex.quote, missing))
        # unattended-upgrades holds the lock on a fresh boot: wait for it.
        apt = "DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300"
        lines += [f"{apt} update", f"{apt} install -y --no-install-recommends {names}"]
    lines.append(
        f"getent passwd {user} >/dev/null || useradd --system --user-group --no-create-home "
        f"--home-dir /nonexistent --shell /usr/sbin/nologin {user}"
    )
    for path, owner in _folders(service).items():
        folder = actual.folder(path)
        quoted = shlex.quote(path)
        own = shlex.quote(owner)
        if isinstance(folder, Unknown) or folder.kind != "directory":
            lines.append(f"[ -d {quoted} ] || install -d -m 755 -o {own} -g {own} {quoted}")
        elif path in {paths.READY, service.model.home}:
            lines.append(f"chown {own}:{own} {quoted}")
    return alone("ground", "false", "\n".join(lines))

"""How a client reaches a box: what stands in `.lab/boxes/NAME.json`."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class Connection:
    """What a client needs to reach a box; `ssh_…` are the names that pyinfra gives these data.

    + name: its host name
    + ssh_hostname: its loopback address; services in it bind this one
    + ssh_user: `root`, `operator` (may use sudo) or `guest` (may not)
    + ssh_key: file of the private key
    + ssh_known_hosts_file: holds the host key that the box has now
    + systemd: whether systemd is in charge in the box
    + simulated: whether the box has the simulated GPUs
    """

    name: str
    ssh_hostname: str
    ssh_port: int
    ssh_user: str
    ssh_key: str
    ssh_known_hosts_file: str
    systemd: bool = True
    simulated: bool = False

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The connection in this file; None if there is no file."""
        try:
            return cls(**json.loads(path.read_text()))
        except FileNotFoundError:
            return None

    def write(self, path: Path) -> None:
        """Put the connection into this file, at once or not at all."""
        draft = path.with_name(f".{path.name}.part")
        draft.write_text(json.dumps(asdict(self), indent=2) + "\n")
        draft.rename(path)

    def ssh(self, user: str | None = None) -> list[str]:
        """The ssh command up to and including the host.

        + user: who logs in; `ssh_user` unless said otherwise
        """
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": "10",
            "GlobalKnownHostsFile": "/dev/null",
            "IdentitiesOnly": "yes",
            "LogLevel": "ERROR",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": f'"{self.ssh_known_hosts_file}"',
        }
        # -F: a person's own settings for 127.* do not reach the lab.
        command = ["ssh", "-F", "/dev/null", "-i", self.ssh_key, "-p", str(self.ssh_port)]
        command += [f"-o{name}={value}" for name, value in options.items()]
        return [*command, f"{user or self.ssh_user}@{self.ssh_hostname}"]

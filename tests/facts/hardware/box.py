"""A made-up box for the probe: its trees of files, and tools that write down their calls."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from facts.hardware.smi import COLUMNS
from facts.sections import Section, complete, sections
from tests.facts.hardware.samples import FIXTURES, row

PROBE = Path(__file__).parents[3] / "facts" / "probe"
NONCE = "0a1b"
HEADER = ", ".join(COLUMNS)
# A name with a comma, a byte that is no UTF-8, and a line that looks like a frame line.
APPS = "GPU-0, 4242, 2048, python -c f(1, 2)\nGPU-1, 4243, 64, caf\\351\n@@ nv.apps 0"


@dataclass(frozen=True)
class Box:
    """A box in a folder: sysfs, procfs, and tools that write down how they are called."""

    root: Path
    shell: str

    def tool(self, name: str, script: str) -> None:
        path = self.root / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "$*" >>{self.root}/calls.{name}\n{script}\n')
        path.chmod(0o755)

    def smi(self, **answers: str) -> None:
        """An nvidia-smi; each answer is a shell command, the defaults are two sound GPUs."""
        told = {
            "query": f"echo '{HEADER}'; echo '{row(0, '17')}'; echo '{row(1, '9A')}'",
            "apps": f"printf '{APPS}\\n'",
            "topo": f"cat {FIXTURES}/gpu/a22_topo_x2_no_gpu_numa_column.txt",
            "p2p": f"cat {FIXTURES}/gpu/a24_p2p_r_gns.txt",
            "version": f"cat {FIXTURES}/gpu/c10_version_610.txt",
            "list": f"cat {FIXTURES}/gpu/c07_list_plain.txt",
            "xml": "exit 1",
            "help": f"cat {FIXTURES}/h200/help-query-gpu.txt",
        }
        told.update(answers)
        self.tool(
            "nvidia-smi",
            f"""case "$*" in
            --query-gpu=*--format=csv,nounits) {told["query"]} ;;
            --query-compute-apps=gpu_uuid,pid,used_memory,process_name\\ *) {told["apps"]} ;;
            'topo -m') {told["topo"]} ;;
            'topo -p2p r') {told["p2p"]} ;;
            --version) {told["version"]} ;;
            -L) {told["list"]} ;;
            '-q -x') {told["xml"]} ;;
            --help-query-gpu) {told["help"]} ;;
            *) exit 1 ;;
            esac""",
        )

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def card(self, address: str, place: str, **files: str) -> Path:
        """A PCI device, in its place in the tree, held by the nvidia driver."""
        told = {"vendor": "0x10de", "class": "0x030200", "numa_node": "0", **files}
        folder = f"sys/devices/{place}/{address}"
        for name, value in told.items():
            self.write(f"{folder}/{name}", value + "\n")
        driver = self.root / "sys/bus/pci/drivers/nvidia"
        driver.mkdir(parents=True, exist_ok=True)
        (self.root / folder / "driver").symlink_to(driver)
        listed = self.root / "sys/bus/pci/devices" / address
        listed.parent.mkdir(parents=True, exist_ok=True)
        listed.symlink_to(self.root / folder)
        return self.root / folder

    def run(self, **environment: str) -> dict[str, Section]:
        """What the probe printed."""
        script = f"NONCE={NONCE}\n" + "".join(
            (PROBE / name).read_text() for name in ("frame.sh", "hardware.sh")
        )
        done = subprocess.run(
            [self.shell, "-c", script + f'\necho "@@{NONCE} end 0"'],
            env={
                "PATH": f"{self.root}/bin:/usr/bin:/bin",
                "SYSFS": f"{self.root}/sys",
                "PROCFS": f"{self.root}/proc",
                **environment,
            },
            cwd=self.root,
            capture_output=True,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        assert done.stderr == b""
        found = sections(done.stdout.decode("ascii"), NONCE)
        assert complete(found)
        return found

    def calls(self, tool: str = "nvidia-smi") -> list[str]:
        return [line.split(" ")[0] for line in self.told(tool)]

    def told(self, tool: str = "nvidia-smi") -> list[str]:
        path = self.root / f"calls.{tool}"
        return path.read_text().splitlines() if path.exists() else []

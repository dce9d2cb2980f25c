"""The empty wheels that stand in for what a CPU box does not use."""

import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

from tests.lab.wheelhouse import EMPTY, write_empty


def test_pip_takes_an_empty_wheel_for_the_dependency(tmp_path: Path) -> None:
    wheels, site = tmp_path / "wheels", tmp_path / "site"
    wheels.mkdir()
    for name, version in EMPTY.items():
        write_empty(wheels, name, version)
    command = [sys.executable, "-m", "pip", "--isolated", "install", "--quiet", "--no-index"]
    command += ["--find-links", str(wheels), "--target", str(site), "torchcodec>=0.14", "triton"]
    subprocess.run(command, check=True)
    found = {item.name: item.version for item in distributions(path=[str(site)])}
    assert found == {name: f"{EMPTY[name]}+empty" for name in ("torchcodec", "triton")}
    assert not [path for path in site.iterdir() if not path.name.endswith(".dist-info")]

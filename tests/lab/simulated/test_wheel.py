"""The stub engine as a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.metadata import distributions
from pathlib import Path

from tests.lab.simulated import build_wheel


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    one = build_wheel(tmp_path / "one", "0.31.0")
    other = build_wheel(tmp_path / "other", "0.31.0")
    assert one.name == "boxwright_stub_engine-0.31.0-py3-none-any.whl"
    assert one.read_bytes() == other.read_bytes()
    assert one.read_bytes() != build_wheel(tmp_path / "new", "0.32.0").read_bytes()


def test_pip_installs_it(site: Path) -> None:
    [found] = distributions(name="boxwright-stub-engine", path=[str(site)])
    assert found.version == "0.32.0"
    [script] = found.entry_points
    assert (script.group, script.value) == (
        "console_scripts",
        "boxwright_stub_engine.engine.main:main",
    )


def test_a_version_with_fewer_flags(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path, "0.30.0", without=("max-num-seqs",))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    command = [sys.executable, "-m", "boxwright_stub_engine", "serve", "/none"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "site")}
    ended = subprocess.run(
        [*command, "--max-num-seqs", "4"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "error: unrecognized arguments: --max-num-seqs 4" in ended.stderr
    ended = subprocess.run(
        [*command, "--help=all"], env=environment, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, "--max-model-len" in ended.stdout) == (0, True)

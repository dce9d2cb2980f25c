"""What the tests of the simulated box share."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.hub import write_model
from tests.lab.simulated import build_wheel, eight_gpus, install
from tests.lab.simulated.gpus.description import BOOKS

RELEASE = 1.0
"""Seconds until memory comes back here."""


def installed(folder: Path) -> Path:
    """Eight simulated GPUs and a small model in a folder."""
    install(folder, replace(eight_gpus(), release_seconds=RELEASE))
    write_model(folder / "model", shards=2, shard_bytes=1024)
    return folder


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A box for all tests that leave it as it is."""
    return installed(tmp_path_factory.mktemp("box"))


@pytest.fixture
def root(shared: Path) -> Path:
    """That box, with empty books and a driver that works."""
    for path in (shared / BOOKS).iterdir():
        path.unlink()
    return shared


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A box for a test that changes it."""
    return installed(tmp_path)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stub engine installed from its wheel."""
    folder = tmp_path_factory.mktemp("stub")
    wheel = build_wheel(folder)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-compile"]
    pip += ["--disable-pip-version-check", "--root-user-action", "ignore"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(wheel)], check=True)
    return folder / "site"

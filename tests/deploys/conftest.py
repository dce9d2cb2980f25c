"""Boxes for the tests that converge them. Each module has boxes of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import layer
from tests.lab.__main__ import up
from tests.lab.base import Lab
from tests.lab.box import Box
from tests.lab.desired import add_stub_engine


@pytest.fixture(scope="session")
def lab() -> Lab:
    """The lab of this checkout: image, wheelhouse, models, Hub."""
    made = Lab()
    up(made)
    add_stub_engine(made)
    return made


@pytest.fixture(scope="session")
def installed(lab: Lab) -> list[Path]:
    """Layers of a box that boxwright's programs and the stub engine are installed on."""
    return [layer.tools().ensure(lab), layer.stub_engine(lab).ensure(lab)]


@pytest.fixture(scope="module")
def cpu_box(lab: Lab) -> Iterator[Box]:
    """A fresh box without GPUs: real vLLM serves from its CPUs."""
    with Box("cpu", lab, user="root", simulated=False) as box:
        yield box


@pytest.fixture(scope="module")
def gpu_box(lab: Lab) -> Iterator[Box]:
    """A fresh box with eight simulated GPUs, where an ordinary user with sudo logs in."""
    with Box("gpu", lab, user="operator", simulated=True) as box:
        yield box

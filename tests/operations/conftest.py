"""The Hub of a module's own models: its fixture ``root`` is the folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.hub import Hub, RemoteHub, launched


@pytest.fixture
def hub(root: Path) -> Iterator[Hub]:
    """A Hub in this process."""
    with Hub(root) as hub:
        yield hub


@pytest.fixture
def apart(root: Path) -> Iterator[RemoteHub]:
    """A Hub in a process of its own, so that counting does not slow it."""
    with launched(root) as hub:
        yield hub

"""What the tests of the local Hub share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.hub import Hub, write_model

REPO = "lab/tiny"
BIG = "lab/big"
SHARD = "model-00002-of-00003.safetensors"
BIG_SHARD = "model-00001-of-00001.safetensors"
BIG_BYTES = 24_000_000
"""More than two of the client's steps of 10 MiB, so that a resumed download asks for a range."""


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two repositories."""
    folder = tmp_path_factory.mktemp("hub")
    write_model(folder / REPO)
    write_model(folder / BIG, shards=1, shard_bytes=BIG_BYTES)
    return folder


@pytest.fixture
def hub(root: Path) -> Iterator[Hub]:
    """A Hub in this process."""
    with Hub(root) as running:
        yield running

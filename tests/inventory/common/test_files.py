"""Small files that are either whole or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from inventory.common.files import write_whole


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_whole(path, "one", mode=0o640)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("one", 0o640)
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\udc80")
    assert path.read_text() == "one"
    assert list(path.parent.iterdir()) == [path]

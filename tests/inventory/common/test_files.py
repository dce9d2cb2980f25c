"""Small files that are either whole or not there."""

from __future__ import annotations

import os
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


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o027, 0o640), (0o022, 0o644)])
def test_without_a_mode_the_users_umask_decides(tmp_path: Path, umask: int, mode: int) -> None:
    path = tmp_path / "report.json"
    before = os.umask(umask)
    try:
        write_whole(path, "one", mode=None)
        write_whole(tmp_path / "note", "two")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode
    assert (tmp_path / "note").stat().st_mode & 0o777 == 0o644

"""Finding the control group hierarchies of a machine."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.group import hierarchies

UNIFIED = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
41 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
42 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup rw
"""


@pytest.mark.parametrize(
    ("mountinfo", "expected"),
    [
        (UNIFIED, ["/sys/fs/cgroup"]),
        (HYBRID, ["/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"]),
        (HYBRID.splitlines()[1], []),
        ("", []),
    ],
)
def test_where_systemd_keeps_its_books(mountinfo: str, expected: list[str]) -> None:
    assert hierarchies(mountinfo) == tuple(map(Path, expected))


@given(st.text())
def test_an_odd_line_hides_no_other(text: str) -> None:
    line = text.replace("\n", " ").replace("\r", " ")
    assert hierarchies(f"{UNIFIED}7 {line}\n")[:1] == (Path("/sys/fs/cgroup"),)

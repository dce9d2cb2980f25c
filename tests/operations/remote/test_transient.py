"""When a transient unit is under way."""

import pytest

from operations.remote.transient import is_running


@pytest.mark.parametrize(
    ("active", "job", "expected"),
    [
        ("active", "", True),
        ("activating", "", True),  # also while it waits to be started anew
        ("deactivating", "", True),
        ("inactive", "1402", True),  # asked for, and not begun
        ("inactive", "0", False),
        ("inactive", "", False),
        ("failed", "", False),
    ],
)
def test_a_unit_is_under_way_from_the_moment_it_is_asked_for(
    active: str, job: str, expected: bool
) -> None:
    assert is_running({"ActiveState": active, "Job": job}) is expected


def test_what_systemd_does_not_answer_is_not_under_way() -> None:
    assert not is_running({})

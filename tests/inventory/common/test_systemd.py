"""What systemctl prints can be read, whatever it is."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from inventory.common.systemd import blocks, has_job, moment, properties, seconds, span


def test_a_block_for_each_unit() -> None:
    first, second = blocks(
        "Id=a.service\nJob=7\n\nId=b.service\nJob=\nExecStart={ argv[]=a b=c }\n"
    )
    assert (first["Id"], has_job(first)) == ("a.service", True)
    assert second["ExecStart"] == "{ argv[]=a b=c }"
    assert not has_job(second)
    assert not has_job({"Job": "0"})


@given(st.text())
def test_any_text_has_properties(text: str) -> None:
    assert isinstance(properties(text), dict)
    assert len(blocks(text)) >= 1


@given(st.text() | st.just("Mon 2026-02-31 10:28:18 UTC"))
def test_what_is_no_time_is_none(text: str) -> None:
    assert moment(text) is None


@given(st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)))
def test_a_time_is_read_to_the_microsecond(at: datetime) -> None:
    assert moment(f"{at:%a %Y-%m-%d %H:%M:%S.%f} UTC") == at.replace(tzinfo=UTC).timestamp()


@given(st.text())
def test_any_span_is_a_number(text: str) -> None:
    assert seconds(text) >= 0


@given(st.floats(0, 1e7))
def test_a_span_has_words(length: float) -> None:
    assert span(length).rpartition(" ")[2] in {"s", "min", "h"}

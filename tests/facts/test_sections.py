"""The probe's frame."""

from hypothesis import given
from hypothesis import strategies as st

from facts.actual import read_actual
from facts.sections import complete, sections


def test_sections_are_cut_at_the_frame() -> None:
    found = sections("a\nb\n\n@@n one 0\n@@n two 3\n@@n end 0\n", "n")
    assert found["one"].lines == ("a", "b")
    assert found["two"].rc == 3
    assert found["two"].lines == ()
    assert complete(found)


def test_a_line_without_this_reads_nonce_is_body() -> None:
    found = sections("@@x end 0\nmore\n@@n one 0\n", "n")
    assert found["one"].lines == ("@@x end 0", "more")
    assert not complete(found)


def test_what_was_cut_off_belongs_to_no_section() -> None:
    assert set(sections("a\n@@n one 0\nhalf a sec", "n")) == {"one"}


def test_carriage_returns_of_a_terminal_are_dropped() -> None:
    assert sections("a\r\n@@n one 0\r\n", "n")["one"].lines == ("a",)


@given(st.text())
def test_any_text_is_some_reading(text: str) -> None:
    assert isinstance(sections(text, "n"), dict)


NAMES = """
who root manager units ready folders disks account packages manifest files environment tools
listeners answer unit-file:a.service numa host pci nv.full nv.apps nv.topo nv.p2p nv.version
""".split()


@given(st.dictionaries(st.sampled_from(NAMES), st.tuples(st.text(), st.integers(-1, 255))))
def test_nothing_that_a_box_prints_raises(bodies: dict[str, tuple[str, int]]) -> None:
    text = "".join(f"{body}\n@@n {name} {rc}\n" for name, (body, rc) in bodies.items())
    actual = read_actual(text, "n")
    assert actual.complete is False
    assert actual.to_json()["complete"] is False

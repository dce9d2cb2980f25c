"""Reading apt sources in both styles."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.lab.apt import Source, deb822, of_release, one_line, sources

DEBIAN = """\
# from the installer
deb http://mirror.example/debian bookworm main contrib # a comment
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/k.gpg] http://m.example/ bookworm-security main
deb https://other.example/apt stable main
"""

UBUNTU = """\
Types: deb deb-src
URIs: http://mirror.example/ubuntu/
Suites: noble noble-updates
 noble-backports
Components: main universe
# a comment
Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg

Enabled: no
Types: deb
URIs: http://other.example/
Suites: noble
Components: main

Types: deb
URIs: http://third.example/
Suites: stable
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBE
"""


def test_one_line_style() -> None:
    found = one_line(DEBIAN)
    assert [source.suite for source in found] == ["bookworm", "bookworm-security", "stable"]
    assert found[0] == Source("http://mirror.example/debian", "bookworm", ("main", "contrib"))
    assert found[1].keyring == "/usr/share/keyrings/k.gpg"


def test_deb822_style() -> None:
    found = deb822(UBUNTU)
    assert [s.suite for s in found] == ["noble", "noble-updates", "noble-backports", "stable"]
    assert found[0].components == ("main", "universe")
    assert found[0].keyring == "/usr/share/keyrings/ubuntu-archive-keyring.gpg"
    assert found[3].keyring is None  # a key in place of a file's name


def test_only_the_release_and_its_updates_count() -> None:
    shuffled = (*one_line(DEBIAN)[1:], *one_line(DEBIAN)[:1], *deb822(UBUNTU))
    kept = of_release(shuffled, "bookworm")
    assert [source.suite for source in kept] == ["bookworm", "bookworm-security"]
    assert kept[0].line() == "deb http://mirror.example/debian bookworm main contrib"


def test_both_styles_are_read_from_a_folder(tmp_path: Path) -> None:
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text(DEBIAN)
    (parts / "ubuntu.sources").write_text(UBUNTU)
    (parts / "old.list.save").write_text("deb http://old.example/ jessie main\n")
    assert len(sources(tmp_path)) == 7
    assert sources(tmp_path / "none") == ()


@given(st.text())
def test_no_text_is_too_odd(text: str) -> None:
    for source in (*one_line(text), *deb822(text)):
        assert source.uri
        assert source.suite


words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1)


@given(st.lists(words, min_size=1, max_size=3), st.lists(words, min_size=1, max_size=3))
def test_both_styles_say_the_same(suites: list[str], components: list[str]) -> None:
    uri = "http://mirror.example/"
    stanza = f"Types: deb\nURIs: {uri}\nSuites: {' '.join(suites)}\n"
    stanza += f"Components: {' '.join(components)}\n"
    lines = "".join(f"{Source(uri, suite, tuple(components)).line()}\n" for suite in suites)
    assert deb822(stanza) == one_line(lines)

"""Reading this machine's own apt sources: the image is made from the same mirror."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_STANZA_END: Final = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True)
class Source:
    """One place that packages come from.

    + uri: the mirror
    + suite: such as `bookworm` or `noble-updates`
    + components: such as `main`, `universe`
    + keyring: file of the key that signs it, if one is named
    """

    uri: str
    suite: str
    components: tuple[str, ...]
    keyring: str | None = None

    def line(self) -> str:
        """The source in one-line style, without its keyring (the default keyrings do)."""
        return f"deb {self.uri} {self.suite} {' '.join(self.components)}"


def one_line(text: str) -> tuple[Source, ...]:
    """Sources of a `.list` file: `deb [options] URI SUITE COMPONENT…`."""
    found = []
    for raw in text.splitlines():
        line = raw.partition("#")[0].strip()
        match = re.fullmatch(r"deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)((?:\s+\S+)*)", line)
        if match is None:
            continue
        options, uri, suite, components = match.groups()
        key = re.search(r"signed-by=(\S+)", options or "", re.IGNORECASE)
        found.append(Source(uri, suite, tuple(components.split()), key[1] if key else None))
    return tuple(found)


def deb822(text: str) -> tuple[Source, ...]:
    """Sources of a `.sources` file: stanzas of `Field: value`, several suites and URIs in each."""
    found = []
    for stanza in _STANZA_END.split(text):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in {" ", "\t"} and name:
                fields[name] += " " + line.strip()
                continue
            name, colon, value = line.partition(":")
            name = name.strip().lower() if colon else ""
            if name:
                fields[name] = value.strip()
        if "deb" not in fields.get("types", "").split() or fields.get("enabled") == "no":
            continue
        # The field may hold a key itself instead of the name of a file.
        key = fields.get("signed-by", "")
        keyring = key if key.startswith("/") and " " not in key else None
        found += [
            Source(uri, suite, tuple(fields.get("components", "").split()), keyring)
            for uri in fields.get("uris", "").split()
            for suite in fields.get("suites", "").split()
        ]
    return tuple(found)


def sources(etc: Path = Path("/etc/apt")) -> tuple[Source, ...]:
    """All sources of this machine, in apt's order.

    + etc: apt's configuration folder
    """
    found: list[Source] = []
    files = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    for path in files:
        if not path.is_file():
            continue
        if path.suffix == ".list":
            found += one_line(path.read_text(errors="replace"))
        elif path.suffix == ".sources":
            found += deb822(path.read_text(errors="replace"))
    return tuple(found)


def of_release(found: tuple[Source, ...], codename: str) -> tuple[Source, ...]:
    """The sources of one release: its main suite first, then its updates and security fixes.

    Third parties' sources are left out: those lack the component `main` or name another suite.

    + codename: such as `bookworm`
    """
    mine = [
        source
        for source in found
        if "main" in source.components
        and (source.suite == codename or source.suite.startswith(f"{codename}-"))
    ]
    return tuple(sorted(mine, key=lambda source: source.suite != codename))

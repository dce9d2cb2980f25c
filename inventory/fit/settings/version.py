"""The engine's version, as far as a rule needs it: major, minor and patch."""

from __future__ import annotations

import re

from inventory.base import Unknown

Release = tuple[int, int, int]

NEWEST_READ: Release = (0, 32, 0)
"""The newest engine whose source the rules were read from."""


def release(text: str | Unknown | None) -> Release | Unknown:
    """The first release number in a text.

    + text: a version as ``pip`` prints it, or as a report quotes it. Release candidates and
      development builds count as the release that they lead to. A missing patch is 0.

    >>> release("0.20.2rc1.dev249 (fork)")
    (0, 20, 2)
    >>> release("0.28.x")
    (0, 28, 0)
    >>> release("main d56e952").unknown
    "no release number in 'main d56e952'"
    """
    if isinstance(text, Unknown):
        return text
    if text is None:
        return Unknown(unknown="no engine version was given")
    found = re.search(r"(?<![\w.])v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", text)
    if found is None:
        return Unknown(unknown=f"no release number in {text[:40]!r}")
    major, minor, patch = found.groups()
    return (int(major), int(minor), int(patch or 0))


def shown(version: Release | Unknown) -> str:
    """A release for people."""
    if isinstance(version, Unknown):
        return "an unknown version"
    return ".".join(str(part) for part in version)

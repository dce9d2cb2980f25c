"""The frame of the probe's output, cut into sections.

The probe prints body lines, then ``@@<nonce> <section> <exit status>``, and
``@@<nonce> end 0`` last. The nonce is drawn for each read, so that nothing the box prints (a
process name, a unit's description) can pass for a frame line.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """One part of the probe's output.

    + rc: exit status of the command that printed it; None where the frame gave none
    + lines: body lines, without the frame and without trailing blank lines
    """

    rc: int | None
    lines: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The body as one string."""
        return "\n".join(self.lines)


ABSENT = 3
"""Exit status of a section whose subject is not there: the probe's own word for it."""

MISSING = Section(rc=None)
"""The probe did not get to this section, or was cut off inside it."""


def sections(text: str, nonce: str = "") -> dict[str, Section]:
    """Cut the probe's output into named sections.

    + text: everything that the probe printed
    + nonce: the token that this read was given

    A section that appears twice keeps its last reading; text after the last frame line (the
    probe was cut off) belongs to no section.
    """
    frame = re.compile(rf"@@{re.escape(nonce)} (\S+) (-?[0-9]{{1,9}})\s*")
    found: dict[str, Section] = {}
    body: list[str] = []
    for line in text.split("\n"):
        match = frame.fullmatch(line.rstrip("\r"))
        if match is None:
            body.append(line.rstrip("\r"))
            continue
        while body and not body[-1].strip():
            body.pop()
        found[match.group(1)] = Section(rc=int(match.group(2)), lines=tuple(body))
        body = []
    return found


def complete(found: dict[str, Section]) -> bool:
    """Whether the probe ran to its end."""
    return "end" in found

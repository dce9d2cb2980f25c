"""What looks like a secret, taken out of a line before it is shown or kept."""

import re

MASK = "***"

_NAME = r"(?:api[-_]?key|token|password|secret|authorization)"
_NAMED = rf"{_NAME}\\*['\"]?\s*[:=]\s*"
_NEXT = rf"['\"]?[\w-]{{0,40}}{_NAMED}"
_QUOTED = r"""(?:'(?:[^'\\]|\\.)*(?:'|\\?$)|"(?:[^"\\]|\\.)*(?:"|\\?$))"""
_LIST = rf"\[(?:{_QUOTED}|[^\]'\"])*(?:\]|$)"
_SECRET = re.compile(
    rf"""(?P<named>{_NAMED}(?:{_NEXT})*(?:(?:bearer|basic)\s+)?)
            (?:(?P<quoted>{_LIST}|{_QUOTED})|\S+)
    |(?P<flag>--[\w-]{{0,40}}{_NAME}\s+)(?!-|{_NEXT})(?:{_QUOTED}|[^\s'"])+
    |(?P<bearer>\bbearer\s+)(?!{_NEXT})\S+
    |(?P<login>\w://)[^\s/@:]*:[^\s/@]*(?=@)
    |\b(?:hf_[A-Za-z0-9]{{16,}}|sk-[\w-]{{16,}})""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""A value behind the name of a secret, an option of a command line, a header, a URL's login, and
tokens that are known by their beginning. A line may be cut inside a quotation."""


def masked(text: str) -> str:
    """The text without what looks like a secret. A quoted value stays a quoted one, so that a
    dictionary in a log line can still be read.

    >>> masked("args: {'api_key': ['a', 'b'], 'port': 8000}"), masked("Authorization: Bearer xyz")
    ("args: {'api_key': '***', 'port': 8000}", 'Authorization: Bearer ***')
    """
    return _SECRET.sub(_replacement, text)


def _replacement(match: re.Match[str]) -> str:
    kept = next((match[name] for name in _KEPT if match[name] is not None), "")
    return kept + (f"'{MASK}'" if match["quoted"] is not None else MASK)


_KEPT = ("named", "flag", "bearer", "login")

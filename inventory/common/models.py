"""What an OpenAI server answers to ``GET /v1/models``."""

import json
from typing import Any

REFUSED = frozenset({401, 403})
"""What an API key guards answers this without one. It is a living server's answer."""


def models(text: str | bytes) -> tuple[tuple[str, int | None], ...]:
    """Served names and their context lengths; nothing where the text is not such a list.

    >>> models('{"data": [{"id": "m", "max_model_len": 8}]}')
    (('m', 8),)
    """
    try:
        data: Any = json.loads(text)["data"]
        return tuple((str(one["id"]), _whole(one.get("max_model_len"))) for one in data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None

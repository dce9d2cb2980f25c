"""One question to an endpoint of this box."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any


def get(url: str, timeout: float) -> tuple[int, Any]:
    """Status and JSON of one GET; the JSON is None where the answer is none.

    + raises: OSError where nothing answers in time
    """
    # A proxy in the environment has no business between a box and itself.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=timeout) as answer:
            status, body = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, None
    except ValueError as error:
        raise OSError(str(error)) from error
    try:
        return status, json.loads(body)
    except ValueError:
        return status, None


def model_names(url: str, timeout: float = 2.0) -> list[str] | None:
    """Names under which a service answers; empty where it answers without telling (an API key);
    None where nothing does."""
    try:
        _, body = get(f"{url}/v1/models", timeout)
    except OSError:
        return None
    try:
        return [str(model["id"]) for model in body["data"]]
    except (TypeError, KeyError):
        return []

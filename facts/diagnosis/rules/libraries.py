"""C2, C3: compiled code that cannot be loaded."""

import re
from pathlib import PurePosixPath

from facts.diagnosis.rule import Evidence, Numbers, Rule

_WARNED = r"Failed to import from vllm\._\w{1,40}: ImportError\(['\"]"
_LIBRARY = r"(?P<file>[^'\":]{1,300})"
_BROKEN = r"(?:cannot open shared object|file too short|invalid ELF header|wrong ELF class)"
_NO_KERNEL = re.compile(r"_OpNamespace|torch\.ops\._C|\b_C\b.* has no attribute")
_PACKAGES = (
    ("libnuma.so", "libnuma1"),
    ("libtcmalloc", "libtcmalloc-minimal4"),
    ("libgomp", "libgomp1"),
    ("libcuda.so", "the NVIDIA driver"),
)
"""Debian packages of the libraries that vLLM asks for."""


def _missed(evidence: Evidence) -> bool:
    """The import itself failed, or it was warned of and the start failed for want of a kernel."""
    if evidence.trace is not None:
        return True
    return any(
        raised.line is not None and _NO_KERNEL.search(raised.line.text)
        for trace in evidence.scene.traces
        for raised in trace.chain
    )


def _install(_: Evidence, n: Numbers) -> str:
    library = PurePosixPath(str(n["file"])).name
    for begin, package in _PACKAGES:
        if library.startswith(begin):
            return f"install {package} on the box (it has {library}), again if it is there"
    return f"install the package that has {library} (apt-file search {library})"


LIBRARIES: tuple[Rule, ...] = (
    Rule(
        cause="C2-library-missing",
        title="a library of the host is missing or broken",
        patterns=(
            rf"{_WARNED}{_LIBRARY}: {_BROKEN}",
            rf"(?:ImportError|OSError): {_LIBRARY}: {_BROKEN}",
        ),
        why="the engine's kernels are linked to {file}; without it they are not loaded, and the "
        "first use of one fails with an error about torch.ops._C",
        next_step=_install,
        source="run of vLLM 0.32.0 on CPU; platforms/cpu.py:660",
        warns=True,
        when=_missed,
    ),
    Rule(
        cause="C3-abi-mismatch",
        title="vLLM and torch do not belong together",
        patterns=(
            rf"{_WARNED}{_LIBRARY}: undefined symbol: (?P<what>\w{{1,200}})",
            rf"(?:ImportError|OSError): {_LIBRARY}: undefined symbol: (?P<what>\w{{1,200}})",
        ),
        why="{file} was compiled against another torch than the one that is installed",
        next_step="create the engine's environment again, with the torch version that the vLLM "
        "wheel pins (pip check shows the conflict)",
        source="vLLM 0.32.0 platforms/interface.py:371",
        warns=True,
        when=_missed,
    ),
)

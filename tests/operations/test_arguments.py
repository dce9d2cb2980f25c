"""What an engine that is asked for its help may say instead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.arguments import broken_import

IMPORT = """\
WARNING 11-30 12:00:00 [platform.py:7] something harmless
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "/opt/vllm/lib/python3.11/site-packages/vllm/__init__.py", line 3, in <module>
    import torch
ModuleNotFoundError: No module named 'torch'
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (IMPORT, "ModuleNotFoundError: No module named 'torch'"),
        # The last traceback is the one that ended it.
        (f"{IMPORT}\nDuring handling\n{IMPORT.replace('torch', 'numpy')}", "numpy"),
        ("Traceback (most recent call last):\n  File x\nAssertionError\n", "AssertionError"),
        ("vllm: error: unrecognized arguments: --help=all\n", ""),
        ("usage: vllm serve\n  --host HOST\n", ""),
        ("sh: 1: /opt/vllm/bin/vllm: not found\n", ""),
        ("", ""),
    ],
)
def test_an_engine_that_cannot_be_imported_is_told_from_one_that_knows_no_help(
    text: str, line: str
) -> None:
    found = broken_import(text)
    assert (line in found) if line else (found == "")


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert "\n" not in broken_import(text)

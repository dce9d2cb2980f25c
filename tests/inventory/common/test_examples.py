"""The examples in the docstrings run, and every module says what it is for."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import inventory.common

MODULES = [
    found.name for found in pkgutil.walk_packages(inventory.common.__path__, "inventory.common.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    assert doctest.testmod(module).failed == 0

"""The examples in the docstrings run, and every module says what it is for."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import inventory.fit

MODULES = sorted(
    found.name for found in pkgutil.walk_packages(inventory.fit.__path__, "inventory.fit.")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    assert doctest.testmod(module).failed == 0


def test_there_are_examples() -> None:
    tests = [
        test
        for name in MODULES
        for test in doctest.DocTestFinder().find(importlib.import_module(name))
        if test.examples
    ]
    assert len(tests) >= 10

"""What the types of the fit are built on."""

from __future__ import annotations

from pydantic import ConfigDict

from inventory.base import Frozen


class Value(Frozen):
    """An immutable value of the fit.

    Its validator is built when the first one is made, not when the module is imported: a run
    that asks nothing of the fit does not pay for it.
    """

    model_config = ConfigDict(defer_build=True, use_attribute_docstrings=False)

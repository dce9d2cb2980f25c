"""Which modules a quantised checkpoint leaves in the model's own type."""

import re
from fnmatch import fnmatchcase

from inventory.fit.model.architecture import Experts

_LONGEST_PATTERN = 200


def modules(role: str, layer: int, experts: Experts | None) -> tuple[str, ...]:
    """Names under which the matrices of a role stand in a list of exceptions.

    + role: attention, dense, experts or shared
    """
    head = f"layers.{layer}"
    if role == "attention":
        return (f"{head}.self_attn.o_proj", f"{head}.linear_attn.out_proj")
    if role == "dense":
        return (f"{head}.mlp.down_proj",)
    if role == "shared":
        return (
            f"{head}.mlp.shared_experts.down_proj",
            f"{head}.mlp.shared_expert.down_proj",
        )
    if experts is None:
        return ()
    return (
        f"{head}.mlp.experts.0.down_proj",
        f"{head}.block_sparse_moe.experts.0.w2",
        f"{head}.ffn.experts.0.w2",
    )


class Ignored:
    """The list of exceptions, ready to be asked often.

    + patterns: names, names with ``*``, or regular expressions after ``re:``
    """

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._names: set[str] = set()
        self._globs: list[str] = []
        self._expressions: list[re.Pattern[str]] = []
        for pattern in patterns:
            if len(pattern) > _LONGEST_PATTERN:
                continue
            if pattern.startswith("re:"):
                try:
                    self._expressions.append(re.compile(pattern[3:]))
                except (re.error, RecursionError, OverflowError):
                    continue
            elif "*" in pattern:
                self._globs.append(_from_layers(pattern))
            else:
                self._names.add(_from_layers(pattern))

    def covers(self, module: str) -> bool:
        """Whether a module is an exception, by itself or with the part that it belongs to."""
        parts = module.split(".")
        heads = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
        # Short names ("gate", "self_attn") mean every module of that name.
        if self._names & (heads | set(parts)):
            return True
        return any(
            fnmatchcase(head, glob) or fnmatchcase(f"model.{head}", glob)
            for glob in self._globs
            for head in heads
        ) or any(
            expression.match(f"model.{module}") or expression.match(module)
            for expression in self._expressions
        )


def _from_layers(name: str) -> str:
    """Without the words before the layers, such as model. or language_model.model."""
    place = name.find("layers.")
    return name[place:] if place >= 0 and not name.startswith("*") else name

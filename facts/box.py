"""One read of the box for each phase, shared by all operations of that phase."""

import secrets
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from pyinfra.api import FactBase, Host, StringCommand

from facts.actual import Actual, read_actual
from facts.link import tune
from facts.privilege import read_as_root
from facts.query import Query, script
from facts.sections import Section, sections

T = TypeVar("T")


class Probed(FactBase[T], Generic[T]):
    """A fact that is one part of the probe's answer. Subclasses say what to ask and how to read."""

    abstract = True
    read: Callable[[Mapping[str, Section]], T]
    """What the sections say, typed."""

    def ask(self, query: Query) -> StringCommand:
        """The command that reads what the query names."""
        self.nonce = secrets.token_hex(4)
        return read_as_root(script(query, self.nonce), self.nonce)

    def process(self, output: list[str]) -> T:
        """Cut the answer into sections and read them."""
        return self.read(sections("\n".join(output), self.nonce))


class Box(Probed[Actual]):
    """Returns everything that a run needs to know of a box, in one command."""

    def command(self, query: Query) -> StringCommand:
        """Read the box.

        + query: what to ask
        """
        return self.ask(query)

    def process(self, output: list[str]) -> Actual:
        """The answer, typed."""
        return read_actual("\n".join(output), self.nonce)


_memory: WeakKeyDictionary[Host, tuple[bool, Query, Actual]] = WeakKeyDictionary()


def actual_state(host: Host, query: Query) -> Actual:
    """The box as it is: read once for each phase, and again after a change.

    pyinfra runs a deploy twice, to prepare and to execute, and caches no fact. Between the two a
    person may think at the prompt, so that the second phase reads anew.

    + host: pyinfra's host
    + query: what to ask; a memory that knows the hardware too answers a query without it
    """
    executing = bool(host.state.is_executing)
    remembered = _memory.get(host)
    if remembered is not None:
        phase, asked, known = remembered
        if phase == executing and query in (asked, asked.model_copy(update={"hardware": False})):
            return known
    tune(host.connector)
    answer = host.get_fact(Box, query=query)
    _memory[host] = (executing, query, answer)
    return answer


def changed(host: Host) -> None:
    """Forget what was read: the box is different now."""
    _memory.pop(host, None)

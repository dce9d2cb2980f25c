"""Actual states, made from the text that a box prints."""

from facts.actual import Actual, read_actual

SHOW = """Id={name}
LoadState={load}
ActiveState={active}
SubState={sub}
UnitFileState={file}
Result={result}
NRestarts=0
ExecMainStatus=0
ExecMainStartTimestamp={started}
InvocationID={invocation}
NeedDaemonReload={reload}
DropInPaths=
MainPID=1
"""


def unit(
    name: str,
    active: str = "active",
    sub: str = "running",
    file: str = "enabled",
    load: str = "loaded",
    started: str = "Mon 2026-11-30 10:00:00.000000 UTC",
    invocation: str = "abc",
    reload: str = "no",
    result: str = "success",
) -> str:
    """The text of ``systemctl show`` for one unit."""
    return SHOW.format(**locals())


def absent(name: str) -> str:
    """The same for a unit that does not exist."""
    return unit(name, "inactive", "dead", "", "not-found", "n/a", "")


def box(**bodies: str | tuple[str, int]) -> Actual:
    """A box whose probe printed these sections; ``__`` in a name stands for ``:``."""
    text = ""
    for name, body in bodies.items():
        content, rc = body if isinstance(body, tuple) else (body, 0)
        text += f"{content}\n@@ {name.replace('__', ':')} {rc}\n"
    return read_actual(f"{text}@@ end 0\n")

"""A15: flags that the engine does not know, and values that it refuses."""

from __future__ import annotations

import re
from difflib import get_close_matches

from operations.diagnosis.rule import Evidence, Number, Numbers, Rank, Rule, listed

_FLAG = re.compile(r"--[a-z][a-z0-9-]{1,60}")
_FRACTIONS = frozenset({"gpu_memory_utilization"})
_PERCENT = 100


def _exit(evidence: Evidence) -> dict[str, Number | None]:
    return {"exit_status": evidence.scene.start.exit_status}


def _unknown(evidence: Evidence, n: Numbers) -> str:
    """The nearest flags of the usage text that argparse printed before its error."""
    flag = str(n["flag"])
    usage = (line for line in evidence.scene.start.lines if line.no < evidence.line.no)
    known = {name for line in usage if not line.level for name in _FLAG.findall(line.text)}
    near = get_close_matches(flag, sorted(known), n=3, cutoff=0.7)
    version = evidence.scene.settings.version
    who = f"vLLM {version}" if version else "this vLLM version"
    hint = f"; it knows {listed(near)}" if near else ""
    return f"remove or rename the flag: {who} does not know {flag}{hint}"


def _field(evidence: Evidence) -> dict[str, Number | None]:
    """The field's name, which pydantic prints on the line before its complaint."""
    before = [
        line
        for line in evidence.scene.start.lines
        if line.pid == evidence.line.pid and line.no < evidence.line.no and not line.level
    ]
    name = before[-1].text.strip() if before else ""
    return {"argument": name if re.fullmatch(r"[a-z][\w.]{1,80}", name) else None}


def _in_range(_: Evidence, n: Numbers) -> str:
    name, value = str(n.get("argument", "")), n.get("value")
    flag = f"--{name.replace('_', '-')}" if name else "the value"
    if name in _FRACTIONS and isinstance(value, (int, float)) and 1 < value <= _PERCENT:
        return f"{flag} is a fraction: {value / _PERCENT:g}, not {value:g}"
    return f"{flag}: {value} has to be {n['wanted']}"


def _variable(evidence: Evidence) -> dict[str, Number | None]:
    """The environment variable that was being read, from the source lines of the traceback."""
    names = re.findall(r"\b(?:VLLM|CUDA|NCCL|OMP|HF)_[A-Z0-9_]{2,60}", evidence.calls)
    return {"argument": names[-1] if names else None}


def _whole(_: Evidence, n: Numbers) -> str:
    name = n.get("argument", "the environment variable or flag that the traceback reads")
    return f"{name} has to be a whole number: {n.get('value')} is none"


ARGUMENTS: tuple[Rule, ...] = (
    Rule(
        cause="A15",
        title="the engine does not know a flag",
        patterns=(r"error: unrecognized arguments: (?P<flag>--?[\w.\-]{1,80})",),
        why="flags come and go between versions, and an unknown one ends the start (status 2)",
        next_step=_unknown,
        source="Python argparse; runpod-workers/worker-vllm#324",
        numbers=_exit,
    ),
    Rule(
        cause="A15-value",
        title="the engine refuses a flag's value",
        patterns=(
            r"error: argument (?P<argument>--[\w\-]{1,80})[^:]{0,120}: (?P<what>.{1,300})",
            r"error: (?P<what>the following arguments are required: .{1,200})",
        ),
        why="argparse says: {what}",
        next_step=lambda _, n: (
            f"correct {n.get('argument', 'the command line')}; vllm serve --help=all of the "
            "installed version lists what it takes"
        ),
        source="Python argparse",
        numbers=_exit,
    ),
    Rule(
        cause="A15-value",
        title="the engine refuses a value",
        patterns=(
            r"^\s*Input should be (?P<wanted>.{1,120}?) \[type=\w{1,60}, "
            r"input_value=(?P<value>[^,\]]{1,120})",
        ),
        why="the value is outside of what the setting allows",
        next_step=_in_range,
        source="pydantic validation errors",
        numbers=_field,
    ),
    Rule(
        cause="A15-value",
        title="the engine refuses a value",
        patterns=(
            r"invalid literal for int\(\) with base 10: '(?P<value>[^']{0,100})'",
            r"could not convert string to float: '(?P<value>[^']{0,100})'",
        ),
        calls=r"envs\.py|environ|getenv|arg_utils|cpu_worker|KVCACHE",
        why="a number was expected",
        next_step=_whole,
        source="vLLM 0.32.0 envs.py",
        numbers=_variable,
    ),
    Rule(
        cause="A15-value",
        title="the engine refuses its configuration",
        rank=Rank.SYMPTOM,
        patterns=(r"^\s*Value error, (?P<what>.{1,300}?)(?: \[type=|$)",),
        why="the engine checks its settings against each other and says: {what}",
        next_step="change the flag that the message names, or leave it out",
        source="pydantic validation errors",
    ),
)

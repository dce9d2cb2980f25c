"""A15: flags that the engine does not know, and values that it refuses."""

import re
from difflib import get_close_matches

from facts.diagnosis.rule import Evidence, Number, Numbers, Rank, Rule, listed

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
    """The environment variable that was being read: as the traceback's source lines or the unit's
    environment show it; on a CPU, where the engine says neither, the one that is an integer."""
    names = re.findall(r"\b(?:VLLM|CUDA|NCCL|OMP|HF)_[A-Z0-9_]{2,60}", evidence.calls)
    value = evidence.match["value"]
    names += [name for name, given in evidence.scene.hints.environment.items() if given == value]
    cpu = any(line.source == "cpu.py" for line in evidence.scene.start.lines)
    if not names and cpu and re.fullmatch(r"[0-9]*\.[0-9]+", value):
        names.append("VLLM_CPU_KVCACHE_SPACE")
    return {"argument": names[-1] if names else None}


def _choices(_: Evidence, n: Numbers) -> str:
    """The nearest of the values that argparse lists."""
    flag, said = str(n.get("argument", "the command line")), str(n["what"])
    wrong = re.search(r"invalid choice: '([^']{1,80})' \(choose from (.*)", said)
    near = get_close_matches(wrong[1], re.findall(r"'([^']+)'", wrong[2]), n=3) if wrong else []
    hint = f": {listed(near)} is near and allowed" if near else ""
    return f"correct {flag}{hint}; vllm serve --help=all of this version lists what it takes"


def _whole(_: Evidence, n: Numbers) -> str:
    name = n.get("argument", "the flag or environment variable that has this value")
    return f"{name} has to be a whole number: {n.get('value')} is not one"


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
        next_step=_choices,
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
        title="the engine refuses an environment variable",
        patterns=(
            r"Invalid value '(?P<value>[^']{0,100})' (?:for|in) "
            r"(?P<argument>[A-Z][A-Z0-9_]{2,60})\. Valid options: (?P<what>.{1,200})",
            r"(?P<argument>VLLM_[A-Z0-9_]{2,60}) '(?P<value>[^']{0,100})' (?:must|appears to) be",
        ),
        why="the value is not one that the engine knows",
        next_step=lambda _, n: (
            f"correct {n['argument']}={n.get('value', '')} in the unit"
            + (f": it takes {n['what']}" if "what" in n else "")
        ),
        source="vLLM 0.32.0 envs.py:434, 538",
    ),
    Rule(
        cause="A15-value",
        title="the engine refuses a flag's value",
        patterns=(
            r"(?P<argument>Load format) `(?P<value>[^`]{1,80})` is not supported",
            r"Unknown (?P<argument>load_format): (?P<value>\S{1,80})",
            r"OverflowError: bind\(\): (?P<argument>port) must be 0-65535",
        ),
        why="the value is not one that the engine knows",
        next_step=lambda _, n: (
            f"correct --{str(n['argument']).lower().replace(' ', '-').replace('_', '-')}; vllm "
            "serve --help=all of this version lists what it takes"
        ),
        source="vLLM 0.32.0 model_executor/model_loader/__init__.py:127",
    ),
    Rule(
        cause="A15-value",
        title="two flags do not go together",
        patterns=(r"(?:TypeError|ValueError): (?:Error: )?(?P<what>--[a-z][\w-]{1,60} .{1,200})",),
        why="the engine checks its flags against each other and says: {what}",
        next_step="add or remove the flag that the message names",
        source="vLLM 0.32.0 entrypoints/launchers/cli_args.py:524",
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

"""What a start was told, where its own lines repeat it."""

import ast
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from facts.journal.lines import Line
from inventory.base import Frozen
from inventory.fit.settings.settings import Release, release

_ARGUMENTS = re.compile(r"non-default args: (\{.*\})", re.S)
_CONFIG = re.compile(r"Initializing a V1 LLM engine \(v?([^)\s]{1,60})\) with config: (.*)", re.S)
_VERSION = re.compile(r"\bversion (\d+\.\d+\.\d+\S*)")
_WORLD = re.compile(r"world_size=(\d{1,4}) rank=\d")
_CARD = re.compile(r"\bdevice_name=([\w.\-]{1,80}?)(?:,|\.json)")
"""In the names of kernel configurations, e.g. of an MoE layer."""
_CONFIG_VALUE = r"\b{}=('[^']*'|[^,\s)]+)"

DEFAULT_PORT = 8000


class LoggedSettings(Frozen):
    """Flags and versions of one start. ``None`` where its lines do not tell."""

    version: str | None = None
    runner: str | None = None
    """``V1`` or ``V2``."""
    model: str | None = None
    """Path or repository name, as it was given."""
    host: str | None = None
    port: int = DEFAULT_PORT
    device: str | None = None
    """``cuda``, ``cpu``, …"""
    card: str = ""
    """Name of the GPU; empty where nothing names it."""
    tp: int = 1
    world: int = 1
    """Workers of this engine."""
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    max_model_len: int | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_memory: int | None = None
    load_format: str | None = None
    expert_parallel: bool = False
    eager: bool = False
    quantization: str | None = None

    @property
    def release(self) -> Release | None:
        """The engine's version as numbers."""
        found = release(self.version)
        return found if isinstance(found, tuple) else None


def settings(lines: Iterable[Line]) -> LoggedSettings:
    """Read the settings from a start's lines.

    >>> settings([]).port
    8000
    """
    arguments: Mapping[str, object] = {}
    config = version = card = ""
    runner: str | None = None
    world = 1
    for line in lines:
        text = line.text
        if found := _ARGUMENTS.search(text):
            arguments = _dictionary(found[1])
        elif found := _CONFIG.search(text):
            version, config = found[1], found[2]
        elif found := _WORLD.search(text):
            world = max(world, int(found[1]))
        elif not version and line.level == "INFO" and (found := _VERSION.search(text)):
            version = found[1]
        if not card and (found := _CARD.search(text)):
            card = found[1]
        runner = _runner(line) or runner
    tp = _integer(arguments.get("tensor_parallel_size")) or _integer(
        _value(config, "tensor_parallel_size")
    )
    return LoggedSettings(
        version=version or None,
        runner=runner,
        model=_text(arguments.get("model")) or _value(config, "model"),
        host=_text(arguments.get("host")),
        port=_integer(arguments.get("port")) or DEFAULT_PORT,
        device=_value(config, "device_config"),
        card=card,
        tp=tp or 1,
        world=max(world, tp or 1),
        max_num_seqs=_integer(arguments.get("max_num_seqs")),
        max_num_batched_tokens=_integer(arguments.get("max_num_batched_tokens")),
        max_model_len=_integer(_value(config, "max_seq_len"))
        or _integer(arguments.get("max_model_len")),
        gpu_memory_utilization=_fraction(arguments.get("gpu_memory_utilization")),
        kv_cache_memory=_integer(
            arguments.get("kv_cache_memory_bytes") or arguments.get("kv_cache_memory")
        ),
        load_format=_text(arguments.get("load_format")) or _value(config, "load_format"),
        expert_parallel=arguments.get("enable_expert_parallel") is True,
        eager=arguments.get("enforce_eager") is True or _value(config, "enforce_eager") == "True",
        quantization=_value(config, "quantization") or _text(arguments.get("quantization")),
    )


def _runner(line: Line) -> str | None:
    """The model runner, by what it says or by the file that speaks.

    V2's file is gpu/model_runner.py, V1's gpu_model_runner.py (vLLM 0.32.0 v1/worker).
    """
    if line.text.startswith("Using V2 Model Runner"):
        return "V2"
    if "using the V1 model runner" in line.text:
        return "V1"
    if line.role in {"Worker", "EngineCore"} and "runner" in line.source:
        return {"gpu_model_runner.py": "V1", "model_runner.py": "V2"}.get(line.source)
    return None


@lru_cache(maxsize=32)
def _dictionary(text: str) -> Mapping[str, object]:
    """A dictionary as Python prints it; where it holds more than literals, its plain values."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return {
            name: _literal(value)
            for name, value in re.findall(r"'(\w+)': ('[^']*'|[\w.\-]+)", text)
        }
    return found if isinstance(found, dict) else {}


def _literal(text: str) -> object:
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text
    return value


def _value(config: str, name: str) -> str | None:
    found = re.search(_CONFIG_VALUE.format(re.escape(name)), config)
    value = found[1].strip("'") if found else ""
    return None if value in {"", "None"} else value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    return int(value) if re.fullmatch(r"[0-9]{1,15}", str(value)) else None


def _fraction(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

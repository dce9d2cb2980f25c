"""A box for the switch's own order: units that are active and enabled or not, and no systemd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from inventory.common import paths
from inventory.common.record import Declared, StartRecord
from inventory.common.switch import OldService, SwitchOutcome, SwitchRequest, Target
from operations.remote import http, systemctl
from operations.remote.switch import carry_out, record, rollback, systemd
from operations.remote.switch.errors import SwitchError
from operations.remote.switch.waiting.expectation import Ready, expected

NEW, OLD, OTHER = "vllm-new.service", "vllm-old.service", "vllm-other.service"
URL = "http://127.0.0.1:8000"
OLD_SERVICE = OldService(OLD, URL, "old/model", timeout=30.0)


def request(*old: OldService, **more: Any) -> SwitchRequest:
    """A switch on one GPU."""
    given: dict[str, Any] = {
        "new": Target(NEW, URL, "new/model"),
        "replaces": old or (OLD_SERVICE,),
        "gpus": frozenset({"GPU-1"}),
        "release_seconds": 60.0,
        "start_seconds": 600.0,
        "tools": False,
        "reasoning": False,
        "warm": Path("/models/new"),
        "rollback": True,
        "about": Declared(service="new"),
    }
    return SwitchRequest(**{**given, **more})


@dataclass
class FakeBox:
    """What the switch sees and does.

    + active, enabled: units
    + answers: model by unit, while it is active
    + outdated: units that run from an earlier text of their file
    + strangers: on the GPUs, in words
    + breaks: a step as in `did` -> the error that it ends with
    + did: what was done, in order
    + said: lines
    + recorded: starts
    """

    active: set[str] = field(default_factory=lambda: {OLD})
    enabled: set[str] = field(default_factory=lambda: {OLD})
    answers: dict[str, str] = field(
        default_factory=lambda: {OLD: "old/model", NEW: "new/model", OTHER: "other/model"}
    )
    outdated: set[str] = field(default_factory=set)
    strangers: tuple[str, ...] = ()
    breaks: dict[str, BaseException] = field(default_factory=dict)
    did: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    recorded: list[StartRecord] = field(default_factory=list)

    def do(self, what: str) -> None:
        """Note a step, which may break."""
        self.did.append(what)
        if what in self.breaks:
            raise self.breaks[what]

    def control(self, *arguments: str) -> None:
        """As systemctl changes units."""
        verb, units = arguments[0], [one for one in arguments[1:] if not one.startswith("-")]
        self.do(" ".join([verb, *units]))
        match verb:
            case "stop":
                self.active.difference_update(units)
            case "enable":
                self.enabled.update(units)
            case "disable":
                self.enabled.difference_update(units)

    def start(self, unit: str) -> None:
        """As systemctl starts a unit."""
        self.do(f"start {unit}")
        self.active.add(unit)

    def kill(self, unit: str) -> None:
        """As systemctl ends a unit's processes."""
        self.do(f"kill {unit}")

    def show(self, unit: str, *_: str, **__: float) -> dict[str, str]:
        """As systemctl shows a unit."""
        return {
            "LoadState": "loaded",
            "InvocationID": f"id-of-{unit}" if unit in self.active else "",
            "UnitFileState": "enabled" if unit in self.enabled else "disabled",
        }

    def get(self, *_: object) -> tuple[int | None, bytes]:
        """What is answered at the one address of this box."""
        for unit in self.active & self.answers.keys():
            return 200, f'{{"data": [{{"id": "{self.answers[unit]}"}}]}}'.encode()
        return None, b""

    def wait(self, target: Target, *_: object) -> Ready:
        """As the waiter sees a start."""
        self.do(f"wait {target.unit} {target.model}")
        return Ready(f"id-of-{target.unit}", 40.0, {"load": 40.0}, ("a line",))

    def carry_out(self, asked: SwitchRequest) -> SwitchOutcome:
        """The switch."""
        return carry_out.carry_out(asked, expected(asked, None), self.said.append)


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeBox:
    """A box on which the old service serves."""
    made = FakeBox()

    def step(what: str, result: Any = None) -> Callable[..., Any]:
        def run(*_: object, **__: object) -> Any:
            made.do(what)
            return result() if callable(result) else result

        return run

    for name in ("READY", "UNITS"):
        monkeypatch.setattr(paths, name, str(tmp_path / name.lower()))
    monkeypatch.setattr(paths, "PENDING", str(tmp_path / "switch.json"))
    for name in ("control", "start", "kill"):
        monkeypatch.setattr(systemd, name, getattr(made, name))
    monkeypatch.setattr(systemd, "is_active", lambda unit: unit in made.active)
    monkeypatch.setattr(systemd, "runs_from_file", lambda unit: unit in made.active - made.outdated)
    monkeypatch.setattr(systemctl, "show", made.show)
    monkeypatch.setattr(http, "get", made.get)
    monkeypatch.setattr(carry_out, "strangers", step("look at the GPUs", lambda: made.strangers))
    monkeypatch.setattr(carry_out, "warm", step("warm", {"bytes": 1.0, "seconds": 1.0}))
    monkeypatch.setattr(carry_out, "smoke", step("smoke", ("odd",)))
    for module in (carry_out, rollback):
        monkeypatch.setattr(module, "release", step("release"))
        monkeypatch.setattr(module, "wait", made.wait)

    def save(*given: Any) -> None:
        made.do("record")
        start = given[-1]
        made.recorded.append(
            start if isinstance(start, StartRecord) else StartRecord.from_json(start)
        )

    monkeypatch.setattr(record, "save", save)
    monkeypatch.setattr(record, "keep_good", step("keep good"))
    monkeypatch.setattr(record, "good_text", lambda _: None)
    return made


def crash(sentence: str = "crashed") -> SwitchError:
    """A step that failed as such."""
    return SwitchError("crashed", sentence)


def in_order(did: Sequence[str], *wanted: str) -> bool:
    """Whether these happened, one after the other; others may lie between."""
    rest = iter(did)
    return all(one in rest for one in wanted)

"""What several boxes would install alike: made on one box, and laid under the others.

A layer holds folders of a box's disk after boxwright's own commands have filled them. It is kept
beside the image, and what it was made from is in its name: other commands, another image or other
wheels make another layer. A test that is about an installation gets a box without layers.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from facts.reading.engines import EngineState
from inventory.catalogue import MINIMAX_M25
from inventory.engine import Vllm
from operations.engine import engine_script
from operations.tools import programs, tools_script
from tests.lab import image, wheelhouse
from tests.lab.base import Lab, LabError, lock
from tests.lab.box import Box
from tests.lab.desired import CPU_ENGINE, STUB_ENGINE, STUB_WHEEL, WHEELHOUSE, add_stub_engine

_TIMEOUT = 900.0  # seconds; vLLM takes 90 on two idle cores


@dataclass(frozen=True)
class Layer:
    """How a layer is made.

    + name: what it holds
    + folder: of the box's disk; what else the commands leave behind is no part of the layer
    + script: shell commands for root on a fresh box
    + stdin: their standard input
    + wheel: the file in the wheelhouse that may be another although its name is the same
    """

    name: str
    folder: str
    script: str
    stdin: str = ""
    wheel: str = ""

    def place(self, lab: Lab) -> Path:
        """Where it is once it is made."""
        made = [image.ensure(lab).name, (lab.wheelhouse / wheelhouse.MARKER).read_text()]
        if self.wheel:
            made.append(hashlib.sha256((lab.wheelhouse / self.wheel).read_bytes()).hexdigest())
        made += [self.folder, self.script, self.stdin]
        digest = hashlib.sha256(json.dumps(made).encode()).hexdigest()[:12]
        return lab.caches / f"layer-{self.name}-{digest}"

    def ensure(self, lab: Lab) -> Path:
        """Make it unless it is there, and return its folder. Raises LabError as its box does."""
        wheelhouse.ensure(lab, image.python_version(image.ensure(lab)))
        place = self.place(lab)
        with lock(lab.caches / f"layer-{self.name}.lock"):
            if not place.is_dir():
                with Box(f"layer-{self.name}", lab, user="root", simulated=False) as box:
                    box.run(self.script, stdin=self.stdin, timeout=_TIMEOUT)
                    self._take(box, place)
        return place

    def keep(self, box: Box) -> Path:
        """Take it from a box that has come to the same by itself, unless it is there already.

        The box's power is cut, and its disk lacks the folder from then on: rebuild the box.
        """
        place = self.place(box.lab)
        with lock(box.lab.caches / f"layer-{self.name}.lock"):
            if not place.is_dir():
                self._take(box, place)
        return place

    def _take(self, box: Box, place: Path) -> None:
        box.run("sync", user="root")
        box.cut()
        source = box.folder / "upper" / self.folder.lstrip("/")
        if not source.is_dir():
            raise LabError(f"The box {box.name} has no {self.folder} for the layer {self.name}.")
        self._remove_older(box.lab)
        draft = place.with_name(f"{place.name}.part")
        shutil.rmtree(draft, ignore_errors=True)
        target = draft / self.folder.lstrip("/")
        target.parent.mkdir(parents=True, mode=0o755)
        source.rename(target)
        draft.rename(place)

    def _remove_older(self, lab: Lab) -> None:
        """Remove what was made of other commands, unless a box stands on it."""
        # Of this lab, of its workers' and of those of its own tests.
        labs = ("boxes", "*/boxes", "*/*/boxes")
        links = (link for place in labs for link in lab.caches.glob(f"{place}/*/layer-*"))
        in_use = {link.resolve() for link in links}
        for old in lab.caches.glob(f"layer-{self.name}-{'[0-9a-f]' * 12}"):
            if old.resolve() not in in_use:
                shutil.rmtree(old)


def tools() -> Layer:
    """boxwright's programs."""
    return Layer("programs", "/opt/boxwright", tools_script(WHEELHOUSE), json.dumps(programs()))


def stub_engine(lab: Lab) -> Layer:
    """The environment of the stub engine, whose wheel is put into the wheelhouse."""
    add_stub_engine(lab)
    return Layer("stub", "/opt/vllm", _installs(STUB_ENGINE), wheel=STUB_WHEEL)


def cpu_engine() -> Layer:
    """The environment of real vLLM."""
    return Layer("vllm", "/opt/vllm", _installs(CPU_ENGINE))


def _installs(settings: dict[str, object]) -> str:
    engine = Vllm.model_validate({**MINIMAX_M25.engine.model_dump(), **settings})
    return engine_script(engine, EngineState(exists=False))

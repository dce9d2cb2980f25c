"""What lies under several boxes: made once, seen by all, changed by none."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.base import Lab, LabError
from tests.lab.box import Box
from tests.lab.layer import Layer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

MARK = Layer("mark", "/opt/marks/one", "mkdir -p /opt/marks/one; cat >/opt/marks/one/mark", "made")


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A worker's lab, without a layer of this name."""
    lab = Lab()
    yield lab
    for path in lab.caches.glob("layer-mark*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def boxed(lab: Lab, name: str, *layers: Path) -> Box:
    return Box(name, lab, user="root", simulated=False, layers=layers)


def test_it_is_made_once_and_no_box_changes_it(lab: Lab) -> None:
    place = MARK.ensure(lab)
    made = (place / "opt/marks/one/mark").stat()
    assert MARK.ensure(lab) == place
    with boxed(lab, "upon", place) as box:
        assert box.run("cat /opt/marks/one/mark").stdout == "made"
        box.run("echo changed >/opt/marks/one/mark")
        box.rebuild()
        assert box.run("cat /opt/marks/one/mark").stdout == "made"
        box.run("rm -r /opt/marks/one")
        assert box.run("ls -A /opt/marks").stdout == ""
        bare = boxed(lab, box.name).rebuild()
        assert bare.run("ls -A /opt").stdout == ""
    assert (place / "opt/marks/one/mark").stat() == made
    assert (place / "opt/marks/one/mark").read_text() == "made"


def test_a_box_that_came_to_the_same_gives_it(lab: Lab) -> None:
    other = replace(MARK, name="mark-below", folder="/opt/marks/two", stdin="below")
    with boxed(lab, "giving") as box:
        for layer in (MARK, other):
            box.boot().run(layer.script.replace("one", Path(layer.folder).name), stdin=layer.stdin)
        places = [layer.keep(box.boot()) for layer in (MARK, other)]
        assert not box.is_running
        upon = boxed(lab, box.name, *places).rebuild()
        assert upon.run("cat /opt/marks/*/mark").stdout == "madebelow"


def test_other_commands_make_another_one_and_what_no_box_needs_goes(lab: Lab) -> None:
    first = MARK.ensure(lab)
    second = replace(MARK, stdin="again")
    with boxed(lab, "upon", first) as box:
        place = second.ensure(lab)
        assert place != first
        assert first.is_dir(), "a box stands on it"
        box.cut()
    third = replace(MARK, stdin="and again").ensure(lab)
    assert not first.exists()
    assert not place.exists()
    assert third.is_dir()


def test_a_box_whose_layer_is_gone_says_so(lab: Lab) -> None:
    place = MARK.ensure(lab)
    with boxed(lab, "upon", place) as box:
        box.cut()
        shutil.rmtree(place)
        with pytest.raises(LabError, match="The layer-1 of the box upon was removed"):
            box.boot()

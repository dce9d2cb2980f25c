"""Bad input: an error of four parts, an exit status, and a box that nobody touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploys.state import listing
from tests.lab.base import Lab
from tests.lab.box import Box
from tests.lab.converge import Run, pyinfra
from tests.lab.desired import host

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]

DEPLOY = "deploys/minimax.py"
FOUR_PARTS = ["wanted", "found", "why", "next"]


@pytest.fixture(scope="module")
def box(lab: Lab) -> Iterator[Box]:
    """A fresh box that must stay as it is."""
    with Box("untouched", lab, user="root", simulated=True) as box:
        yield box


@pytest.fixture(scope="module")
def files(box: Box) -> list[str]:
    """Everything on the box before any of it."""
    return listing(box)


def inventory(folder: Path, name: str, lab: Lab, **data: object) -> Path:
    """An inventory file that names one box, with some of its data replaced."""
    entry, known = host(name, lab)
    path = folder / "inventory_of_a_test.py"
    path.write_text(f"boxes = [({entry!r}, { ({**known, **data})!r})]\n")
    return path


def deploy(folder: Path, **fields: str) -> Path:
    """A deploy file with a service that differs from MiniMax in these fields."""
    path = folder / "deploy_of_a_test.py"
    changes = ", ".join(f"{name}={value}" for name, value in fields.items())
    path.write_text(
        "from deploys.serve import serve\n"
        "from inventory.catalogue import MINIMAX_M25 as M\n"
        "from inventory.service import Model, Service\n"
        "fields = dict(name=M.name, model=M.model, engine=M.engine, placement=M.placement)\n"
        f"fields.update({changes})\n"
        "serve(Service(**fields))\n"
    )
    return path


def refused(run: Run, *words: str) -> None:
    assert run.status != 0
    assert run.four_parts == FOUR_PARTS, run.text
    for word in words:
        assert word in run.text
    assert "--> Beginning operation run" not in run.text


def test_an_unknown_field_in_an_override(
    box: Box, files: list[str], lab: Lab, tmp_path: Path
) -> None:
    _, data = host(box.name, lab)
    override = {**data["override"], "vllm-minimax-m25": {"engine": {"max_num_seq": 3}}}
    run = pyinfra(DEPLOY, "-y", inventory=inventory(tmp_path, box.name, lab, override=override))
    refused(run, "engine.max_num_seq: there is no such field")
    assert listing(box) == files


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "'vllm/minimax'"}, "'vllm/minimax' is not a name for a unit"),
        ({"name": "'-minimax'"}, "'-minimax' is not a name for a unit"),
        ({"model": "Model(repo='a/b', under='models')"}, "'models' is not an absolute path"),
    ],
)
def test_a_service_that_cannot_be(
    box: Box, files: list[str], tmp_path: Path, fields: dict[str, str], words: str
) -> None:
    refused(pyinfra(str(deploy(tmp_path, **fields)), "-y", box=box.name), words)
    assert listing(box) == files


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"repo": "lab/no-such-model"}, "no repository lab/no-such-model"),
        ({"revision": "no-such-branch"}, "no revision no-such-branch"),
    ],
)
def test_a_repository_or_revision_that_does_not_exist(
    box: Box, files: list[str], lab: Lab, tmp_path: Path, model: dict[str, str], words: str
) -> None:
    _, data = host(box.name, lab)
    base = data["override"]["*"]
    override = {"*": {**base, "model": {**base["model"], **model}}}
    run = pyinfra(DEPLOY, "-y", inventory=inventory(tmp_path, box.name, lab, override=override))
    refused(run, words)
    assert listing(box) == files


def test_not_enough_disk(box: Box, lab: Lab, tmp_path: Path) -> None:
    box.run("mkdir -p /small && mount -t tmpfs -o size=8m tmpfs /small")
    before = listing(box)
    _, data = host(box.name, lab)
    base = data["override"]["*"]
    override = {"*": {**base, "model": {**base["model"], "under": "/small/models"}}}
    run = pyinfra(DEPLOY, "-y", inventory=inventory(tmp_path, box.name, lab, override=override))
    refused(run, "19.1 MiB for lab/tiny-minimax-m2", "8.0 MiB free on /small (tmpfs)")
    assert listing(box) == before
    assert box.run("ls -A /small").stdout == ""
    box.run("umount /small && rmdir /small")


def test_a_model_folder_of_another_commit(box: Box, lab: Lab) -> None:
    # The commit is what the Hub says: asked once, by a dry run that touches nothing.
    assert pyinfra(DEPLOY, "--dry", box=box.name).status == 0
    _, data = host(box.name, lab)
    lock = json.loads((Path(data["locks"]) / "lab--tiny-minimax-m2@main.json").read_text())
    folder = f"/shared/models/lab/tiny-minimax-m2/{lock['commit']}"
    manifest = {"repo": lock["repo"], "commit": "b" * 40, "problem": "", "files": []}
    box.run(
        f"mkdir -p {folder}/.boxwright && cat >{folder}/.boxwright/manifest.json",
        stdin=json.dumps(manifest),
    )
    before = listing(box)
    run = pyinfra(DEPLOY, "-y", box=box.name)
    refused(run, "the snapshot of lab/tiny-minimax-m2 at bbbbbbbbbbbb", f"mv {folder}")
    assert listing(box) == before
    box.run("rm -r /shared/models")


def test_a_box_that_cannot_be_reached(box: Box, lab: Lab, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    path = inventory(tmp_path, box.name, lab, ssh_port=1, report=str(report))
    refused(pyinfra(DEPLOY, "-y", inventory=path), "an SSH connection to every box")
    told = json.loads(report.read_text())["boxes"][box.name]
    assert told["outcome"] == "failed"
    assert told["errors"][0]["wanted"] == "an SSH connection to every box of the inventory"


def test_a_login_without_sudo(box: Box, files: list[str], lab: Lab, tmp_path: Path) -> None:
    path = inventory(tmp_path, box.name, lab, ssh_user="guest")
    refused(
        pyinfra(DEPLOY, "-y", inventory=path),
        "login as guest: ",
        "guest ALL=(ALL) NOPASSWD: ALL",
    )
    assert listing(box) == files


def test_a_port_that_a_stranger_holds(box: Box, files: list[str]) -> None:
    box.run(
        f"systemd-run --quiet --unit=stranger python3 -m http.server 8000 --bind {box.address}"
        f" && until ss -Hltn src {box.address}:8000 | grep -q .; do sleep 0.1; done"
    )
    run = pyinfra(DEPLOY, "-y", box=box.name)
    refused(run, "python3 (pid ", "stranger.service) listens on")
    assert box.run("systemctl is-active stranger").stdout.strip() == "active"
    box.run("systemctl stop stranger")
    assert listing(box) == files


def test_a_masked_unit(box: Box) -> None:
    box.run("systemctl mask --quiet vllm-minimax-m25.service")
    before = listing(box)
    refused(pyinfra(DEPLOY, "-y", box=box.name), "systemctl unmask vllm-minimax-m25.service")
    assert listing(box) == before
    box.run("systemctl unmask --quiet vllm-minimax-m25.service")


def test_a_strangers_processes_on_the_gpus(box: Box, files: list[str]) -> None:
    hold = "for g in 1 5; do simulated-hold $g 60 & done; wait"
    processes = "nvidia-smi --query-compute-apps=pid --format=csv,noheader"
    box.run(f"systemd-run --quiet --unit=tenant sh -c '{hold}'")
    box.run(f"until [ $({processes} | wc -l) = 2 ]; do sleep 0.1; done")
    run = pyinfra(DEPLOY, "-y", box=box.name)
    # Three free GPUs are left in either node.
    refused(run, "4 GPUs in one NUMA node", "tenant.service")
    assert box.run("systemctl is-active tenant").stdout.strip() == "active"
    box.run("systemctl stop tenant")
    assert listing(box) == files


def test_a_box_without_systemd(lab: Lab) -> None:
    with Box("bare", lab, user="root", systemd=False, simulated=False) as bare:
        before = listing(bare)
        refused(pyinfra(DEPLOY, "-y", box=bare.name), "not booted with systemd")
        assert listing(bare) == before

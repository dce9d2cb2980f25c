"""systemd itself reads the rendered unit: what arrives is what was meant."""

from __future__ import annotations

import json

import pytest

from inventory.engine import Vllm
from inventory.service import Model, Placement, Service
from operations.unit import unit_script
from operations.unit_text import unit_text
from tests.lab.base import Lab
from tests.lab.box import Box

ODD = (
    'a "quoted" word',
    "it's",
    "100% $HOME ${HOME} $$",
    r"back\slash \n \x41",
    "%h %% %",
    "; # | & < > * ? [a-z] {b,c} ~",
    '{"method":"mtp","n":1}',
    "trailing\\",
    " leading and trailing ",
    "",
)

SHOW = """#!/usr/bin/python3
import json, os, sys
path = os.environ["VLLM_CACHE_ROOT"] + "-seen"
with open(path + ".new", "w") as out:
    json.dump([sys.argv[1:], {k: v for k, v in os.environ.items() if k.startswith("ODD")}], out)
os.rename(path + ".new", path)
"""


@pytest.mark.lab
def test_arguments_and_environment_arrive_as_they_were_meant() -> None:
    arguments = tuple(word for odd in ODD for word in ("--odd", odd))
    service = Service(
        name="vllm-odd",
        model=Model(repo="o/n"),
        engine=Vllm(version="1", command=("bin/show",), extra_args=arguments),
        placement=Placement(gpus=0),
        environment={f"ODD_{number}": odd for number, odd in enumerate(ODD)},
        user="operator",
    )
    text = unit_text(service, folder="/shared/models/o/n/x", gpu_environment={})
    with Box("odd", Lab(), user="root", simulated=False) as box:
        program = f"{service.engine.environment_folder}/bin/show"
        box.run(
            f"mkdir -p {service.engine.environment_folder}/bin /shared/models/o/n/x && "
            f"cat >{program} && chmod 755 {program}",
            stdin=SHOW,
        )
        box.run(unit_script(service.unit), stdin=text)
        box.run(f"systemctl start {service.unit}")
        seen = "/var/cache/vllm/vllm-1/vllm-seen"
        box.run(f"until [ -e {seen} ]; do sleep 0.1; done")
        found, environment = json.loads(box.run(f"cat {seen}").stdout)
        assert tuple(found[-len(arguments) :]) == arguments
        assert environment == service.environment


@pytest.mark.lab
def test_a_unit_that_systemd_refuses_is_not_installed() -> None:
    with Box("refused", Lab(), user="root", simulated=False) as box:
        broken = "[Service]\nExecStart=/no/such/program\n"
        done = box.run(unit_script("vllm-x.service"), stdin=broken, check=False)
        assert done.returncode != 0
        assert "/no/such/program" in done.stdout + done.stderr
        left = box.run("ls -A /etc/systemd/system /run | grep -E 'vllm-x|boxwright' || :").stdout
        assert left == ""

"""The boxes. These lines name a box of the lab, which `make lab` boots on this machine.

For your own machine, this is the whole file::

    boxes = [("gpu1", {"ssh_hostname": "10.0.0.5", "ssh_user": "ops"})]

Host data that boxwright reads: ``override`` (inventory/override.py), ``locks``, ``upgrade``,
``report``, ``sysfs`` (deploys/serve.py).
"""

import os

from tests.lab.desired import host as _lab_host

boxes = [_lab_host(os.environ.get("LAB_BOX", "demo"))]

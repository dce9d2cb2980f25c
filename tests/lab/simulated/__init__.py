"""A simulated 8-GPU box: what no test machine has.

``nvidia-smi`` with books of simulated memory, a sysfs tree, and a stub engine that binds,
loads, crashes, hangs, exits 0 or leaves orphans on cue. ``gpus`` and ``engine`` run on the box;
the rest builds and installs them.
"""

from tests.lab.simulated.gpus.description import Box, Gpu, Node, eight_gpus
from tests.lab.simulated.install import install, write_plan
from tests.lab.simulated.wheel import build_wheel

__all__ = ["Box", "Gpu", "Node", "build_wheel", "eight_gpus", "install", "write_plan"]

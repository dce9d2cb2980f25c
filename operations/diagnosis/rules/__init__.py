"""The failure catalogue as rules, by family.

Ids are stable: a letter for the family, a number, and a word where one row has several causes.
``M`` GPU memory, ``P`` shapes and parallel sizes, ``A`` model, arguments and quantisation, ``D``
files, Hub and disk, ``H`` host, driver, NCCL and processes, ``C`` libraries and a CPU box's own,
``S`` systemd.
The order matters for one line that two rules know: the first one has it.
"""

from __future__ import annotations

from operations.diagnosis.rule import Rule
from operations.diagnosis.rules.arguments import ARGUMENTS
from operations.diagnosis.rules.driver import DRIVER
from operations.diagnosis.rules.echoes import ECHOES
from operations.diagnosis.rules.files import FILES
from operations.diagnosis.rules.folders import FOLDERS
from operations.diagnosis.rules.gpu_memory import GPU_MEMORY
from operations.diagnosis.rules.harmless import HARMLESS
from operations.diagnosis.rules.host import HOST
from operations.diagnosis.rules.hub import HUB
from operations.diagnosis.rules.kernel import KERNEL
from operations.diagnosis.rules.libraries import LIBRARIES
from operations.diagnosis.rules.model import MODEL
from operations.diagnosis.rules.nccl import NCCL
from operations.diagnosis.rules.out_of_memory import OUT_OF_MEMORY
from operations.diagnosis.rules.processes import PROCESSES
from operations.diagnosis.rules.serving import SERVING
from operations.diagnosis.rules.shapes import SHAPES
from operations.diagnosis.rules.unit import UNIT

RULES: tuple[Rule, ...] = (
    *KERNEL,
    *UNIT,
    *PROCESSES,
    *ECHOES,
    *GPU_MEMORY,
    *OUT_OF_MEMORY,
    *NCCL,
    *SHAPES,
    *MODEL,
    *HUB,
    *FILES,
    *FOLDERS,
    *HOST,
    *LIBRARIES,
    *DRIVER,
    *SERVING,
    *ARGUMENTS,
)
"""Every rule that can be a cause."""

__all__ = ["HARMLESS", "RULES"]

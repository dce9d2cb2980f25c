"""The failure catalogue as rules, by family.

Ids are stable: a letter for the family, a number, and a word where one row has several causes.
``M`` GPU memory, ``P`` shapes and parallel sizes, ``A`` model, arguments and quantisation, ``D``
files, Hub and disk, ``H`` host, driver, NCCL and processes, ``C`` libraries and a CPU box's own,
``S`` systemd.
The order matters for one line that two rules know: the first one has it.
"""

from facts.diagnosis.rule import Rule
from facts.diagnosis.rules.arguments import ARGUMENTS
from facts.diagnosis.rules.driver import DRIVER
from facts.diagnosis.rules.files import FILES
from facts.diagnosis.rules.folders import FOLDERS
from facts.diagnosis.rules.gpu_memory import GPU_MEMORY
from facts.diagnosis.rules.harmless import HARMLESS
from facts.diagnosis.rules.host import HOST
from facts.diagnosis.rules.hub import HUB
from facts.diagnosis.rules.kernel import KERNEL
from facts.diagnosis.rules.libraries import LIBRARIES
from facts.diagnosis.rules.model import MODEL
from facts.diagnosis.rules.nccl import NCCL_RULES
from facts.diagnosis.rules.out_of_memory import OUT_OF_MEMORY
from facts.diagnosis.rules.processes import PROCESSES
from facts.diagnosis.rules.serving import SERVING
from facts.diagnosis.rules.shapes import SHAPES
from facts.diagnosis.rules.unit import UNIT

RULES: tuple[Rule, ...] = (
    *KERNEL,
    *UNIT,
    *PROCESSES,
    *GPU_MEMORY,
    *OUT_OF_MEMORY,
    *NCCL_RULES,
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

"""One small journal for each row of the failure catalogue that leaves a text.

Rows without one here (C1, H18, H21 of the router, H25 of a killed engine) are among the recorded
journals.
"""

from __future__ import annotations

from tests.operations.diagnosis.examples.arguments import ARGUMENTS
from tests.operations.diagnosis.examples.files import FILES
from tests.operations.diagnosis.examples.gpu_memory import GPU_MEMORY
from tests.operations.diagnosis.examples.host import HOST
from tests.operations.diagnosis.examples.kind import Example
from tests.operations.diagnosis.examples.model import MODEL
from tests.operations.diagnosis.examples.processes import PROCESSES
from tests.operations.diagnosis.examples.shapes import SHAPES
from tests.operations.diagnosis.examples.unit import UNIT

EXAMPLES: tuple[Example, ...] = (
    *GPU_MEMORY,
    *SHAPES,
    *MODEL,
    *ARGUMENTS,
    *FILES,
    *HOST,
    *PROCESSES,
    *UNIT,
)

__all__ = ["EXAMPLES", "Example"]

"""One small journal for each row of the failure catalogue that leaves a text.

Rows without one here (C1, H18, H21 of the router, H25 of a killed engine) are among the recorded
journals.
"""

from __future__ import annotations

from tests.facts.diagnosis.examples.arguments import ARGUMENTS
from tests.facts.diagnosis.examples.files import FILES
from tests.facts.diagnosis.examples.gpu_memory import GPU_MEMORY
from tests.facts.diagnosis.examples.host import HOST
from tests.facts.diagnosis.examples.kind import Example
from tests.facts.diagnosis.examples.model import MODEL
from tests.facts.diagnosis.examples.processes import PROCESSES
from tests.facts.diagnosis.examples.shapes import SHAPES
from tests.facts.diagnosis.examples.unit import UNIT

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

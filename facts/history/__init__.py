"""What ran, and why one start took longer than another: recorded starts compared in measured parts.

Pure functions. A record becomes figures (``measured``), the phases of two starts are laid side by
side so that their differences add up (``parts``), and put into words (``words``). ``comparison``
picks which starts to compare, and does it; ``render`` prints.
"""

from __future__ import annotations

from facts.history.comparison import BoxHistory, Comparison, History, compare, history
from facts.history.measured import Measured, measure
from facts.history.render import render

__all__ = [
    "BoxHistory",
    "Comparison",
    "History",
    "Measured",
    "compare",
    "history",
    "measure",
    "render",
]

"""Which GPUs a service runs on: chosen by rule, explained in words, the same every time.

- result: what is handed back
- candidates: which GPUs may be taken, and who holds the others
- layout: how the GPUs of this box lie to each other
- ranking: which group is the best
- explain: reasons, warnings, errors
- choose: :func:`place`, and the binding to NUMA nodes
"""

from inventory.placement.choose import place
from inventory.placement.result import Chosen, GpuUser, Rejected

__all__ = ["Chosen", "GpuUser", "Rejected", "place"]

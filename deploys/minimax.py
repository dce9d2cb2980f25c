"""MiniMax-M2.5 on four GPUs of one NUMA node: latency for one or a few users.

::

    pyinfra inventory.py deploys/minimax.py
"""

from deploys.serve import serve
from inventory.catalogue import KIMI_K25, MINIMAX_M25, MINIMAX_M25_THROUGHPUT

serve(MINIMAX_M25, replaces=[KIMI_K25, MINIMAX_M25_THROUGHPUT])

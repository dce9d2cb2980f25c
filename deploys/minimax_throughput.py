"""MiniMax-M2.5 on all eight GPUs with expert parallelism: throughput for many users.

::

    pyinfra inventory.py deploys/minimax_throughput.py
"""

from deploys.serve import serve
from inventory.catalogue import KIMI_K25, MINIMAX_M25, MINIMAX_M25_THROUGHPUT

serve(MINIMAX_M25_THROUGHPUT, replaces=[KIMI_K25, MINIMAX_M25])

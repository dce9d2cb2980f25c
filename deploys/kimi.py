"""Kimi-K2.5 in NVFP4 on all eight GPUs.

::

    pyinfra inventory.py deploys/kimi.py
"""

from deploys.serve import serve
from inventory.catalogue import KIMI_K25, MINIMAX_M25, MINIMAX_M25_THROUGHPUT

serve(KIMI_K25, replaces=[MINIMAX_M25, MINIMAX_M25_THROUGHPUT])

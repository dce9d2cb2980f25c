"""The simulated GPUs as they are installed on a box: their description, the books of their
memory, and ``nvidia-smi``. Standard library only, relative imports only: the same files are
installed beside ``nvidia-smi`` and packed into the stub engine.
"""

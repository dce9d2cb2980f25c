"""A stub of vLLM: binds, loads, serves, crashes, hangs and leaves orphans on cue, with vLLM's
own log lines, on the simulated GPUs. Standard library only, relative imports only: it is packed
into a wheel together with ``gpus`` (see ``wheel.py``).

Facts of vLLM 0.32.0: messages and their file:line tags from its source and its journals; the
socket is bound first and listens when the engine is ready; SIGTERM is ignored while the engine
is built; the server's death leaves the engine (vllm-project/vllm#55510); the engine's death ends
the server with status 0 (#48966).
"""

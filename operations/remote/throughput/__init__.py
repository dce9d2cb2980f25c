"""Runs on the box: the throughput of a service that is ready, measured and compared.

By hand: ``python -m operations.remote.throughput.measure < request.json``. Standard library only;
the load comes from the benchmark that the engine's own environment holds.
"""

"""Runs on the box, as root: the switch from the service that serves to the one that should.

Standard library only. Each step is also a program to be run by hand, as
``python -m operations.remote.switch.waiting.wait --help``.

- the order of it: start (as a unit of its own), order, request, formers, rollback, finish
- the wait: wait, watch, expectation, state, journal, phases, probe, listener, verdicts, talk
- GPU memory: release, occupancy, smi, holders, leftovers
- the page cache: warm, pagecache
- the smoke test: smoke, asking, judging
- what stays: record
- used by several: target, verdict, systemd, cgroup, files
"""

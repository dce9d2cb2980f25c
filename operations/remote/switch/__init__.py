"""Runs on the box, as root: the switch from the service that serves to the one that should.

Standard library only. Each step is also a program to be run by hand, as
``python -m operations.remote.switch.waiting.wait --help``.

- the whole: start (as a unit of its own), carry_out, old_services, rollback, finish
- the wait: wait, expectation, state, journal, phases, probe, listener, verdicts
- GPU memory: release, occupancy, smi, holders, leftovers
- the page cache: warm, pagecache
- the smoke test: smoke, judging
- what stays: record
- used by several: errors, systemd
"""

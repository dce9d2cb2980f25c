"""Runs on the box: the switch from the service that serves to the one that should.

Each step is a program of its own, to be run by hand as ``python -m remote.switch.wait --help``:
``release``, ``wait``, ``smoke``. Standard library only.
"""

# Everything that a fresh Debian 12 or Ubuntu 22.04/24.04 machine needs is installed on the way.
# The lab boots containers, so root or sudo is needed.

PYTHON := .venv/bin/python
AS_ROOT := $(shell if [ "$$(id -u)" != 0 ] && command -v sudo >/dev/null; then echo sudo -E; fi)

.PHONY: demo test up lab lint unit clean

demo: .venv/ready  ## A machine that serves the old model comes to serve the new one, for real.
	$(AS_ROOT) $(PYTHON) -m tests.lab.demo

# The checks run while the lab makes its image, on its first day. Then three at a time on two cores:
# most of a box's time is waiting. Long files come first (tests/conftest.py).
test: .venv/ready  ## All checks and tests; takes the lab down afterwards.
	$(MAKE) --jobs=2 up lint unit
	$(AS_ROOT) $(PYTHON) -m pytest -m lab -n 3 --dist loadfile --no-loadscope-reorder; status=$$?; $(AS_ROOT) $(PYTHON) -m tests.lab down; exit $$status

up: .venv/ready  ## What is slow to make for the lab, and its Hub.
	$(AS_ROOT) $(PYTHON) -m tests.lab up

unit: .venv/ready  ## The tests that need no box.
	$(PYTHON) -m pytest -m "not lab" -n 2

lab: up  ## The lab with its demo box booted, to try things on.
	$(AS_ROOT) $(PYTHON) -m tests.lab boot demo

lint: .venv/ready
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

clean:  ## Take the lab down and remove everything that was made here.
	[ ! -x $(PYTHON) ] || $(AS_ROOT) $(PYTHON) -m tests.lab clean
	$(AS_ROOT) rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/ready: pyproject.toml tests/lab/prepare
	$(AS_ROOT) sh tests/lab/prepare

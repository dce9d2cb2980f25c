"""Fetching, checking and keeping a snapshot, on the box itself.

Standard library, huggingface_hub and tenacity only. Three programs: ``fetch`` (by hand:
``python -m operations.remote.weights.fetch < job.json``), ``verify`` and ``start``, which runs
``fetch`` as a unit of its own.
"""

import os as _os

# Plain HTTP: xet keeps gigabytes of buffers, hands out no bytes to hash and resumes nothing. No
# token but the job's. huggingface_hub reads these when it is imported, so this comes first.
for _name in ("XET", "TELEMETRY", "IMPLICIT_TOKEN"):
    _os.environ[f"HF_HUB_DISABLE_{_name}"] = "1"

"""Fetching, checking and keeping a snapshot, on the box itself.

Standard library, inventory.common, huggingface_hub, tenacity, and httpx2: the HTTP library of the
Hub's own client, whose errors and timeouts have no other name. Three programs: ``fetch`` (by hand:
``python -m operations.remote.weights.fetch < request.json``), ``verify`` and ``start``, which runs
``fetch`` as a unit of its own.
"""

import os as _os

# Plain HTTP: xet keeps gigabytes of buffers, hands out no bytes to hash and resumes nothing. No
# token but the request's. huggingface_hub reads these when it is imported, so this comes first.
for _name in ("XET", "TELEMETRY", "IMPLICIT_TOKEN"):
    _os.environ[f"HF_HUB_DISABLE_{_name}"] = "1"

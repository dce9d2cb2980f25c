"""A local Hub that speaks the Hugging Face Hub protocol to the real client, and misbehaves on
request.

Two origins, as in life: the Hub (API, small files, redirects) and a "CDN" (files in LFS by
signed URL). Standard library only. In a test: :class:`Hub`; in another process:
``python -m tests.lab.hub`` and :class:`RemoteHub`. Repositories are folders of plain files.
"""

from tests.lab.hub.faults import Fault
from tests.lab.hub.log import Request, chosen
from tests.lab.hub.remote import RemoteHub, launched
from tests.lab.hub.server import Hub
from tests.lab.hub.weights import write_model

__all__ = ["Fault", "Hub", "RemoteHub", "Request", "chosen", "launched", "write_model"]

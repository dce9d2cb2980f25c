"""Host data may override any field of a service, for one service or for all.

**Example**, in ``inventory.py``:

.. code:: python

    boxes = [("box1", {"override": {
        "*": {"model": {"under": "/data/models"}},
        "vllm-minimax-m25": {"engine": {"max_num_seqs": 128}},
    }})]
"""

from collections.abc import Mapping
from typing import Any

from inventory.desired import built
from inventory.errors import DesiredStateError
from inventory.service import Service

EVERY_SERVICE = "*"


def overridden(service: Service, override: Any) -> Service:
    """The service with the host's override laid over it, validated once.

    + override: service name or ``*`` -> nested fields; None or empty changes nothing. A mapping
      is merged field by field, any other value replaces the field. A service's own entry wins
      over ``*``.
    + raises: DesiredStateError with the path of every wrong field
    """
    if not override:
        return service
    if not isinstance(override, Mapping):
        raise _malformed(service, f"{type(override).__name__} instead of a mapping")
    misplaced = sorted(set(override) & set(Service.model_fields))
    if misplaced:
        raise _malformed(service, f"the field {misplaced[0]!r} at the top level")
    fields = service.model_dump()
    changed = False
    for key in (EVERY_SERVICE, service.name):
        entry = override.get(key)
        if entry is None:
            continue
        if not isinstance(entry, Mapping):
            raise _malformed(service, f"{type(entry).__name__} under {key!r}, not a mapping")
        fields = _merged(fields, entry)
        changed = True
    if not changed:
        return service
    return built(Service, fields, f"override of {service.name} in the host's data")


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        merged[key] = _merged(old, value) if both else value  # type: ignore[arg-type]
    return merged


def _malformed(service: Service, found: str) -> DesiredStateError:
    return DesiredStateError(
        wanted=f"an override of {service.name} in the host's data",
        found=found,
        why="nothing was read or touched: it is not clear which service the value is for",
        next_step=f'write override={{"{service.name}": {{"engine": {{"max_num_seqs": 128}}}}}}, '
        'or "*" in place of the name for every service',
    )

"""Events have two forms, core/v1 and events.k8s.io/v1, of one and the same object."""

from collections.abc import Mapping

from partita.simulator.api_server.resource_types import ResourceType
from partita.simulator.api_server.shapes import Object

__all__ = ["shown", "stored"]

_GROUP = "events.k8s.io"
_CORE_NAMES: Mapping[str, str] = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_NEW_NAMES = {core: new for new, core in _CORE_NAMES.items()}


def stored(resource: ResourceType, found: Object) -> Object:
    """Return an object in the form in which it is kept: events as core/v1."""
    if resource.group != _GROUP:
        return found
    renamed = {_CORE_NAMES.get(key, key): one for key, one in found.items()}
    return renamed | {"apiVersion": "v1"}


def shown(resource: ResourceType, found: Object) -> Object:
    """Return an object in the form of the resource by which it was asked for."""
    if resource.group != _GROUP:
        return found
    renamed = {_NEW_NAMES.get(key, key): one for key, one in found.items()}
    return renamed | {"apiVersion": f"{_GROUP}/v1"}

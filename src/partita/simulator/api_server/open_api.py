"""OpenAPI v3 documents, as far as kubectl reads them.

kubectl looks for the parameter ``fieldValidation`` before it leaves validation to the server, for
patch strategies when it makes a three-way patch, and for types and fields when it explains a kind.
There are no descriptions. Of OpenAPI v2 there is an empty document: kubectl asks for it when it
edits several objects at once, and then leaves kinds that it does not find there to the server.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from partita.simulator.api_server import shapes
from partita.simulator.api_server.resource_types import Resources, ResourceType
from partita.simulator.api_server.shapes import Object

__all__ = ["V2_MEDIA_TYPE", "document", "empty_v2", "index"]

_PREFIX = "#/components/schemas/"
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")

V2_MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def empty_v2() -> bytes:
    """Return an OpenAPI v2 document in protobuf that knows no kind."""
    info = _text(1, "Kubernetes") + _text(2, "v1.37")
    return _text(1, "2.0") + bytes([2 << 3 | 2, len(info)]) + info


def _text(field: int, text: str) -> bytes:
    return bytes([field << 3 | 2, len(text)]) + text.encode()


def index(resources: Resources) -> Object:
    """Return where the document of each group and version is; the address changes with it."""
    paths = {}
    for group, version in dict.fromkeys((one.group, one.version) for one in resources.served):
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        found = json.dumps(document(resources, group, version), sort_keys=True)
        mark = hashlib.sha256(found.encode()).hexdigest().upper()
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={mark}"}
    return {"paths": paths}


def document(resources: Resources, group: str, version: str) -> Object | None:
    """Return the document of one version of a group, None when nothing is served there."""
    found = [one for one in resources.in_group(group) if one.version == version]
    if not found:
        return None
    paths: Object = {}
    schemas: Object = {}
    for one in found:
        paths |= _paths(one)
        schemas |= _schemas(one)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.37"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _kind(resource: ResourceType) -> Object:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _paths(resource: ResourceType) -> Object:
    root = f"/apis/{resource.group}" if resource.group else "/api"
    place = "/namespaces/{namespace}" if resource.is_namespaced else ""
    collection = f"{root}/{resource.version}{place}/{resource.plural}"
    status = {
        f"{collection}/{{name}}/status": {
            "get": _operation(resource, "get"),
            "put": _operation(resource, "put"),
            "patch": _operation(resource, "patch"),
        }
    }
    paths = {
        collection: {
            "get": _operation(resource, "list"),
            "post": _operation(resource, "post"),
        },
        f"{collection}/{{name}}": {
            "get": _operation(resource, "get"),
            "put": _operation(resource, "put"),
            "patch": _operation(resource, "patch"),
            "delete": _operation(resource, "delete"),
        },
    }
    return paths | (status if resource.has_status else {})


def _operation(resource: ResourceType, action: str) -> Object:
    names = _PARAMETERS if action in {"post", "put", "patch"} else ()
    parameters = [{"name": one, "in": "query", "schema": {"type": "string"}} for one in names]
    media = {"application/json": {"schema": {"$ref": _PREFIX + _definition(resource)}}}
    return {
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": media}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _kind(resource),
    }


def _definition(resource: ResourceType) -> str:
    if resource.is_custom:
        group = ".".join(reversed(resource.group.split(".")))
        return f"{group}.{resource.version}.{resource.kind}"
    return str(resource.shape.definition)


def _schemas(resource: ResourceType) -> Object:
    name = _definition(resource)
    marked = {"x-kubernetes-group-version-kind": [_kind(resource)]}
    if not resource.is_custom:
        found = {one: _referring(shapes.built_in_definitions()[one]) for one in _reached([name])}
        return found | {name: found[name] | marked}
    node = dict(resource.shape.node)
    meta = {"$ref": shapes.OBJECT_META}
    node["properties"] = {**node["properties"], "metadata": meta}
    found = {
        one: _referring(shapes.built_in_definitions()[one])
        for one in _reached([shapes.OBJECT_META])
    }
    return found | {name: _referring(node) | marked}


def _reached(names: Iterable[str]) -> list[str]:
    """Return these definitions and all that they refer to."""
    found: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            waiting.extend(_references(shapes.built_in_definitions()[name]))
    return list(found)


def _references(node: Any) -> Iterable[str]:
    if isinstance(node, Mapping):
        for key, one in node.items():
            if key == "$ref" and isinstance(one, str):  # some kinds have a field of that name
                yield one
            else:
                yield from _references(one)
    elif isinstance(node, list):
        for one in node:
            yield from _references(one)


def _referring(node: Any) -> Any:
    """Return a schema whose references are those of a document, as OpenAPI 3.0 writes them."""
    if isinstance(node, list):
        return [_referring(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    target = node.get("$ref")
    if not isinstance(target, str):
        return {key: _referring(one) for key, one in node.items()}
    rest = {key: _referring(one) for key, one in node.items() if key != "$ref"}
    reference = {"$ref": _PREFIX + target}
    return rest | {"allOf": [reference]} if rest else reference

"""Bodies of requests: parsed, checked against their kind, in the form of the store."""

import json
from collections.abc import Mapping
from typing import Any

import yaml

from partita.simulator.api_server import decoding, event_forms, failures, protobuf_bodies, shapes
from partita.simulator.api_server.decoding import DecodeError
from partita.simulator.api_server.failures import Cause
from partita.simulator.api_server.protobuf_bodies import UnknownKindError
from partita.simulator.api_server.requests import Request
from partita.simulator.api_server.resource_types import ResourceType
from partita.simulator.api_server.shapes import Object

__all__ = ["decode", "identify", "parse_object", "parse_yaml", "typed", "without_unknown"]


_UNDERSTOOD = {"application/json", "application/yaml"}


class _Loader(yaml.CSafeLoader):
    """YAML without times: those are texts in the API."""


_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def parse_yaml(body: bytes) -> Any:
    """Return what YAML or JSON says.

    Raises:
        ApiFailure: When it says nothing.
    """
    try:
        return json.loads(body)
    except ValueError:
        pass
    try:
        return yaml.load(body, Loader=_Loader)  # noqa: S506 - it is a safe one
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or error
        raise failures.bad_request(f"error encoding patch: yaml: {problem}") from error


def parse_object(request: Request) -> Object:
    """Return the object that a request brings.

    Raises:
        ApiFailure: When it brings none.
    """
    kind = request.resource.kind
    try:
        if request.content_type == protobuf_bodies.MEDIA_TYPE:
            return protobuf_bodies.decode(kind, request.body)
    except UnknownKindError as error:
        raise failures.unsupported_media(sorted(_UNDERSTOOD)) from error
    if request.content_type not in _UNDERSTOOD:
        raise failures.unsupported_media(sorted(_UNDERSTOOD))
    subject = f"the object provided is unrecognized (must be of type {kind})"
    try:
        found = json.loads(request.body)
        why = "json: cannot unmarshal into Go value"
    except ValueError:
        found = None if request.content_type == "application/json" else parse_yaml(request.body)
        why = "unexpected end of JSON input"
    if isinstance(found, dict):
        return found
    shown = request.body.decode(errors="replace")[:100] or "<empty>"
    message = f"{subject}: couldn't get version/kind; json parse error: {why} ({shown})"
    raise failures.bad_request(message)


def identify(resource: ResourceType, found: Object) -> Object:
    """Return the object with its kind and version; of built-in kinds they need not be told.

    Raises:
        ApiFailure: When they are those of something else.
    """
    version, kind = found.get("apiVersion", ""), found.get("kind", "")
    if resource.is_custom:
        _identify_custom(resource, found, version, kind)
    elif (version or resource.api_version) != resource.api_version:
        raise _cannot_handle(resource, kind, version, _unregistered(kind, version))
    elif (kind or resource.kind) != resource.kind:
        why = f"converting (v1.{kind}) to (core.{resource.kind}): unknown conversion"
        raise _cannot_handle(resource, kind, version, why)
    rest = {key: one for key, one in found.items() if key not in {"kind", "apiVersion"}}
    metadata = rest.get("metadata") or {}
    head = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return head | {key: one for key, one in rest.items() if key != "metadata"}


def _identify_custom(resource: ResourceType, found: Object, version: str, kind: str) -> None:
    if version != resource.api_version:
        message = (
            f"the API version in the data ({version}) does not match the expected API version "
            f"({resource.api_version})"
        )
        raise failures.bad_request(message)
    if kind != resource.kind:
        cause = Cause.invalid("kind", kind, f"must be {resource.kind}")
        name = found.get("metadata", {}).get("name", "")
        raise failures.invalid(_Kind(resource, kind), name, [cause])


class _Kind:
    """A resource, called by the kind that somebody took it for."""

    def __init__(self, resource: ResourceType, kind: str) -> None:
        self.group, self.plural, self.kind = resource.group, resource.plural, kind


def _unregistered(kind: str, version: str) -> str:
    scheme = 'in scheme "pkg/runtime/scheme.go:111"'
    return f'no kind "{kind}" is registered for version "{version}" {scheme}'


def _cannot_handle(
    resource: ResourceType, kind: str, version: str, why: str
) -> failures.ApiFailure:
    subject = f'{kind or resource.kind} in version "{version or resource.api_version}"'
    return failures.bad_request(f"{subject} cannot be handled as a {resource.kind}: {why}")


def without_unknown(request: Request, found: Object) -> tuple[Object, list[str]]:
    """Return the object without fields that its kind does not know, and the strict objections."""
    pruned, unknown = decoding.prune(request.resource.shape, found)
    if request.resource.is_custom:
        unknown.sort()
    return pruned, [f'unknown field "{path}"' for path in unknown]


def decode(request: Request, found: Object) -> tuple[Object, list[str]]:
    """Return an object in the form of the store, and warnings.

    Raises:
        ApiFailure: When it does not fit its kind, or has unknown fields and must not.
    """
    resource = request.resource
    identified = identify(resource, found)
    pruned, objections = without_unknown(request, identified)
    validation = request.query.get("fieldValidation", "Warn")
    if objections and validation == "Strict":
        why = f"strict decoding error: {', '.join(objections)}"
        version = resource.version if resource.is_custom else resource.api_version
        raise _cannot_handle(resource, resource.kind, version, why)
    try:
        decoded = typed(resource, pruned)
    except DecodeError as error:
        raise _cannot_handle(resource, "", "", str(error)) from error
    return decoded, [] if validation == "Ignore" else objections


def typed(resource: ResourceType, found: Object) -> Object:
    """Return an object whose types fit, in the form of the store.

    Raises:
        DecodeError: When a type does not fit.
    """
    if not resource.is_custom:
        return event_forms.stored(resource, decoding.decode(resource.shape, found, resource.kind))
    meta: Mapping[str, Any] = found["metadata"]
    shape = shapes.built_in(shapes.OBJECT_META)
    return found | {"metadata": decoding.decode(shape, dict(meta), "ObjectMeta")}

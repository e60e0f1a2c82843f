"""Requests of the method PATCH: which kind of patch it is, and what comes out of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from partita.simulator.api_server import bodies, failures
from partita.simulator.api_server.decoding import DecodeError
from partita.simulator.api_server.failures import ApiFailure, Cause
from partita.simulator.api_server.patches import PatchError, apply_json_patch, apply_merge_patch
from partita.simulator.api_server.requests import Request
from partita.simulator.api_server.shapes import Object
from partita.simulator.api_server.strategic_merge import apply_strategic_merge

__all__ = ["Patch", "configuration", "patched", "read"]

_JSON_TEXT = json.JSONEncoder(separators=(",", ":"))
_JSON = "application/json-patch+json"
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A patch.

    Attributes:
        type: Its media type.
        content: What it says.
        force: Whether an applied configuration takes fields from others.
    """

    type: str
    content: Any
    force: bool = False

    @property
    def applies(self) -> bool:
        """Whether it is an applied configuration."""
        return self.type == _APPLY


def read(request: Request) -> Patch:
    """Return the patch of a request.

    Raises:
        ApiFailure: When it is none, or its options make no sense.
    """
    accepted = [_JSON, _MERGE, _STRATEGIC, _APPLY]
    if request.resource.is_custom:
        accepted.remove(_STRATEGIC)
    if request.content_type not in {_JSON, _MERGE, _STRATEGIC, _APPLY}:
        message = "415: Unsupported Media Type"
        raise ApiFailure(415, failures.status(415, message, "UnsupportedMediaType", {}))
    if request.content_type not in accepted:
        raise failures.unsupported_media(accepted)
    applies = request.content_type == _APPLY
    if not applies and request.flag("force"):
        cause = Cause.forbidden("force", "may not be specified for non-apply patch")
        raise failures.unprocessable("PatchOptions", [cause])
    if applies and not request.query.get("fieldManager"):
        cause = Cause.required("fieldManager", "is required for apply patch")
        raise failures.unprocessable("PatchOptions", [cause])
    content = _content(request)
    return Patch(type=request.content_type, content=content, force=request.flag("force"))


def _content(request: Request) -> Any:
    try:
        content = bodies.parse_yaml(request.body)
    except ApiFailure:
        if request.content_type == _APPLY:
            raise
        content = None
    wanted: type = list if request.content_type == _JSON else dict
    if isinstance(content, wanted):
        return content
    if request.content_type == _JSON and isinstance(content, dict):
        why = "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        raise failures.bad_request(f"error decoding patch: {why}")
    raise failures.bad_request("invalid JSON patch")


def patched(request: Request, old: Object, patch: Patch) -> tuple[Object, list[str]]:
    """Return an object after a patch, in the form of the store, and warnings.

    Raises:
        ApiFailure: When the patch cannot be applied, or its result is no object of the kind.
    """
    try:
        found = _applied(request, old, patch)
    except PatchError as error:
        if patch.type == _JSON:
            raise ApiFailure(422, _rejected()) from error
        raise failures.bad_request(str(error)) from error
    shown = _go(patch.content) if patch.type == _STRATEGIC else _JSON_TEXT.encode(found)
    identified = bodies.identify(request.resource, found)
    pruned, objections = bodies.without_unknown(request, identified)
    validation = request.query.get("fieldValidation", "Warn")
    if objections and validation == "Strict":
        why = f"strict decoding error: {', '.join(objections)}"
        raise failures.invalid_patch(shown, why)
    try:
        return bodies.typed(request.resource, pruned), objections if validation == "Warn" else []
    except DecodeError as error:
        raise failures.invalid_patch(shown, str(error)) from error


def _go(value: Any) -> str:
    """Return a value as Go prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_go(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go, value))}]"
    return {None: "<nil>", True: "true", False: "false"}.get(value, str(value))


def _rejected() -> Mapping[str, Any]:
    message = "the server rejected our request due to an error in our request"
    return failures.status(422, message, "Invalid", {})


def _applied(request: Request, old: Object, patch: Patch) -> Object:
    if patch.type == _JSON:
        found = apply_json_patch(old, patch.content)
    elif patch.type == _MERGE:
        found = apply_merge_patch(old, patch.content)
    else:
        found = apply_strategic_merge(request.resource.shape, old, patch.content)
    if not isinstance(found, dict):
        raise PatchError("the whole object was replaced")
    return found


def configuration(request: Request, patch: Patch, *, is_new: bool) -> Object:
    """Return an applied configuration, as far as this path lets it reach.

    Raises:
        ApiFailure: When it is none of this kind.
    """
    content = dict(patch.content)
    _check_type(request, content)
    metadata = content.get("metadata") or {}
    if metadata.get("managedFields"):
        raise failures.bad_request("metadata.managedFields must be nil")
    if request.resource.has_status:
        if not request.subresource and not is_new:
            content.pop("status", None)
        elif request.subresource:
            reach = {"apiVersion", "kind", "metadata", "status"}
            content = {key: one for key, one in content.items() if key in reach}
            if request.resource.is_custom:
                metadata = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    return content | {"metadata": metadata}


def _check_type(request: Request, content: Object) -> None:
    version, kind = content.get("apiVersion", ""), content.get("kind", "")
    if not version or not kind:
        raise failures.bad_request(f"invalid object type: /{version}, Kind={kind}")
    bodies.identify(request.resource, content)

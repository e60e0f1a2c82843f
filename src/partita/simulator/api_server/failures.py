"""What the API server says no with: ``Status`` objects, worded as Kubernetes words them.

Clients and people read these words, and some programs match them; the contract suite holds each
against the real API server.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol

__all__ = [
    "ApiFailure",
    "Cause",
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "forbidden",
    "invalid",
    "invalid_patch",
    "method_not_allowed",
    "modified",
    "no_such_path",
    "not_acceptable",
    "not_found",
    "status",
    "too_large_version",
    "unprocessable",
    "unsupported_media",
]


class Named(Protocol):
    """What a refusal needs to know of a resource."""

    @property
    def group(self) -> str:
        """API group, empty for the core."""
        ...

    @property
    def plural(self) -> str:
        """Name in paths."""
        ...

    @property
    def kind(self) -> str:
        """Name of the kind."""
        ...


class ApiFailure(Exception):  # noqa: N818 - it is an answer, and may be a success of another kind
    """The server refuses, with this status object.

    Attributes:
        code: HTTP status.
        status: The body of the answer.
        retry_seconds: What ``Retry-After`` says; None = nothing.
    """

    def __init__(
        self, code: int, status: Mapping[str, Any] | str, *, retry_seconds: int | None = None
    ) -> None:
        super().__init__(status if isinstance(status, str) else str(status["message"]))
        self.code = code
        self.status = status
        self.retry_seconds = retry_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One objection to one field.

    Attributes:
        reason: Such as ``FieldValueInvalid``.
        field: Path of the field.
        message: What is wrong with it.
    """

    reason: str
    field: str
    message: str

    @staticmethod
    def invalid(field: str, value: object, detail: str, *, is_type: bool = False) -> "Cause":
        """Return the objection to a value."""
        shown = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        reason = "FieldValueTypeInvalid" if is_type else "FieldValueInvalid"
        return Cause(reason=reason, field=field, message=f"Invalid value: {shown}: {detail}")

    @staticmethod
    def required(field: str, detail: str = "") -> "Cause":
        """Return the objection to a missing value."""
        tail = f": {detail}" if detail else ""
        return Cause(reason="FieldValueRequired", field=field, message=f"Required value{tail}")

    @staticmethod
    def forbidden(field: str, detail: str) -> "Cause":
        """Return the objection to a change."""
        return Cause(reason="FieldValueForbidden", field=field, message=f"Forbidden: {detail}")

    @staticmethod
    def unsupported(field: str, value: object, supported: Iterable[object]) -> "Cause":
        """Return the objection to a word that is not among the known ones."""
        words = ", ".join(json.dumps(one) for one in supported)
        message = f"Unsupported value: {json.dumps(value)}: supported values: {words}"
        return Cause(reason="FieldValueNotSupported", field=field, message=message)

    @staticmethod
    def duplicate(field: str, value: object) -> "Cause":
        """Return the objection to a second value of the same identity."""
        shown = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        reason = "FieldValueDuplicate"
        return Cause(reason=reason, field=field, message=f"Duplicate value: {shown}")

    def as_object(self) -> dict[str, str]:
        """Return it as it stands in a status object."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


def status(
    code: int,
    message: str,
    reason: str = "",
    details: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a status object of a refusal."""
    found: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    found |= {"status": "Failure", "message": message}
    if reason:
        found["reason"] = reason
    if details is not None:
        found["details"] = details
    return found | {"code": code}


def _failure(
    code: HTTPStatus, message: str, reason: str = "", details: Mapping[str, Any] | None = None
) -> ApiFailure:
    return ApiFailure(code, status(code, message, reason, details))


def _details(resource: Named, name: str, *, kind: str = "") -> dict[str, Any]:
    found = {"name": name} if name else {}
    if resource.group:
        found["group"] = resource.group
    return found | {"kind": kind or resource.plural}


def _qualified(resource: Named) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def not_found(resource: Named, name: str) -> ApiFailure:
    """Return the answer for an object that is not there."""
    message = f'{_qualified(resource)} "{name}" not found'
    return _failure(HTTPStatus.NOT_FOUND, message, "NotFound", _details(resource, name))


def no_such_path(*, resource_unknown: bool = False) -> ApiFailure:
    """Return the answer for a path that nobody serves."""
    if not resource_unknown:
        return ApiFailure(HTTPStatus.NOT_FOUND, "404 page not found\n")
    message = "the server could not find the requested resource"
    return _failure(HTTPStatus.NOT_FOUND, message, "NotFound", {})


def method_not_allowed() -> ApiFailure:
    """Return the answer for a method that the path does not know."""
    message = "the server does not allow this method on the requested resource"
    return _failure(HTTPStatus.METHOD_NOT_ALLOWED, message, "MethodNotAllowed", {})


def already_exists(resource: Named, name: str) -> ApiFailure:
    """Return the answer for a name that is taken."""
    message = f'{_qualified(resource)} "{name}" already exists'
    return _failure(HTTPStatus.CONFLICT, message, "AlreadyExists", _details(resource, name))


def conflict(resource: Named, name: str, why: str, *, what: str = "") -> ApiFailure:
    """Return the answer for a change that does not fit what stands.

    ``what`` is how the answer calls the resource; by default by its name in paths.
    """
    message = f'Operation cannot be fulfilled on {what or _qualified(resource)} "{name}": {why}'
    details = _details(resource, name, kind=what)
    return _failure(HTTPStatus.CONFLICT, message, "Conflict", details)


def modified(resource: Named, name: str) -> ApiFailure:
    """Return the answer for a change of an older version."""
    why = (
        "the object has been modified; please apply your changes to the latest version "
        "and try again"
    )
    return conflict(resource, name, why)


def invalid(resource: Named, name: str, causes: Iterable[Cause]) -> ApiFailure:
    """Return the answer for an object that breaks its rules."""
    qualified = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details = _details(resource, name, kind=resource.kind)
    return _invalid(f'{qualified} "{name}"', details, causes)


def unprocessable(kind: str, causes: Iterable[Cause]) -> ApiFailure:
    """Return the answer for options, such as ``ListOptions``, that make no sense."""
    return _invalid(f'{kind}.meta.k8s.io ""', {"group": "meta.k8s.io", "kind": kind}, causes)


def invalid_patch(shown: str, why: str) -> ApiFailure:
    """Return the answer for a patch whose result is no object of its kind."""
    return _invalid(' ""', {}, [Cause.invalid("patch", shown, why)])


def _invalid(subject: str, details: dict[str, Any], causes: Iterable[Cause]) -> ApiFailure:
    found = list(causes)
    lines = [f"{cause.field}: {cause.message}" for cause in found]
    listed = f"[{', '.join(lines)}]" if len(lines) > 1 else "".join(lines)
    details = details | {"causes": [cause.as_object() for cause in found]}
    message = f"{subject} is invalid: {listed}" if found else _REJECTED
    return _failure(HTTPStatus.UNPROCESSABLE_ENTITY, message, "Invalid", details if found else {})


_REJECTED = "the server rejected our request due to an error in our request"


def bad_request(message: str) -> ApiFailure:
    """Return the answer for a request that cannot be understood."""
    return _failure(HTTPStatus.BAD_REQUEST, message, "BadRequest")


def forbidden(resource: Named, name: str, why: str, causes: Iterable[Cause] = ()) -> ApiFailure:
    """Return the answer for what may not be done now."""
    details = _details(resource, name)
    if listed := [cause.as_object() for cause in causes]:
        details["causes"] = listed
    message = f'{_qualified(resource)} "{name}" is forbidden: {why}'
    return _failure(HTTPStatus.FORBIDDEN, message, "Forbidden", details)


def expired(message: str) -> ApiFailure:
    """Return the answer for a version that is forgotten."""
    return _failure(HTTPStatus.GONE, message, "Expired")


def too_large_version(wanted: int, current: int) -> ApiFailure:
    """Return the answer for a version that is not there yet."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    details = {"causes": causes, "retryAfterSeconds": 1}
    code = HTTPStatus.GATEWAY_TIMEOUT
    return ApiFailure(code, status(code, message, "Timeout", details), retry_seconds=1)


def not_acceptable(available: str) -> ApiFailure:
    """Return the answer for a representation that is not offered."""
    message = f"406: Not Acceptable\n\nAvailable representations: {available}"
    return _failure(HTTPStatus.NOT_ACCEPTABLE, message, "NotAcceptable", {})


def unsupported_media(accepted: Iterable[str]) -> ApiFailure:
    """Return the answer for a body that is not understood."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return _failure(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message, "UnsupportedMediaType")

"""Bodies in protobuf, as ``kubectl create configmap`` and ``create namespace`` send them.

Only these kinds and service accounts are understood, and of them what kubectl can say there; every
other body has to be JSON. Field numbers are those of Kubernetes' ``generated.proto`` files.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from partita.simulator.api_server.shapes import Object

__all__ = ["MEDIA_TYPE", "UnknownKindError", "decode"]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_RAW = 2
_TEXT, _TEXTS, _MAP, _BOOLEAN = "text", "texts", "map", "boolean"
_Fields = Mapping[int, tuple[str, Any]]

_META: _Fields = {
    1: ("name", _TEXT),
    2: ("generateName", _TEXT),
    3: ("namespace", _TEXT),
    11: ("labels", _MAP),
    12: ("annotations", _MAP),
    14: ("finalizers", _TEXTS),
}
_KINDS: Mapping[str, _Fields] = {
    "ConfigMap": {1: ("metadata", _META), 2: ("data", _MAP), 4: ("immutable", _BOOLEAN)},
    "Namespace": {1: ("metadata", _META)},
    "ServiceAccount": {1: ("metadata", _META)},
}


class UnknownKindError(Exception):
    """The body is of a kind that is understood as JSON only, or no message at all."""


def decode(kind: str, body: bytes) -> Object:
    """Return the object of a kind that a body holds.

    Raises:
        UnknownKindError: When it cannot be understood.
    """
    if not body.startswith(_MAGIC) or kind not in _KINDS:
        raise UnknownKindError(kind)
    try:
        parts = dict(_fields(body[len(_MAGIC) :]))
        return {"metadata": {}} | _message(_KINDS[kind], bytes(parts.get(_RAW, b"")))
    except (IndexError, TypeError, ValueError) as error:
        raise UnknownKindError(kind) from error


def _message(fields: _Fields, data: bytes) -> Object:
    found: Object = {}
    for number, value in _fields(data):
        name, kind = fields.get(number, ("", None))
        if kind == _TEXT and value:
            found[name] = value.decode()
        elif kind == _TEXTS:
            found.setdefault(name, []).append(value.decode())
        elif kind == _BOOLEAN:
            found[name] = bool(value)
        elif kind == _MAP:
            entry = dict(_fields(value))
            key, text = entry.get(1, b""), entry.get(2, b"")
            found.setdefault(name, {})[key.decode()] = text.decode()
        elif isinstance(kind, Mapping):
            found[name] = _message(kind, value)
    return found


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    position = 0
    while position < len(data):
        tag, position = _number(data, position)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, position = _number(data, position)
            yield number, value
        elif kind == 2:  # noqa: PLR2004 - the wire type of everything that has a length
            length, position = _number(data, position)
            yield number, data[position : position + length]
            position += length
        else:
            raise ValueError(kind)


def _number(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a number
            return value, position
        shift += 7

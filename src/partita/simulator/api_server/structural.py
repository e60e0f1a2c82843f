"""What the schema of a CRD demands: defaults are filled in, and the rest is objected to.

Not judged here, though the real server does: rules in CEL (``x-kubernetes-validations``), formats,
and ``anyOf``, ``oneOf``, ``allOf`` and ``not``.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from partita.simulator.api_server.failures import Cause
from partita.simulator.api_server.shapes import Shape

__all__ = ["objections", "with_defaults"]

_TYPES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def with_defaults(shape: Shape, value: Any) -> Any:
    """Return a value with the defaults of its schema, on every level that is there."""
    if isinstance(value, list):
        return [with_defaults(shape.items, one) for one in value]
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    for key, found in shape.fields.items():
        absent = key not in filled
        nothing = filled.get(key, "") is None and not found.node.get("nullable")
        if "default" in found.node and (absent or nothing):
            filled[key] = found.node["default"]
    return {key: with_defaults(shape.child(key) or shape, one) for key, one in filled.items()}


def objections(shape: Shape, value: Any, path: str = "") -> Iterator[Cause]:
    """Yield what the schema objects to in a value, type by type, key by key."""
    if value is None and shape.node.get("nullable"):
        return
    if not _type_fits(shape, value):
        name = _TYPES[type(value)]
        detail = f'{path} in body must be of type {shape.type}: "{name}"'
        yield Cause.invalid(path, name, detail, is_type=True)
        return
    yield from _enumeration(shape, value, path)
    if isinstance(value, dict):
        yield from _fields(shape, value, path)
    elif isinstance(value, list):
        yield from _items(shape, value, path)
    elif isinstance(value, str):
        yield from _text(shape, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(shape, value, path)


def _type_fits(shape: Shape, value: object) -> bool:
    kind = shape.type
    if kind == "any":
        return True
    found = _TYPES[type(value)]
    if kind == "int-or-string":
        return found in {"integer", "string"}
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return found == kind or (kind == "number" and found == "integer")


def _enumeration(shape: Shape, value: object, path: str) -> Iterator[Cause]:
    allowed = shape.node.get("enum")
    if allowed is not None and value not in allowed:
        yield Cause.unsupported(path, value, allowed)


def _fields(shape: Shape, value: dict[str, Any], path: str) -> Iterator[Cause]:
    prefix = f"{path}." if path else ""
    for key in shape.required:
        if key not in value:
            yield Cause.required(f"{prefix}{key}")
    for key in sorted(value):
        found = shape.child(key)
        if found is not None and not (path == "" and key in {"metadata", "apiVersion", "kind"}):
            yield from objections(found, value[key], f"{prefix}{key}")
    yield from _size(shape, len(value), path, ("Properties", "properties"))


def _items(shape: Shape, value: list[Any], path: str) -> Iterator[Cause]:
    yield from _size(shape, len(value), path, ("Items", "items"))
    seen: set[str] = set()
    for index, one in enumerate(value):
        yield from objections(shape.items, one, f"{path}[{index}]")
    for index, one in enumerate(value):
        identity = _identity(shape, one)
        if identity is not None:
            written = json.dumps(identity, sort_keys=True)
            if written in seen:
                yield Cause.duplicate(f"{path}[{index}]", identity)
            seen.add(written)


def _identity(shape: Shape, item: Any) -> Any:
    if shape.is_set:
        return item
    if shape.keys and isinstance(item, dict):
        return {key: item[key] for key in shape.keys if key in item}
    return None


def _size(shape: Shape, size: int, path: str, words: tuple[str, str]) -> Iterator[Cause]:
    suffix, word = words
    least, most = shape.node.get(f"min{suffix}"), shape.node.get(f"max{suffix}")
    if least is not None and size < least:
        detail = f"{path} in body should have at least {least} {word}"
        yield Cause.invalid(path, size, detail)
    if most is not None and size > most:
        message = f"Too many: {size}: must have at most {most} {word}"
        yield Cause(reason="FieldValueTooMany", field=path, message=message)


def _text(shape: Shape, value: str, path: str) -> Iterator[Cause]:
    least, most = shape.node.get("minLength"), shape.node.get("maxLength")
    pattern = shape.node.get("pattern")
    if least is not None and len(value) < least:
        detail = f"{path} in body should be at least {least} chars long"
        yield Cause.invalid(path, value, detail)
    if most is not None and len(value) > most:
        message = f"Too long: may not be more than {most} bytes"
        yield Cause(reason="FieldValueTooLong", field=path, message=message)
    if pattern is not None and not re.search(pattern, value):
        yield Cause.invalid(path, value, f"{path} in body should match '{pattern}'")


def _number(shape: Shape, value: float, path: str) -> Iterator[Cause]:
    node = shape.node
    least, most = node.get("minimum"), node.get("maximum")
    if least is not None and (value < least or (node.get("exclusiveMinimum") and value == least)):
        relation = "greater than" if node.get("exclusiveMinimum") else "greater than or equal to"
        yield Cause.invalid(path, value, f"{path} in body should be {relation} {least}")
    if most is not None and (value > most or (node.get("exclusiveMaximum") and value == most)):
        relation = "less than" if node.get("exclusiveMaximum") else "less than or equal to"
        yield Cause.invalid(path, value, f"{path} in body should be {relation} {most}")

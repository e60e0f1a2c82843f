"""A validator of structural schemas, the tests' own: what an API server refuses, in words.

It knows what our definitions use and fails on everything else. Rules in CEL are looked up in
``rules``, where each has a twin in Python; that they agree is for the real API server to show.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tests.manifests import rules

Schema = Mapping[str, Any]

_KNOWN = {
    *("description", "type", "properties", "required", "items", "additionalProperties", "enum"),
    *("minimum", "minLength", "minItems", "maxItems", "pattern", "format", "default"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-validations"),
}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
}


def problems(schema: Schema, value: Any, where: str = "") -> list[str]:
    """Return what is wrong with a value without nulls, keys that the schema lacks included."""
    return list(_problems(schema, value, where))


def nodes(schema: Schema, where: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield every node of a schema with its path."""
    yield where, schema
    for key, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{where}.{key}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{where}[]")


def defaulted(schema: Schema, value: Any) -> Any:
    """Return a value with the defaults of the schema filled in, as the API server does first."""
    if isinstance(value, dict):
        inner = schema.get("properties", {})
        defaults = {key: one["default"] for key, one in inner.items() if "default" in one}
        rest = schema.get("additionalProperties", {})
        known = {key: defaulted(inner.get(key, rest), one) for key, one in value.items()}
        return {**defaults, **known}
    if isinstance(value, list):
        return [defaulted(schema.get("items", {}), one) for one in value]
    return value


def _problems(schema: Schema, value: Any, where: str) -> Iterator[str]:
    assert set(schema) <= _KNOWN, set(schema) - _KNOWN
    wanted = _TYPES[schema["type"]]
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        yield f"{where} is no {schema['type']}"
        return
    yield from _bounds(schema, value, where)
    if isinstance(value, dict):
        yield from _object(schema, value, where)
    if isinstance(value, list):
        yield from _list(schema, value, where)
    for rule in schema.get("x-kubernetes-validations", ()):
        if not rules.holds(rule["rule"], value):
            yield f"{where}: {rule['message']}"


def _bounds(schema: Schema, value: Any, where: str) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is none of the words"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{where} is too small"
    if len(str(value)) < schema.get("minLength", 0):
        yield f"{where} is too short"
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        yield f"{where} has another form"
    if schema.get("format") == "date-time":
        try:
            assert "T" in value.upper()
            assert datetime.fromisoformat(value.upper()).tzinfo is not None
        except (ValueError, AssertionError):
            yield f"{where} is no time"


def _object(schema: Schema, value: Mapping[str, Any], where: str) -> Iterator[str]:
    for key in schema.get("required", ()):
        if key not in value:
            yield f"{where}.{key} is missing"
    inner = schema.get("properties")
    for key, one in value.items():
        path = f"{where}.{key}"
        if inner is not None and key in inner:
            if path != ".metadata":
                yield from _problems(inner[key], one, path)
        elif "additionalProperties" in schema:
            yield from _problems(schema["additionalProperties"], one, path)
        else:
            yield f"{path} is unknown"


def _list(schema: Schema, value: list[Any], where: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield f"{where} has too few or too many items"
    for number, one in enumerate(value):
        yield from _problems(schema["items"], one, f"{where}[{number}]")
    if schema["x-kubernetes-list-type"] == "map":
        keys = schema["x-kubernetes-list-map-keys"]
        names = [tuple(one.get(key) for key in keys) for one in value if isinstance(one, dict)]
        if len(set(map(str, names))) < len(names):
            yield f"{where} has an item twice"

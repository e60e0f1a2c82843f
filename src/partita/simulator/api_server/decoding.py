"""From the body of a request to an object of a kind: unknown fields go, types must fit.

For built-in kinds this is what Go's decoder does, in its words; zero values that Go writes although
nobody set them (``resources: {}``) are written here too. Differences to the real server: fields
that stand there twice are not noticed, and times are not normalised.
"""

from collections.abc import Mapping
from typing import Any

from partita.simulator.api_server import quantity
from partita.simulator.api_server.shapes import Object, Shape

__all__ = ["DecodeError", "decode", "prune"]

_JSON = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_PLAIN: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_GO = {"string": "string", "boolean": "bool", "number": "float64"}
_QUANTITY = "quantities must match the regular expression '%s'"
_QUANTITY_PATTERN = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"


class DecodeError(Exception):
    """A value has the wrong type; the text is the one of Go's decoder."""


def prune(shape: Shape, value: Any, *, path: str = "") -> tuple[Any, list[str]]:
    """Return a value without unknown fields, and the paths of these."""
    unknown: list[str] = []
    return _pruned(shape, value, path, unknown), unknown


def _pruned(shape: Shape, value: Any, path: str, unknown: list[str]) -> Any:
    if isinstance(value, list):
        return [
            _pruned(shape.items, one, f"{path}[{index}]", unknown)
            for index, one in enumerate(value)
        ]
    if not isinstance(value, dict) or shape.type == "any":
        return value
    kept = {}
    for key, one in value.items():
        inner = f"{path}.{key}" if path else key
        found = shape.child(key)
        if found is None:
            unknown.append(inner)
        else:
            kept[key] = _pruned(found, one, inner, unknown)
    return kept


def decode(shape: Shape, value: Object, kind: str) -> Object:
    """Return an object of a built-in kind as the server understands it, defaults filled in.

    Raises:
        DecodeError: When a value has the wrong type.
    """
    decoded: Object = _decoded(shape, value, (kind, ""))
    return decoded


def _decoded(shape: Shape, value: Any, place: tuple[str, str]) -> Any:
    kind = shape.type
    if kind == "quantity":
        return _quantity(value)
    if kind in _PLAIN:
        _check(shape, value, place)
    if isinstance(value, list):
        return [_decoded(shape.items, one, place) for one in value if one is not None]
    if isinstance(value, dict) and kind == "object":
        return _decoded_object(shape, value, place)
    return value


def _decoded_object(shape: Shape, value: Object, place: tuple[str, str]) -> Object:
    struct = shape.name if shape.name and shape.fields else place[0]
    decoded = {}
    for key, one in value.items():
        found = shape.child(key)
        if found is None or one is None:
            continue
        inner = place[1] if shape.values is not None else f"{place[1]}.{key}"
        value_there = _decoded(found, one, (struct, inner))
        if not (_is_left_out(found, value_there) and key not in shape.required):
            decoded[key] = value_there
    for key, found in shape.fields.items():
        if key not in decoded and "default" in found.node:
            decoded[key] = _zero(found)
    return decoded


def _is_left_out(shape: Shape, value: Any) -> bool:
    """Tell whether Go leaves it out: an empty list or map, but not an empty struct."""
    return value == [] or (value == {} and shape.values is not None)


def _zero(shape: Shape) -> Any:
    default = shape.node["default"]
    return _decoded_object(shape, {}, ("", "")) if default == {} else default


def _quantity(value: object) -> str:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            return quantity.canonical(str(value))
        except ValueError:
            pass
    raise DecodeError(_QUANTITY % _QUANTITY_PATTERN)


def _check(shape: Shape, value: object, place: tuple[str, str]) -> None:
    is_bool = isinstance(value, bool) and shape.type != "boolean"
    if isinstance(value, _PLAIN[shape.type]) and not is_bool:
        return
    struct, path = place
    raise DecodeError(
        f"json: cannot unmarshal {_JSON[type(value)]} into Go struct field {struct}{path}"
        f" of type {_go_type(shape)}"
    )


def _go_type(shape: Shape) -> str:
    if shape.type == "array":
        return f"[]{_go_type(shape.items)}"
    if shape.type == "integer":
        return str(shape.node.get("format", "int64"))
    if shape.values is not None:
        return f"map[string]{_go_type(shape.values)}"
    return _GO.get(shape.type, f"v1.{shape.name}")

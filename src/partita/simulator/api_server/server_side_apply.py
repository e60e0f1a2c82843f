"""Merging an applied configuration into an object, and taking out what is no longer applied."""

from collections.abc import Iterable
from typing import Any

from partita.simulator.api_server import field_sets
from partita.simulator.api_server.field_sets import FieldSet, Path
from partita.simulator.api_server.shapes import ANYTHING, Object, Shape

__all__ = ["TypeMismatchError", "check", "merge", "remove"]

_PLAIN: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


class TypeMismatchError(Exception):
    """A configuration does not fit the shape of its kind; the text says where."""


def check(shape: Shape, value: Any, path: Path = ()) -> None:
    """Refuse a configuration that has unknown fields, wrong types or an item twice.

    Raises:
        TypeMismatchError: When it has.
    """
    if value is None:
        return
    wanted = _PLAIN.get(shape.type)
    where = field_sets.write_path(path)
    if wanted is not None and not isinstance(value, wanted):
        raise TypeMismatchError(f"{where}: expected {_WORDS.get(shape.type, shape.type)}")
    if isinstance(value, dict) and shape.type == "object":
        for key, one in sorted(value.items()):
            inner = shape.child(key)
            if inner is None:
                raise TypeMismatchError(f"{where}.{key}: field not declared in schema")
            check(inner, one, (*path, f"f:{key}"))
    elif isinstance(value, list):
        _check_items(shape, value, path)


_WORDS = {"object": "map", "array": "list", "boolean": "bool", "number": "numeric"}


def _check_items(shape: Shape, value: list[Any], path: Path) -> None:
    seen: set[str] = set()
    for index, one in enumerate(value):
        element = field_sets.element_of(shape, one, index)
        if element in seen:
            shown = field_sets.write_path((element,))
            where = field_sets.write_path(path)
            raise TypeMismatchError(f"{where}: duplicate entries for key {shown}")
        seen.add(element)
        check(shape.items, one, (*path, element))


def merge(shape: Shape, live: Any, applied: Any) -> Any:
    """Return what stands, with the values of a configuration."""
    if type(live) is not type(applied) or shape.is_atomic or shape.type == "any":
        return applied
    if isinstance(live, dict):
        merged = dict(live)
        for key, one in applied.items():
            inner = shape.child(key) or ANYTHING
            merged[key] = merge(inner, live[key], one) if key in live else one
        return merged
    return _merge_lists(shape, live, applied) if isinstance(live, list) else applied


def _merge_lists(shape: Shape, live: list[Any], applied: list[Any]) -> list[Any]:
    """Return the applied items in their order, each live one that is not applied where it fits."""
    standing = {field_sets.element_of(shape, one, i): one for i, one in enumerate(live)}
    wanted = {field_sets.element_of(shape, one, i): one for i, one in enumerate(applied)}
    merged = []
    remaining = list(wanted)
    for element, one in standing.items():
        if element not in wanted:
            merged.append(one)
            continue
        while element in remaining:
            nearest = remaining.pop(0)
            merged.append(_merge_item(shape, standing, wanted, nearest))
    return merged + [_merge_item(shape, standing, wanted, element) for element in remaining]


def _merge_item(
    shape: Shape, standing: dict[str, Any], wanted: dict[str, Any], element: str
) -> Any:
    one = wanted[element]
    return merge(shape.items, standing[element], one) if element in standing else one


def remove(shape: Shape, value: Object, paths: Iterable[Path], owned: FieldSet) -> Object:
    """Return the object without these fields, as far as nobody owns anything in them."""
    doomed = frozenset(path for path in paths if not any(one[: len(path)] == path for one in owned))
    removed: Object = _without(shape, value, (), doomed) if doomed else value
    return removed


def _without(shape: Shape, value: Any, path: Path, doomed: FieldSet) -> Any:
    inside = list(field_sets.children(shape, value))
    if not inside:
        return value
    kept = []
    for element, inner, one in inside:
        here = (*path, element)
        if here in doomed:
            continue
        left = _without(inner, one, here, doomed)
        emptied = isinstance(left, dict | list) and not left and bool(one)
        if not emptied or isinstance(value, list):
            kept.append((element, left))
    if isinstance(value, dict):
        return {element[2:]: one for element, one in kept}
    return [one for _, one in kept]

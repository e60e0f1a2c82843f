"""Sets of fields, as ``managedFields`` names them: who owns what, and what a change touched.

A path is a tuple of elements such as ``f:spec``, ``k:{"name":"main"}`` or ``v:"finalizer"``, the
words of Kubernetes' FieldsV1; a set holds the paths that are its members.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from partita.simulator.api_server.shapes import ANYTHING, Object, Shape

__all__ = [
    "Comparison",
    "FieldSet",
    "Path",
    "children",
    "compare",
    "element_of",
    "encode",
    "fields_of",
    "parse",
    "write_path",
]

Path = tuple[str, ...]
FieldSet = frozenset[Path]
_MISSING: Any = object()
_UNOWNED = {"apiVersion", "kind"}
_UNOWNED_METADATA = {
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
}


def _has_owner(path: Path) -> bool:
    if path[0] != "f:metadata":
        return path[0][2:] not in _UNOWNED
    return len(path) > 1 and path[1][2:] not in _UNOWNED_METADATA


def element_of(shape: Shape, item: Any, index: int) -> str:
    """Return the element that names an item of a list."""
    if shape.keys and isinstance(item, dict):
        identity = {key: _key_value(shape, item, key) for key in sorted(shape.keys)}
        identity = {key: one for key, one in identity.items() if one is not None}
        return f"k:{_json(identity)}"
    return f"v:{_json(item)}" if shape.is_set else f"i:{index}"


def _key_value(shape: Shape, item: Object, key: str) -> Any:
    return item.get(key, shape.items.fields[key].node.get("default") if key in item else None)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def children(shape: Shape, value: Any) -> Iterator[tuple[str, Shape, Any]]:
    """Yield element, shape and value of what stands directly in a value; nothing if atomic."""
    if shape.is_atomic or shape.type == "any":
        return
    if isinstance(value, dict):
        for key, one in value.items():
            yield f"f:{key}", shape.child(key) or ANYTHING, one
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield element_of(shape, one, index), shape.items, one


def fields_of(shape: Shape, value: Object) -> FieldSet:
    """Return the fields that an applied configuration names."""
    return frozenset(path for path in _applied(shape, value, ()) if _has_owner(path))


def _applied(shape: Shape, value: Any, path: Path) -> Iterator[Path]:
    inside = list(children(shape, value))
    if not inside and path and not (isinstance(value, list) and not shape.is_atomic):
        yield path
    for element, found, one in inside:
        inner = (*path, element)
        if isinstance(value, list):
            yield inner
        yield from _applied(found, one, inner)


@dataclass(slots=True)
class Comparison:
    """What differs between two objects.

    Attributes:
        changed: Fields that are new or have another value.
        removed: Fields that are gone, with everything in them.
    """

    changed: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)


def compare(shape: Shape, old: Object, new: Object) -> Comparison:
    """Return the owned fields in which two objects differ."""
    found = Comparison()
    _compare(shape, (old, new), (), found, is_new=False)
    found.changed = {path for path in found.changed if _has_owner(path)}
    found.removed = {path for path in found.removed if _has_owner(path)}
    return found


def _compare(
    shape: Shape, pair: tuple[Any, Any], path: Path, found: Comparison, *, is_new: bool
) -> None:
    old, new = pair
    if old is new or old == new:
        return
    if not isinstance(new, dict | list) or type(old) is not type(new) or shape.is_atomic:
        if old is _MISSING and isinstance(new, dict | list) and not shape.is_atomic:
            _added(shape, new, path, found)
        else:
            found.changed.add(path)
        return
    before = {element: (inner, one) for element, inner, one in children(shape, old)}
    after = {element: (inner, one) for element, inner, one in children(shape, new)}
    if shape.type == "any":
        found.changed.add(path)
    for element, (inner, one) in after.items():
        was = _MISSING if element not in before else before[element][1]
        if element not in before and not is_new:
            was = _absent(shape, element, one)
        if was is _MISSING and isinstance(new, list):
            found.changed.add((*path, element))
        is_inner_new = is_new or was is _MISSING
        _compare(inner, (was, one), (*path, element), found, is_new=is_inner_new)
    for element in before.keys() - after.keys():
        found.removed.add((*path, element))


def _added(shape: Shape, new: Any, path: Path, found: Comparison) -> None:
    found.changed.add(path)
    _compare(shape, (type(new)(), new), path, found, is_new=True)


def _absent(shape: Shape, element: str, new: Any) -> Any:
    """Return what stood where nothing stood: in Go, some fields are never absent."""
    name = element[2:]
    if shape.is_built_in and element[:2] == "f:" and name in shape.fields:
        if "default" in shape.fields[name].node:
            return type(new)() if isinstance(new, dict) else shape.fields[name].node["default"]
        if name in shape.required and isinstance(new, dict | list):
            return type(new)()
    return {} if element == "f:metadata" else _MISSING


def parse(fields: Mapping[str, Any]) -> FieldSet:
    """Return the set that a FieldsV1 object describes."""
    return frozenset(_parsed(fields, ()))


def _parsed(fields: Mapping[str, Any], path: Path) -> Iterator[Path]:
    if not fields and path:
        yield path
    for element, inner in fields.items():
        if element == ".":
            yield path
        else:
            yield from _parsed(inner, (*path, element))


def encode(paths: Iterable[Path]) -> Object:
    """Return the FieldsV1 object of a set."""
    tree: Object = {}
    members = sorted(paths)
    for path in members:
        node = tree
        for element in path:
            node = node.setdefault(element, {})
    for path in members:
        node = tree
        for element in path:
            node = node[element]
        if node:
            inner = dict(node)
            node.clear()
            node["."] = {}
            node.update(inner)
    return tree


def write_path(path: Path) -> str:
    """Return a path as people read it: ``.spec.containers[name="main"].image``."""
    return "".join(map(_write_element, path))


def _write_element(element: str) -> str:
    kind, text = element[:2], element[2:]
    if kind == "f:":
        return f".{text}"
    if kind == "k:":
        pairs = json.loads(text).items()
        return f"[{','.join(f'{key}={_json(one)}' for key, one in pairs)}]"
    return f"[={text}]" if kind == "v:" else f"[{text}]"

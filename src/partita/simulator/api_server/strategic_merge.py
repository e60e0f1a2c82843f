"""Strategic merge patch: a merge patch that knows which lists are merged by a key.

All directives that kubectl writes are understood: ``$patch`` (``replace``, ``delete``, ``merge``),
``$deleteFromPrimitiveList``, ``$setElementOrder`` and ``$retainKeys``.
"""

from typing import Any

from partita.simulator.api_server.patches import PatchError
from partita.simulator.api_server.shapes import ANYTHING, Object, Shape

__all__ = ["apply_strategic_merge"]

_PATCH = "$patch"
_DELETE = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"


def apply_strategic_merge(shape: Shape, value: Object, patch: Object) -> Object:
    """Return the value with the fields of a patch.

    Raises:
        PatchError: When an item of a merged list lacks its key, or a directive is unknown.
    """
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: one for key, one in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if directive not in {None, "merge"}:
        raise PatchError(f"unknown patch type found in patch: {directive}")
    merged = _retained(value, patch)
    for key, one in patch.items():
        if not key.startswith("$"):
            _merge_field(shape.child(key) or ANYTHING, merged, patch, key)
        elif key.startswith(_DELETE):
            name = key.removeprefix(_DELETE)
            merged[name] = [left for left in merged.get(name, ()) if left not in one]
        elif key.startswith(_ORDER) and key.removeprefix(_ORDER) not in patch:
            name = key.removeprefix(_ORDER)
            inner, standing = shape.child(name) or ANYTHING, merged.get(name, [])
            merged[name] = _ordered(inner, standing, one, standing)
    return merged


def _retained(value: Object, patch: Object) -> Object:
    keep = patch.get(_RETAIN)
    return {key: one for key, one in value.items() if keep is None or key in keep}


def _merge_field(shape: Shape, merged: Object, patch: Object, key: str) -> None:
    new, old = patch[key], merged.get(key)
    if new is None:
        merged.pop(key, None)
    elif isinstance(new, dict):
        standing = old if isinstance(old, dict) else {}
        if "replace" in shape.patch_strategies and _PATCH not in new:
            standing = {}
        merged[key] = apply_strategic_merge(shape, standing, new)
        if new.get(_PATCH) == "delete":
            del merged[key]
    elif isinstance(new, list) and "merge" in shape.patch_strategies:
        standing_items = old if isinstance(old, list) else []
        found = _merge_list(shape, standing_items, new)
        order = patch.get(f"{_ORDER}{key}", [one for one in new if one in found or _is_item(one)])
        merged[key] = _ordered(shape, found, order, standing_items)
    else:
        merged[key] = new


def _is_item(one: Any) -> bool:
    return isinstance(one, dict) and _PATCH not in one


def _merge_list(shape: Shape, old: list[Any], new: list[Any]) -> list[Any]:
    if shape.merge_key is None:
        return [*old, *(one for one in new if one not in old)]
    if any(isinstance(one, dict) and one == {_PATCH: "replace"} for one in new):
        return [one for one in new if one != {_PATCH: "replace"}]
    merged = list(old)
    for one in new:
        _merge_item(shape, merged, one)
    return merged


def _merge_item(shape: Shape, merged: list[Any], new: Object) -> None:
    key = shape.merge_key
    assert key is not None
    if key not in new:
        raise PatchError(f"map: {new} does not contain declared merge key: {key}")
    places = [index for index, one in enumerate(merged) if one.get(key) == new[key]]
    if new.get(_PATCH) == "delete":
        merged[:] = [one for one in merged if one.get(key) != new[key]]
    elif places:
        merged[places[0]] = apply_strategic_merge(shape.items, merged[places[0]], new)
    else:
        merged.append(apply_strategic_merge(shape.items, {}, new))


def _ordered(shape: Shape, items: list[Any], order: list[Any], standing: list[Any]) -> list[Any]:
    """Return the items: the ordered ones in that order, before those that stood behind them."""
    key = shape.merge_key

    def identity(item: Any) -> Any:
        return item.get(key) if key is not None else item

    wanted = [identity(one) for one in order]
    stood = [identity(one) for one in standing]
    others = [one for one in items if identity(one) not in wanted]
    named = [one for one in items if identity(one) in wanted]
    named.sort(key=lambda one: wanted.index(identity(one)))
    merged: list[Any] = []
    for one in named:
        if identity(one) in stood:
            place = stood.index(identity(one))
            while others and stood.index(identity(others[0])) < place:
                merged.append(others.pop(0))
        merged.append(one)
    return merged + others

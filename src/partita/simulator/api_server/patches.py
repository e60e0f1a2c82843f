"""Patches that know nothing of shapes: JSON patch (RFC 6902) and JSON merge patch (RFC 7396).

Neither changes what it is given.
"""

import copy
from collections.abc import Sequence
from typing import Any

__all__ = ["PatchError", "apply_json_patch", "apply_merge_patch"]


class PatchError(Exception):
    """A patch cannot be applied to this object."""


def apply_merge_patch(value: Any, patch: Any) -> Any:
    """Return the value with the fields of a patch; null removes one."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for key, one in patch.items():
        if one is None:
            merged.pop(key, None)
        else:
            merged[key] = apply_merge_patch(merged.get(key), one)
    return merged


def apply_json_patch(value: Any, operations: Sequence[Any]) -> Any:
    """Return the value after all operations.

    Raises:
        PatchError: When one of them fails.
    """
    changed = {"": copy.deepcopy(value)}  # so that the whole has a place of its own
    for operation in operations:
        try:
            _apply(changed, operation)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise PatchError(str(operation)) from error
    return changed[""]


def _apply(root: Any, operation: dict[str, Any]) -> None:
    name, path = operation["op"], _parse(operation["path"])
    if name == "add":
        _add(root, path, copy.deepcopy(operation["value"]))
    elif name == "remove":
        _remove(root, path)
    elif name == "replace":
        _remove(root, path)
        _add(root, path, copy.deepcopy(operation["value"]))
    elif name == "move":
        _add(root, path, _remove(root, _parse(operation["from"])))
    elif name == "copy":
        _add(root, path, copy.deepcopy(_at(root, _parse(operation["from"]))))
    elif name == "test":
        if _at(root, path) != operation.get("value"):
            raise PatchError(str(operation))
    else:
        raise PatchError(str(operation))


def _parse(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise ValueError(pointer)
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")]


def _at(root: Any, path: Sequence[str]) -> Any:
    for part in path:
        root = root[_index(root, part)] if isinstance(root, list) else root[part]
    return root


def _index(found: list[Any], part: str) -> int:
    index = int(part)
    if not 0 <= index < len(found):
        raise IndexError(part)
    return index


def _add(root: Any, path: Sequence[str], value: Any) -> None:
    parent, last = _at(root, path[:-1]), path[-1]
    if not isinstance(parent, list):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    elif 0 <= int(last) <= len(parent):
        parent.insert(int(last), value)
    else:
        raise IndexError(last)


def _remove(root: Any, path: Sequence[str]) -> Any:
    parent, last = _at(root, path[:-1]), path[-1]
    return parent.pop(_index(parent, last)) if isinstance(parent, list) else parent.pop(last)

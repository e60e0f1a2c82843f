"""The JSONPath of printer columns: ``.spec.gpus[0].uuid``, ``[?(@.type=="Ready")]``, ``[*]``.

Slices, recursive descent and scripts are not understood: nothing is found.
"""

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["find"]

_STEP = re.compile(
    r"\.(?P<field>(?:[^.\[\\]|\\.)+)"
    r"|\[['\"](?P<quoted>[^'\"]+)['\"]\]"
    r"|\[(?P<index>-?\d+)\]"
    r"|\[(?P<all>\*)\]"
    r"|\[\?\(\s*@(?P<path>\.[^=!<>\s]+)\s*==\s*(?P<value>[^)]+?)\s*\)\]"
)


def find(path: str, value: Any) -> list[Any]:
    """Return all values to which a path leads."""
    found = [value]
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return []
        found = [inner for one in found for inner in _inside(step, one)]
        position = step.end()
    return found


def _inside(step: re.Match[str], value: Any) -> Iterator[Any]:
    field = step["field"] or step["quoted"]
    if field is not None:
        name = re.sub(r"\\(.)", r"\1", field)
        if isinstance(value, dict) and name in value:
            yield value[name]
    elif step["all"]:
        yield from value.values() if isinstance(value, dict) else _items(value)
    elif step["index"]:
        items, index = _items(value), int(step["index"])
        yield from items[index : index + 1 or None]
    else:
        wanted = step["value"].strip("'\"")
        for one in _items(value):
            if any(str(inner) == wanted for inner in find(step["path"], one)):
                yield one


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

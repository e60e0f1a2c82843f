"""Nodes of what a JSON parser made: one strict reader then serves files and API objects.

Such nodes have no place in a file; whoever reads them drops the places from the findings.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from partita.config.yaml_nodes import (
    Position,
    YamlEntry,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
)
from partita.errors import InputError
from partita.model.finding import Finding

__all__ = ["NOWHERE", "of", "placeless"]

NOWHERE = Position(line=0, column=0)
"""The place of what has none; findings never show it."""
_MAX_DEPTH = 100


def of(value: object, path: str) -> YamlNode:
    """Return the node of a value.

    Args:
        value: Mappings, sequences, texts, numbers, truth values and None.
        path: What the object is called in an error.

    Raises:
        InputError: When it is nested too deeply.
    """
    return _node(value, path, _MAX_DEPTH)


def placeless(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings about such nodes, each once, without the places that they do not have."""
    return tuple(dict.fromkeys(replace(one, line=None, column=None) for one in findings))


def _node(value: object, path: str, depth: int) -> YamlNode:
    if depth == 0:
        raise InputError(
            message=f"nested deeper than {_MAX_DEPTH} levels",
            hint="this is no object that partita or Kubernetes wrote",
            path=path,
        )
    if isinstance(value, Mapping):
        entries = tuple(
            YamlEntry(key=str(key), value=_node(inner, path, depth - 1), at=NOWHERE)
            for key, inner in value.items()
        )
        return YamlMapping(entries=entries, at=NOWHERE)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        items = tuple(_node(inner, path, depth - 1) for inner in value)
        return YamlSequence(items=items, at=NOWHERE)
    plain = value if isinstance(value, str | int | float | None) else str(value)
    return YamlScalar(text=str(plain), value=plain, at=NOWHERE, style='"')

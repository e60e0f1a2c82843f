"""Reads what a schema table describes, strictly: everything wrong is noted, with the nearest right.

What comes out is plain (mappings by key, lists, enumeration members) and fulfils the table, except
for its rules, which are the business of whoever makes values of it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from partita.config import schema, yaml_nodes
from partita.config.inspection import Inspection
from partita.config.schema import (
    Choice,
    Flag,
    Kind,
    ListOf,
    MapOf,
    Moment,
    Record,
    Text,
    Whole,
)
from partita.config.yaml_nodes import Position, YamlMapping, YamlNode, YamlScalar

__all__ = ["read"]

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def read(
    record: Record,
    node: YamlMapping,
    where: str,
    inspection: Inspection,
    *,
    newer_keys: bool = False,
) -> Mapping[str, Any] | None:
    """Return what a mapping says, None when it has an error.

    Args:
        record: The table.
        node: The mapping.
        where: Its path, for messages.
        inspection: Where to note what is wrong.
        newer_keys: Whether a key that the table lacks may be from a newer version of partita: it is
            noted as a warning then and left out.
    """
    before = len(inspection.findings)
    if not newer_keys:
        inspection.templates(node)  # a text that a program wrote may look like one
    found = _Reader(inspection=inspection, newer_keys=newer_keys).record(record, node, where)
    return None if inspection.has_errors_since(before) else found


@dataclass(kw_only=True)
class _Reader:
    """Goes through a document beside its table."""

    inspection: Inspection
    newer_keys: bool

    def record(self, record: Record, node: YamlMapping, where: str) -> dict[str, Any]:
        self._keys(record, node, where)
        found = {}
        for key, one in record.fields.items():
            path = f"{where}.{key}"
            value = self.value(one.kind, node.get(key), path)
            if value is not None:
                found[key] = value
            elif one.required and not _is_there(node.get(key)):
                self.inspection.error(
                    "field-missing", f"{path} is missing", node.at, f"add {key}", path
                )
        return found

    def value(self, kind: Kind, node: YamlNode | None, where: str) -> Any:
        """Return what a node says, None when it is absent, null or wrong."""
        if node is not None and yaml_nodes.is_template(node) and not isinstance(kind, Text):
            self.inspection.templates(node)
            return None
        match kind:
            case Choice(members=members):
                return self.inspection.choice(node, where, members, "choice")
            case Flag():
                return self.inspection.boolean(node, where)
            case Text() | Moment() | Whole():
                return self._bounded(kind, node, where)
            case ListOf() | MapOf() | Record():
                return self._collection(kind, node, where)

    def _collection(self, kind: ListOf | MapOf | Record, node: YamlNode | None, where: str) -> Any:
        if isinstance(kind, ListOf):
            return self._list(kind, node, where)
        mapping = self.inspection.mapping(node, where)
        if mapping is None:
            return None
        if isinstance(kind, Record):
            return self.record(kind, mapping, where)
        return self._map(kind, mapping, where)

    def _keys(self, record: Record, node: YamlMapping, where: str) -> None:
        if any(key not in record.fields for key in node.keys):
            unknown = self._newer if self.newer_keys else None
            homes = schema.homes(record, where)
            self.inspection.known_keys(node, where, record.keys, unknown, homes)
        for entry in node.duplicates():
            message, path = f"key stands twice: {entry.key}", f"{where}.{entry.key}"
            self.inspection.error("duplicate-key", message, entry.at, "remove one", path)

    def _newer(self, rule: str, at: Position, message: str, hint: str) -> None:
        self.inspection.warning(rule, message, at, hint)

    def _bounded(self, kind: Text | Moment | Whole, node: YamlNode | None, where: str) -> Any:
        value: str | int | None
        if isinstance(kind, Whole):
            value = self.inspection.integer(node, where)
        elif isinstance(node, YamlScalar) and isinstance(node.value, str):
            value = node.value
        else:
            value = self.inspection.text(node, where)
        if value is None or node is None:
            return None
        reason = _beyond(kind, value)
        if reason is not None:
            message = f"{where} must be {reason}, not: {str(value)[:80] or 'nothing'}"
            self.inspection.error("value", message, node.at, f"write {reason}", where)
            return None
        return value

    def _list(self, kind: ListOf, node: YamlNode | None, where: str) -> list[Any] | None:
        items = self.inspection.sequence(node, where)
        if items is None or node is None:
            return None
        if len(items) < kind.at_least or (kind.at_most is not None and len(items) > kind.at_most):
            most = "any number of" if kind.at_most is None else str(kind.at_most)
            bounds = f"{kind.at_least} to {most} items"
            message = f"{where} must have {bounds}, not: {len(items)}"
            self.inspection.error("length", message, node.at, f"write {bounds}", where)
        found = []
        for number, item in enumerate(items):
            path = f"{where}[{number}]"
            value = self.value(kind.item, item, path)
            if value is None and not _is_there(item):
                message = f"{path} is empty"
                self.inspection.error("field-missing", message, item.at, "remove the item", path)
            found += [value] if value is not None else []
        self._once(kind, found, node.at, where)
        return found

    def _once(self, kind: ListOf, found: Iterable[Any], at: Position, where: str) -> None:
        names: set[tuple[object, ...]] = set()
        for item in found if kind.keys else ():
            name = tuple(item.get(key) for key in kind.keys)
            if name in names:
                text = ", ".join(str(part) for part in name)
                message = f"{where} has two items with the same {' and '.join(kind.keys)}: {text}"
                self.inspection.error("duplicate-item", message, at, "remove one", where)
            names.add(name)

    def _map(self, kind: MapOf, mapping: YamlMapping, where: str) -> dict[str, Any]:
        values = {
            entry.key: self.value(kind.value, entry.value, f"{where}.{entry.key}")
            for entry in mapping.last_entries()
        }
        return {key: value for key, value in values.items() if value is not None}


def _is_there(node: YamlNode | None) -> bool:
    """Tell a value, right or wrong, from null and nothing."""
    return node is not None and not (isinstance(node, YamlScalar) and node.value is None)


def _beyond(kind: Text | Moment | Whole, value: str | int) -> str | None:
    """Return what a value must be when it is not."""
    match kind:
        case Whole(at_least=least):
            too_small = least is not None and int(value) < least
            return f"{least} or more" if too_small else None
        case Moment():
            return None if _is_moment(str(value)) else "a time like 2026-01-31T12:00:00Z"
        case Text(pattern=pattern, at_least=fewest):
            if len(str(value)) < fewest:
                return f"{fewest} or more characters"
            if pattern is not None and re.fullmatch(pattern, str(value)) is None:
                return f"a text of the form {pattern}"
            return None


def _is_moment(text: str) -> bool:
    if not _MOMENT.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text.upper())
    except ValueError:
        return False
    return True

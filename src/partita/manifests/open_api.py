"""From the readers' tables to structural OpenAPI v3 schemas, as CRDs have them."""

from collections.abc import Mapping, Sequence
from enum import Enum

from partita.config.schema import (
    Choice,
    Field,
    Flag,
    Kind,
    ListOf,
    MapOf,
    Moment,
    Record,
    Rule,
    Text,
    Whole,
)
from partita.manifests import meanings

__all__ = ["Schema", "of"]

Schema = dict[str, object]
"""A node of a schema."""


def of(kind: Kind) -> Schema:
    """Return the schema of a table."""
    match kind:
        case Text(pattern=pattern, at_least=fewest):
            return _known(type="string", pattern=pattern, minLength=fewest or None)
        case Moment():
            return {"type": "string", "format": "date-time"}
        case Choice(members=members):
            return {"type": "string", "enum": [member.value for member in members]}
        case Whole(at_least=least):
            return _known(type="integer", format="int64", minimum=least)
        case Flag():
            return {"type": "boolean"}
        case ListOf() | MapOf() | Record():
            return _collection(kind)


def _collection(kind: ListOf | MapOf | Record) -> Schema:
    if isinstance(kind, MapOf):
        return {"type": "object", "additionalProperties": of(kind.value)}
    return _list(kind) if isinstance(kind, ListOf) else _record(kind)


def _list(kind: ListOf) -> Schema:
    bounds = _known(type="array", minItems=kind.at_least or None, maxItems=kind.at_most)
    schema = {**bounds, "items": of(kind.item)}
    if kind.keys:
        schema["x-kubernetes-list-type"] = "map"
        schema["x-kubernetes-list-map-keys"] = list(kind.keys)
    else:
        schema["x-kubernetes-list-type"] = "atomic"
    return {**schema, **_rules(kind.rules)}


def _record(record: Record) -> Schema:
    schema: Schema = {"type": "object"}
    required = [key for key, field in record.fields.items() if field.required]
    if required:
        schema["required"] = required
    schema["properties"] = {
        key: _property(meanings.of_field(record, key), field)
        for key, field in record.fields.items()
    }
    return {**schema, **_rules(record.rules)}


def _property(meaning: str, field: Field) -> Schema:
    default = field.default.value if isinstance(field.default, Enum) else field.default
    return {"description": meaning, **of(field.kind), **_known(default=default)}


def _rules(rules: Sequence[Rule]) -> Mapping[str, object]:
    if not rules:
        return {}
    return {
        "x-kubernetes-validations": [
            {"rule": rule.expression, "message": rule.message} for rule in rules
        ]
    }


def _known(**parts: object) -> Schema:
    return {key: value for key, value in parts.items() if value is not None}

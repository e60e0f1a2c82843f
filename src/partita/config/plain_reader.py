"""The quick way through API objects that are as they should be: thousands of nodes at a start.

It takes the same tables as ``schema_reader`` and gives the same values, but notes nothing: at the
first thing that is out of the ordinary it gives up, and the strict reader says what it is.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from partita.config.schema import Choice, Flag, Kind, ListOf, MapOf, Moment, Record, Text, Whole

__all__ = ["Reader", "of"]

Reader = Callable[[object], Mapping[str, Any] | None]
"""From a plain mapping to what it says, None when the strict reader must look at it."""

_Taker = Callable[[Any], Any]
_TEMPLATE = re.compile(r"\$|\{\{")


class _OddError(Exception):
    """Something is out of the ordinary."""


def of(record: Record) -> Reader:
    """Return the reader of a table."""
    take = _taker(record)

    def read(value: object) -> Mapping[str, Any] | None:
        try:
            return dict(take(value))
        except _OddError:
            return None

    return read


def _taker(kind: Kind) -> _Taker:
    match kind:
        case Text():
            return _text(kind)
        case Moment():
            return _moment
        case Choice():
            return _choice(kind)
        case Whole(at_least=least):
            return _whole(least)
        case Flag():
            return _flag
        case _:
            return _collection(kind)


def _collection(kind: ListOf | MapOf | Record) -> _Taker:
    match kind:
        case ListOf():
            return _list(kind)
        case MapOf(value=value):
            return _map(_taker(value))
        case Record():
            return _record(kind)


def _text(kind: Text) -> _Taker:
    form = re.compile(kind.pattern) if kind.pattern is not None else None

    def take(value: object) -> str:
        if type(value) is not str or len(value) < kind.at_least or _TEMPLATE.search(value):
            raise _OddError
        if form is not None and form.fullmatch(value) is None:
            raise _OddError
        return value

    return take


def _moment(value: object) -> str:
    if type(value) is not str or not value.endswith("Z"):
        raise _OddError
    try:
        datetime.strptime(value[:19], "%Y-%m-%dT%H:%M:%S")  # noqa: DTZ007 - only its form counts
    except ValueError as error:
        raise _OddError from error
    if not re.fullmatch(r"(\.\d+)?Z", value[19:]):
        raise _OddError
    return value


def _choice(kind: Choice) -> _Taker:
    members = {str(member.value): member for member in kind.members}

    def take(value: object) -> object:
        if type(value) is not str or value not in members:
            raise _OddError
        return members[value]

    return take


def _whole(least: int | None) -> _Taker:
    def take(value: object) -> int:
        if type(value) is not int or (least is not None and value < least):
            raise _OddError
        return value

    return take


def _flag(value: object) -> bool:
    if type(value) is not bool:
        raise _OddError
    return value


def _list(kind: ListOf) -> _Taker:
    taker, keys, most = _taker(kind.item), kind.keys, kind.at_most

    def take(value: object) -> list[Any]:
        if type(value) is not list or len(value) < kind.at_least:
            raise _OddError
        found = [taker(item) for item in value]
        names = {tuple([item[key] for key in keys]) for item in found} if keys else found
        if len(names) < len(found) or (most is not None and len(found) > most):
            raise _OddError
        return found

    return take


def _map(taker: _Taker) -> _Taker:
    def take(value: object) -> dict[str, Any]:
        if type(value) is not dict:
            raise _OddError
        return {key: taker(one) for key, one in value.items()}

    return take


def _record(record: Record) -> _Taker:
    takers = {key: _taker(field.kind) for key, field in record.fields.items()}
    required = frozenset(key for key, field in record.fields.items() if field.required)

    def take(value: object) -> dict[str, Any]:
        if type(value) is not dict:
            raise _OddError
        try:
            found = {key: takers[key](one) for key, one in value.items()}
        except (KeyError, TypeError) as error:
            raise _OddError from error
        if not required <= found.keys():
            raise _OddError
        return found

    return take

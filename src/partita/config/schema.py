"""What documents of ours may hold: one table for the strict readers and for the CRDs.

A reader takes keys, types and bounds from here, and the schema that the API server enforces is made
of the same values, so neither can know a key that the other does not. Meanings are not repeated
here: they stand in the docstring of the value that a record becomes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = [
    "Choice",
    "Field",
    "Flag",
    "Kind",
    "ListOf",
    "MapOf",
    "Moment",
    "Record",
    "Rule",
    "Text",
    "Whole",
    "homes",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text.

    Attributes:
        pattern: What all of it matches, from ``^`` to ``$``, in what Python and RE2 have in common;
            None = any.
        at_least: Fewest characters.
    """

    pattern: str | None = None
    at_least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A time of day, RFC 3339."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of several words.

    Attributes:
        members: An enumeration whose values are the words.
    """

    members: type[Enum]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number.

    Attributes:
        at_least: The least, None = any.
    """

    at_least: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """True or false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Something that several fields must fulfil together.

    Attributes:
        expression: The rule in CEL, where ``self`` is the value that has the rule.
        message: What to tell whoever breaks it; one line.
    """

    expression: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    """A list.

    Attributes:
        item: What each item is.
        keys: Fields of the items that together occur once; empty = items may repeat.
        at_least: Fewest items.
        at_most: Most items, None = any number.
        rules: What the items must fulfil together.
    """

    item: "Kind"
    keys: tuple[str, ...] = ()
    at_least: int = 0
    at_most: int | None = None
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf:
    """A mapping whose keys are data.

    Attributes:
        value: What each value is.
    """

    value: "Kind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What stands under a key.

    Attributes:
        kind: What it is.
        required: Whether it must be there.
        default: What its absence means, where that is one plain value.
        attribute: Attribute of the record's value that tells its meaning; None = the key in snake
            case.
        meaning: Its meaning where no attribute tells it.
    """

    kind: "Kind"
    required: bool = False
    default: Enum | bool | None = None
    attribute: str | None = None
    meaning: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A mapping with known keys.

    Attributes:
        of: The value whose docstring tells the meaning of the fields.
        fields: Key → what stands under it.
        rules: What the fields must fulfil together.
    """

    of: type
    fields: Mapping[str, Field] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The known keys."""
        return tuple(self.fields)

    def inner(self, key: str) -> "Record":
        """Return the record under a key, or that of the items of the list there.

        Raises:
            KeyError: When there is neither.
        """
        kind = self.fields[key].kind
        kind = kind.item if isinstance(kind, ListOf) else kind
        if not isinstance(kind, Record):
            raise KeyError(key)
        return kind


Kind = Text | Moment | Choice | Whole | Flag | ListOf | MapOf | Record


def homes(record: Record, where: str) -> Mapping[str, str]:
    """Return key → path of the record it belongs to, for this record and those in it.

    Records in lists are left out: no path tells which item is meant.
    """
    found: dict[str, str] = {}
    for path, one in _records(record, where):
        for key in one.keys:
            found.setdefault(key, path)
    return found


def _records(record: Record, where: str) -> Iterator[tuple[str, Record]]:
    yield where, record
    for key, one in record.fields.items():
        if isinstance(one.kind, Record):
            yield from _records(one.kind, f"{where}.{key}")

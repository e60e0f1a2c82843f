"""What keys mean, taken from the docstrings of the values that they become."""

import inspect
import re

from partita.config.schema import Field, Record

__all__ = ["of_field"]

_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def of_field(record: Record, key: str) -> str:
    """Return what stands under a key of a record.

    Raises:
        KeyError: When neither the table nor the value's docstring tells it.
    """
    field: Field = record.fields[key]
    if field.meaning is not None:
        return field.meaning
    attribute = field.attribute or _HUMP.sub("_", key).lower()
    _, _, attributes = (inspect.getdoc(record.of) or "").partition("\n\nAttributes:\n")
    return _plain(dict(_ATTRIBUTE.findall(attributes))[attribute])


def _plain(text: str) -> str:
    """Return a text on one line, for readers who know no Python."""
    line = " ".join(text.split()).replace("``", "`")
    return re.sub(r"\bNone\b", "absent", line)

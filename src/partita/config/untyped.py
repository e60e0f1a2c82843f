"""JSON and YAML of others, read by path: every access says what was expected and where.

The documents come from programs (``kubectl``, the kubelet), so the place of a mistake is a path
like ``items[3].spec.nodeName``; for files that people write, ``line:column`` is worth more and
their reader works on YAML nodes. Null counts as absent, as in Kubernetes. No file access here.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NoReturn

from partita.errors import InputError

__all__ = ["HINT", "Untyped", "shown", "whole_quantity"]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,80}\Z")
_NAME = re.compile(r"[!-~]{1,253}\Z")  # printable ASCII: it ends up in tables and paths
_QUANTITY = re.compile(
    r"([+-]?\d{1,30}(?:\.\d{0,30})?)(?:([kMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?\Z"
)
_LARGEST = 2**63 - 1  # Kubernetes' own bound
_SHOWN = 60  # characters of a text in an error message
_DECIMAL, _BINARY = "kMGTPE", "KMGTPE"
HINT = "write the file anew with the program it came from"


@dataclass(frozen=True, slots=True)
class Untyped:
    """A value of unknown type at a path of a document.

    Attributes:
        value: What the parser made of it.
        path: The file, as the user named it.
        where: Path inside the document, for example ``Node.status.allocatable``.
        hint: What every error about this document advises.
    """

    value: object
    path: str
    where: str = "document"
    hint: str = HINT

    def get(self, key: str) -> "Untyped | None":
        """Return the value of a key, or None when it is absent or null."""
        found = self._dict().get(key)
        return None if found is None else replace(self, value=found, where=self._below(key))

    def need(self, key: str) -> "Untyped":
        """Return the value of a key that must be there."""
        found = self.get(key)
        return found if found is not None else self.fail(f"{key} is missing")

    def items(self) -> Iterator[tuple[str, "Untyped"]]:
        """Yield keys, as text, and values of a mapping; null values are left out."""
        for key, value in self._dict().items():
            name = _key(key)
            if name is None:
                self.fail("expected text as key, got", key)
            if value is not None:
                yield name, replace(self, value=value, where=self._below(name))

    def elements(self) -> Iterator["Untyped"]:
        """Yield the elements of a list."""
        if not isinstance(self.value, list):
            self.fail("expected a list, got", self.value)
        for number, value in enumerate(self.value):
            yield replace(self, value=value, where=f"{self.where}[{number}]")

    def text(self) -> str:
        """Return a text."""
        if not isinstance(self.value, str):
            self.fail("expected text, got", self.value)
        if not self.value.isascii():
            self._encodable(self.value)
        return self.value

    def name(self) -> str:
        """Return a text that can be a name: printable ASCII, no blanks, at most 253 characters."""
        text = self.text()
        return text if _NAME.match(text) else self.fail("expected a name, got", text)

    def scalar(self) -> str:
        """Return text, or the text of a number or a truth value that lacks its quotes."""
        if isinstance(self.value, bool):
            return str(self.value).lower()
        if isinstance(self.value, int) and abs(self.value) <= _LARGEST:
            return str(self.value)
        return self.text()

    def flag(self) -> bool:
        """Return a truth value."""
        if not isinstance(self.value, bool):
            self.fail("expected true or false, got", self.value)
        return self.value

    def whole(self) -> int:
        """Return a whole number, which may be negative."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self.fail("expected a whole number, got", self.value)
        if abs(self.value) > _LARGEST:
            self.fail("expected a whole number of at most 64 bits, got", self.value)
        return self.value

    def count(self) -> int:
        """Return a count given as number or as Kubernetes quantity: ``8``, ``"8"``, ``"1k"``."""
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            found = self.whole()
        else:
            parsed = whole_quantity(self.value) if isinstance(self.value, str) else None
            if parsed is None:
                self.fail("expected a whole number, got", self.value)
            found = parsed
        return found if found >= 0 else self.fail("expected a count, got", self.value)

    def fail(self, message: str, *got: object) -> NoReturn:
        """Raise an InputError that names this place and, after ``message``, a value."""
        text = " ".join((message, *(shown(value) for value in got)))
        raise InputError(message=f"{self.where}: {text}", hint=self.hint, path=self.path)

    def _dict(self) -> Mapping[Any, object]:
        if not isinstance(self.value, dict):
            self.fail("expected a mapping, got", self.value)
        return self.value

    def _below(self, key: str) -> str:
        return f"{self.where}.{key}" if _WORD.match(key) else f"{self.where}[{shown(key)}]"

    def _encodable(self, text: str) -> None:
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail("expected valid Unicode, got", text)


def shown(value: object) -> str:
    """Return a value for an error message: short, on one line, safe to print."""
    if isinstance(value, str):
        return ascii(value if len(value) <= _SHOWN else value[:_SHOWN] + "...")
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return str(value) if abs(value) <= _LARGEST else "a number of more than 64 bits"
    return "a list" if isinstance(value, list) else "a mapping"


def whole_quantity(text: str) -> int | None:
    """Return the value of a Kubernetes quantity, or None when it is none or not whole."""
    match = _QUANTITY.match(text)
    if match is None:
        return None
    number, suffix, exponent = match.groups()
    factor = Decimal(10) ** int(exponent) if exponent else Decimal(_factor(suffix or ""))
    product = Decimal(number) * factor
    if product != product.to_integral_value() or abs(product) > _LARGEST:
        return None
    return int(product)


def _factor(suffix: str) -> int:
    if suffix.endswith("i"):
        return int(1024 ** (_BINARY.index(suffix[0]) + 1))
    return int(1000 ** (_DECIMAL.index(suffix) + 1)) if suffix else 1


def _key(key: object) -> str | None:
    if isinstance(key, bool) or key is None:
        return None
    if isinstance(key, int) and abs(key) <= _LARGEST:
        return str(key)
    return key if isinstance(key, str) and (key.isascii() or key.isprintable()) else None

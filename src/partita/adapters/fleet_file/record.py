"""Strict reading of the fleet file: mappings with known keys, values with their place."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from partita.config import inspection, yaml_nodes
from partita.config.untyped import shown
from partita.config.yaml_nodes import Position, YamlMapping, YamlNode, YamlScalar, YamlSequence
from partita.errors import InputError

__all__ = ["HINT", "Field", "Record", "document"]

HINT = "write it like `{name: gpu-a, gpus: [{model: h100-80gb-sxm5}]}`"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}\Z")
_LONGEST_TERM = 100
_WHOLE = re.compile(r"\d{1,9}\Z", re.ASCII)
_SWITCH = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A value of the fleet file at its place.

    Attributes:
        key: The key it stands under.
        node: The YAML node.
        path: The file, as the user named it.
    """

    key: str
    node: YamlNode
    path: str

    def text(self) -> str:
        """Return the text of a single value, as written."""
        if not isinstance(self.node, YamlScalar):
            self.fail(f"{self.key}: expected a single value, got {_kind(self.node)}")
        return self.node.text

    def term(self) -> str:
        """Return a short printable text, fit to be looked up and to stand in a message."""
        text = self.text()
        if not text.isprintable() or len(text) > _LONGEST_TERM:
            self.fail(f"{self.key}: expected a name, got: {shown(text)}")
        return text

    def name(self) -> str:
        """Return a name as Kubernetes allows them, more or less."""
        text = self.text()
        if not _NAME.match(text):
            self.fail(f"{self.key}: expected a name, got: {shown(text)}")
        return text

    def whole(self, *, least: int = 0) -> int:
        """Return a whole number of at least ``least``."""
        text = self.text()
        if not _WHOLE.match(text) or int(text) < least:
            self.fail(f"{self.key}: expected a whole number from {least}, got: {shown(text)}")
        return int(text)

    def switch(self) -> bool:
        """Return whether a switch is on."""
        found = _SWITCH.get(self.text().lower())
        return (
            self.fail(f"{self.key}: expected on or off, got: {shown(self.text())}")
            if found is None
            else found
        )

    def mapping(self) -> Iterator["Field"]:
        """Yield the values of a mapping whose keys are free."""
        if not isinstance(self.node, YamlMapping):
            self.fail(f"{self.key}: expected a mapping, got {_kind(self.node)}")
        _refuse_repeated(self.node, self.path)
        for entry in self.node.entries:
            yield Field(key=entry.key, node=entry.value, path=self.path)

    @property
    def is_mapping(self) -> bool:
        """Whether it is a mapping."""
        return isinstance(self.node, YamlMapping)

    def fail(self, message: str, hint: str = HINT) -> NoReturn:
        """Raise an InputError at this place."""
        _fail(message, hint, self.path, self.node.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A mapping of the fleet file whose keys have been checked.

    Attributes:
        fields: Its values by key; null counts as absent.
        node: The YAML node.
        path: The file, as the user named it.
        what: What it describes, with article: ``a pod``.
    """

    fields: Mapping[str, Field]
    node: YamlNode
    path: str
    what: str

    def get(self, key: str) -> Field | None:
        """Return a value, None when it is absent."""
        return self.fields.get(key)

    def need(self, key: str) -> Field:
        """Return a value that must be there."""
        found = self.fields.get(key)
        return found if found is not None else self.fail(f"{self.what} needs the key: {key}")

    def whole(self, key: str, default: int, *, least: int = 0) -> int:
        """Return a whole number, or the default when it is absent."""
        found = self.fields.get(key)
        return default if found is None else found.whole(least=least)

    def records(self, key: str, what: str, keys: tuple[str, ...]) -> Iterator["Record"]:
        """Yield the mappings of a list, none when it is absent."""
        found = self.fields.get(key)
        if found is None:
            return
        if not isinstance(found.node, YamlSequence):
            found.fail(f"{key}: expected a list, got {_kind(found.node)}")
        for item in found.node.items:
            yield _record(item, self.path, what, keys)

    def fail(self, message: str, hint: str = HINT) -> NoReturn:
        """Raise an InputError at the start of the mapping."""
        _fail(message, hint, self.path, self.node.at)


def document(text: str, path: str, *, keys: tuple[str, ...]) -> Record:
    """Return the one document of a file.

    Raises:
        InputError: When it is not YAML, not one document, or has other keys.
    """
    documents = yaml_nodes.compose(text, path)
    if len(documents) != 1:
        raise InputError(
            message=f"a fleet file is one document, got: {len(documents)}", hint=HINT, path=path
        )
    return _record(documents[0], path, "a fleet file", keys)


def _record(node: YamlNode, path: str, what: str, keys: tuple[str, ...]) -> Record:
    if not isinstance(node, YamlMapping):
        _fail(f"{what} is a mapping, got {_kind(node)}", HINT, path, node.at)
    _refuse_repeated(node, path)
    fields = {}
    for entry in node.entries:
        if entry.key not in keys:
            _fail(
                f"{what} has no key: {shown(entry.key)}", _nearest(entry.key, keys), path, entry.at
            )
        if not (isinstance(entry.value, YamlScalar) and entry.value.value is None):
            fields[entry.key] = Field(key=entry.key, node=entry.value, path=path)
    return Record(fields=fields, node=node, path=path, what=what)


def _refuse_repeated(node: YamlMapping, path: str) -> None:
    for entry in node.duplicates():
        _fail(f"the key stands twice: {shown(entry.key)}", "keep one of them", path, entry.at)


def _nearest(key: str, keys: tuple[str, ...]) -> str:
    near = inspection.nearest(key[:80], keys, cutoff=0.5)
    known = "the keys are " + ", ".join(keys)
    return f"did you mean {near}? {known}" if near is not None else known


def _kind(node: YamlNode) -> str:
    match node:
        case YamlScalar():
            return f"a single value: {shown(node.text)}"
        case YamlSequence():
            return "a list"
        case YamlMapping():
            return "a mapping"


def _fail(message: str, hint: str, path: str, at: Position) -> NoReturn:
    raise InputError(message=message, hint=hint, path=path, line=at.line, column=at.column)

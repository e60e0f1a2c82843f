"""YAML with the line and column of every key and value.

Built from parser events, not from recursion, so that a hostile file (deep nesting, a chain of
aliases) is refused instead of ending the process. Duplicate keys are kept: which of them counts is
for the reader of the format to say. A text inside a text (a ConfigMap's ``data``) is read with
positions in the outer file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import yaml

from partita.errors import InputError

__all__ = [
    "Origin",
    "Position",
    "YamlEntry",
    "YamlMapping",
    "YamlNode",
    "YamlScalar",
    "YamlSequence",
    "compose",
    "compose_embedded",
    "is_template",
    "scalars",
]

_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_DEPTH = 100
_TEMPLATE = re.compile(r"\$\{[^}]*\}|\{\{.*?\}\}|^\$[A-Za-z_]\w*$")
_RESOLVER = yaml.SafeLoader("")
_TAG = "tag:yaml.org,2002:"

Plain = str | int | float | bool | None


class _Mark(Protocol):
    """What PyYAML's two kinds of marks have in common; all count from 0."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def index(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spot:
    """A mark that is there for sure."""

    line: int
    column: int
    index: int


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Position:
    """A place in a file, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlScalar:
    """A single value. ``value`` is what YAML 1.1 makes of ``text``."""

    text: str
    value: Plain
    at: Position = field(compare=False)
    style: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlSequence:
    """A list."""

    items: tuple["YamlNode", ...]
    at: Position = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlEntry:
    """A key of a mapping with its value."""

    key: str
    value: "YamlNode"
    at: Position = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlMapping:
    """A mapping as written: in order, duplicate keys included."""

    entries: tuple[YamlEntry, ...]
    at: Position = field(compare=False)

    def get(self, key: str) -> "YamlNode | None":
        """Return the value of the last entry of a key: what a lenient reader takes."""
        entry = self.entry(key)
        return None if entry is None else entry.value

    def entry(self, key: str) -> YamlEntry | None:
        """Return the last entry of a key."""
        return next((entry for entry in reversed(self.entries) if entry.key == key), None)

    def duplicates(self) -> tuple[YamlEntry, ...]:
        """Return every entry whose key stood before."""
        seen: set[str] = set()
        again = []
        for entry in self.entries:
            if entry.key in seen:
                again.append(entry)
            seen.add(entry.key)
        return tuple(again)

    def last_entries(self) -> tuple[YamlEntry, ...]:
        """Return one entry per key, the last, in the order of first appearance."""
        last = {entry.key: entry for entry in self.entries}
        return tuple(last.values())

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys, each once."""
        return tuple(dict.fromkeys(entry.key for entry in self.entries))


YamlNode = YamlScalar | YamlSequence | YamlMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where an inner text stands in the outer file.

    Attributes:
        line: Lines of the outer file before the first inner line.
        column: Columns cut off from each inner line.
        pinned: The one place to report when inner lines are not outer lines (a quoted text).
    """

    line: int = 0
    column: int = 0
    pinned: Position | None = None

    def place(self, line: int, column: int) -> Position:
        """Return the outer place of an inner one, which counts from 0."""
        if self.pinned is not None:
            return self.pinned
        return Position(line=line + self.line + 1, column=column + self.column + 1)


def compose(text: str, path: str, origin: Origin | None = None) -> tuple[YamlNode, ...]:
    """Return the documents of a YAML text; empty documents are left out.

    Raises:
        InputError: When it is not YAML, is nested too deeply, or its aliases form a loop.
    """
    builder = _Builder(text=text, path=path, origin=origin or Origin())
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise builder.refusal(error.problem or "not YAML", mark) from error
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        raise builder.refusal(_unreadable(error), None) from error
    return tuple(builder.documents)


def compose_embedded(scalar: YamlScalar, source: str, path: str) -> tuple[YamlNode, ...]:
    """Return the documents inside a text value, with places in the outer file ``source``.

    Raises:
        InputError: When the inner text is not YAML; its line and column are the outer ones.
    """
    return compose(scalar.text, path, _origin(scalar, source))


def scalars(node: YamlNode) -> Iterator[YamlScalar]:
    """Yield every distinct scalar below a node once, keys left out, in no promised order."""
    seen: set[int] = set()
    pending = [node]
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, YamlScalar):
            yield current
        elif isinstance(current, YamlSequence):
            pending.extend(current.items)
        else:
            pending.extend(entry.value for entry in current.entries)


def is_template(node: YamlNode) -> bool:
    """Tell whether a value still waits for Flux, Helm or envsubst, like ``${x}`` or ``{{ x }}``."""
    return (
        isinstance(node, YamlScalar)
        and "\n" not in node.text
        and _TEMPLATE.search(node.text) is not None
    )


def _origin(scalar: YamlScalar, source: str) -> Origin:
    if scalar.style != "|":
        return Origin(pinned=scalar.at)
    outer = source.splitlines()[scalar.at.line :]
    first_outer = next((line for line in outer if line.strip()), "")
    first_inner = next((line for line in scalar.text.splitlines() if line.strip()), "")
    return Origin(line=scalar.at.line, column=_blanks(first_outer) - _blanks(first_inner))


def _blanks(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _unreadable(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    lines = str(reason or error).splitlines()
    return lines[0] if lines else "not YAML"


@dataclass(kw_only=True)
class _Level:
    """A collection that is still open."""

    start: _Spot
    anchor: str | None
    flow: bool
    mapping: bool
    items: list[YamlNode] = field(default_factory=list)
    entries: list[YamlEntry] = field(default_factory=list)
    key: YamlScalar | None = None


@dataclass(kw_only=True)
class _Builder:
    """Turns parser events into nodes; the stack replaces recursion."""

    text: str
    path: str
    origin: Origin
    documents: list[YamlNode] = field(default_factory=list)
    stack: list[_Level] = field(default_factory=list)
    anchors: dict[str, YamlNode] = field(default_factory=dict)

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self.anchors = {}
            case yaml.ScalarEvent():
                self._add(self._scalar(event), event.anchor, event)
            case yaml.AliasEvent():
                self._add(self._alias(event), None, event)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._open(event)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                level = self.stack.pop()
                self._add(self._close(level, event), level.anchor, event)
            case _:
                pass

    def refusal(self, problem: str, mark: _Mark | None) -> InputError:
        """Return the error for a text that cannot be read, at its place in the outer file."""
        line = column = None
        source = ""
        if mark is not None:
            place = self.origin.place(mark.line, mark.column)
            line, column = place.line, place.column
            lines = self.text.splitlines()
            source = lines[mark.line] if mark.line < len(lines) else ""
        hint = _hint(problem, source)
        message = f"not readable as YAML: {problem}"
        return InputError(message=message, hint=hint, path=self.path, line=line, column=column)

    def _open(self, event: yaml.SequenceStartEvent | yaml.MappingStartEvent) -> None:
        if len(self.stack) >= _MAX_DEPTH:
            raise self.refusal(f"nested deeper than {_MAX_DEPTH} levels", event.start_mark)
        mapping = isinstance(event, yaml.MappingStartEvent)
        flow = bool(event.flow_style)
        self.stack.append(
            _Level(start=_spot(event.start_mark), anchor=event.anchor, flow=flow, mapping=mapping)
        )

    def _add(self, node: YamlNode, anchor: str | None, event: yaml.Event) -> None:
        if anchor:
            self.anchors[anchor] = node
        if not self.stack:
            if not (isinstance(node, YamlScalar) and node.text == ""):
                self.documents.append(node)
            return
        level = self.stack[-1]
        if not level.mapping:
            level.items.append(node)
        elif level.key is None:
            level.key = self._key(node, event)
        else:
            level.entries += self._entries(level.key, node)
            level.key = None

    def _key(self, node: YamlNode, event: yaml.Event) -> YamlScalar:
        if isinstance(node, YamlScalar):
            return node
        raise self.refusal("a key is a list or a mapping", event.start_mark)

    def _entries(self, key: YamlScalar, value: YamlNode) -> list[YamlEntry]:
        if key.text != "<<" or key.style:
            return [YamlEntry(key=key.text, value=value, at=key.at)]
        merged = value.items if isinstance(value, YamlSequence) else (value,)
        own = {entry.key for entry in self.stack[-1].entries}
        return [
            entry
            for mapping in merged
            if isinstance(mapping, YamlMapping)
            for entry in mapping.last_entries()
            if entry.key not in own
        ]

    def _close(self, level: _Level, event: yaml.Event) -> YamlNode:
        at = self.origin.place(level.start.line, level.start.column)
        if not level.mapping:
            return YamlSequence(items=tuple(level.items), at=at)
        as_key = bool(self.stack) and self.stack[-1].mapping and self.stack[-1].key is None
        if level.flow and (as_key or _is_braces(level.entries)):
            text = self.text[level.start.index : _spot(event.end_mark).index]
            return YamlScalar(text=text, value=text, at=at)
        return YamlMapping(entries=tuple(level.entries), at=at)

    def _scalar(self, event: yaml.ScalarEvent) -> YamlScalar:
        start = _spot(event.start_mark)
        at = self.origin.place(start.line, start.column)
        style = event.style or ""
        return YamlScalar(
            text=event.value,
            value=_plain(event) if event.implicit[0] or event.tag else event.value,
            at=at,
            style=style,
        )

    def _alias(self, event: yaml.AliasEvent) -> YamlNode:
        if event.anchor not in self.anchors:
            raise self.refusal(f"undefined or circular alias: {event.anchor}", event.start_mark)
        return self.anchors[event.anchor]


def _spot(mark: _Mark | None) -> _Spot:
    """Return a mark as a value; events of a text always have one."""
    if mark is None:
        return _Spot(line=0, column=0, index=0)
    return _Spot(line=mark.line, column=mark.column, index=mark.index)


def _is_braces(entries: list[YamlEntry]) -> bool:
    """Tell whether a flow mapping is really ``{{ … }}``: its only key was a flow mapping."""
    return len(entries) == 1 and entries[0].key.startswith("{")


def _plain(event: yaml.ScalarEvent) -> Plain:
    """Return what YAML 1.1 makes of a plain scalar; a date stays text."""
    resolve, text = _RESOLVER.resolve, event.value  # typeshed has no types for it
    tag = event.tag or resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    node = yaml.ScalarNode(tag, event.value)
    try:
        match tag.removeprefix(_TAG):
            case "null":
                return None
            case "bool":
                return bool(_RESOLVER.construct_yaml_bool(node))
            case "int":
                return int(_RESOLVER.construct_yaml_int(node))
            case "float":
                return float(_RESOLVER.construct_yaml_float(node))
            case _:
                return str(event.value)
    except (ValueError, KeyError, IndexError, OverflowError):
        return str(event.value)


def _hint(problem: str, source: str) -> str:
    if "{{" in source or "${" in source:
        return "fill in the template first (`helm template`, `flux envsubst`) and check the result"
    if "\t" in source or "'\\t'" in problem:
        return "indent with blanks, YAML does not allow tabs there"
    return "correct the text at this place; a file that ends early shows its last line here"

"""What a reader notes while it goes through a document, and the strict reading of single values.

A reader that meets a wrong value notes it and goes on, so that one run shows everything. Whoever
needs the value gets None and leaves the thing out.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Generic, TypeVar

from partita.config.yaml_nodes import (
    Position,
    YamlEntry,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    is_template,
    scalars,
)
from partita.model.finding import Finding, Severity

__all__ = ["Decoded", "Inspection", "kind_of", "nearest", "sorted_findings"]

_KINDS = {type(None): "empty", bool: "a boolean", int: "a number", float: "a fraction"}

_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")

Value = TypeVar("Value")
Choice = TypeVar("Choice", bound=Enum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded(Generic[Value]):
    """What a document says, and what is wrong with how it says it.

    Attributes:
        values: What could be read; a thing that NVIDIA's reader would refuse is left out.
        findings: What was noted, by line.
    """

    values: tuple[Value, ...]
    findings: tuple[Finding, ...] = ()


@dataclass(kw_only=True)
class Inspection:
    """Findings of one file, collected while reading.

    Attributes:
        path: The file, as the user named it.
        where: Prefix of ``Finding.where``, for example ``data.any``.
        subject: What every message is about when the place does not tell, such as a node.
        findings: What was noted so far.
    """

    path: str
    where: str = ""
    subject: str = ""
    findings: list[Finding] = field(default_factory=list)

    def inside(self, name: str) -> "Inspection":
        """Return an inspection that notes into the same list under a longer prefix."""
        return replace(self, where=self._join(name))

    def error(
        self, rule: str, message: str, at: Position | None, hint: str, where: str = ""
    ) -> None:
        """Note what NVIDIA's reader or the driver refuses."""
        self._note(Severity.ERROR, rule, message, at, hint, where)

    def warning(
        self, rule: str, message: str, at: Position | None, hint: str, where: str = ""
    ) -> None:
        """Note what is dropped, or does something else than it says."""
        self._note(Severity.WARNING, rule, message, at, hint, where)

    def info(
        self,
        rule: str,
        message: str,
        at: Position | None,
        hint: str | None = None,
        where: str = "",
    ) -> None:
        """Note what will happen."""
        self._note(Severity.INFO, rule, message, at, hint, where)

    def has_errors_since(self, count: int) -> bool:
        """Tell whether an error was noted after the first ``count`` findings."""
        return any(f.severity is Severity.ERROR for f in self.findings[count:])

    def mapping(self, node: YamlNode | None, where: str) -> YamlMapping | None:
        """Return a mapping; anything else is noted. ``null`` and nothing are no mapping."""
        if isinstance(node, YamlMapping):
            return node
        if node is not None and not _is_null(node):
            self._wrong_type(node, where, "a mapping", "write `key: value` lines below it")
        return None

    def sequence(self, node: YamlNode | None, where: str) -> tuple[YamlNode, ...] | None:
        """Return the items of a list; anything else is noted."""
        if isinstance(node, YamlSequence):
            return node.items
        if node is not None and not _is_null(node):
            self._wrong_type(node, where, "a list", "write one `- ` line per item")
        return None

    def text(self, node: YamlNode | None, where: str) -> str | None:
        """Return a text; a number or a boolean is noted."""
        if isinstance(node, YamlScalar) and isinstance(node.value, str):
            return None if is_template(node) else node.value
        if node is not None and not _is_null(node):
            quoted = node.text if isinstance(node, YamlScalar) else "..."
            self._wrong_type(node, where, "a text", f'put it in quotes: "{quoted}"')
        return None

    def boolean(self, node: YamlNode | None, where: str) -> bool | None:
        """Return a boolean; the text ``"true"`` is noted."""
        if isinstance(node, YamlScalar) and isinstance(node.value, bool):
            return node.value
        if node is not None and not _is_null(node):
            self._wrong_type(node, where, "true or false", "write true or false without quotes")
        return None

    def integer(self, node: YamlNode | None, where: str) -> int | None:
        """Return a whole number; a text, a fraction or a boolean is noted."""
        if (
            isinstance(node, YamlScalar)
            and isinstance(node.value, int)
            and not isinstance(node.value, bool)
        ):
            return node.value
        if node is not None and not _is_null(node):
            self._wrong_type(node, where, "a whole number", "write digits without quotes")
        return None

    def choice(
        self, node: YamlNode | None, where: str, choices: type[Choice], rule: str
    ) -> Choice | None:
        """Return a member of an enumeration by its value; others are noted with the nearest."""
        text = self.text(node, where)
        if text is None or node is None:
            return None
        by_value = {str(member.value): member for member in choices}
        if text not in by_value:
            known = ", ".join(by_value)
            hint = _did_you_mean(text, by_value) + f"one of {known}"
            self.error(rule, f"{where} has no such value: {text}", node.at, hint, where)
        return by_value.get(text)

    def known_keys(
        self,
        mapping: YamlMapping,
        where: str,
        known: Iterable[str],
        unknown: Callable[[str, Position, str, str], None] | None = None,
        homes: Mapping[str, str] | None = None,
    ) -> None:
        """Note keys that nobody reads; say where a key of another place belongs.

        Args:
            mapping: The mapping to look at.
            where: Its path, for the message.
            known: Keys that are read here.
            unknown: How to note one, ``(rule, at, message, hint)``; an error when left out.
            homes: Key → path of the section it belongs to.
        """
        keys = tuple(known)
        for entry in mapping.entries:
            if entry.key in keys:
                continue
            home = (homes or {}).get(entry.key)
            at_path = f"{where}.{entry.key}" if where else entry.key
            if home is not None and home != where:
                rule, message = "misplaced-key", f"{at_path} is not read here"
                hint = f"move it to {home}.{entry.key}" if home else "move it to the top level"
            else:
                rule, message = "unknown-key", f"nobody reads this key: {at_path}"
                guess = _did_you_mean(entry.key, keys) or _elsewhere(entry.key, homes or {})
                hint = guess + "read here: " + ", ".join(keys)
            if unknown is not None:
                unknown(rule, entry.at, message, hint)
            else:
                self.error(rule, message, entry.at, hint, at_path)

    def duplicate_keys(self, mapping: YamlMapping, where: str) -> None:
        """Note keys that stand twice."""
        for entry in mapping.duplicates():
            self.warning(
                "duplicate-key",
                f"key stands twice, the last one counts: {entry.key}",
                entry.at,
                "remove one; readers that follow YAML strictly refuse the file",
                f"{where}.{entry.key}" if where else entry.key,
            )

    def fold_case(self, mapping: YamlMapping, where: str, known: Iterable[str]) -> YamlMapping:
        """Return a mapping with keys as NVIDIA's plugin takes them; note other letter case."""
        keys = tuple(known)
        by_lower = {key.lower(): key for key in keys}
        entries: list[YamlEntry] = []
        for entry in mapping.entries:
            key = by_lower.get(entry.key.lower())
            if key is None or entry.key in keys:
                entries.append(entry)
                continue
            entries.append(replace(entry, key=key))
            self.info(
                "key-case",
                "NVIDIA's plugin reads this key in any letter case, other readers drop it: "
                + entry.key,
                entry.at,
                f"write {key}",
                f"{where}.{key}" if where else key,
            )
        return replace(mapping, entries=tuple(entries))

    def label_value(self, name: str, at: Position) -> None:
        """Note the name of a config that no node label can have as its value."""
        if not _LABEL_VALUE.fullmatch(name):
            self.error(
                "not-a-label-value",
                f"no node label can have this value, so nothing selects the config: {name}",
                at,
                "use at most 63 letters, digits, `-`, `_` and `.`, a letter or digit at both ends",
                name,
            )

    def ignored(self, document: YamlNode) -> None:
        """Note a document that is of no kind that is read here."""
        kind = document.get("kind") if isinstance(document, YamlMapping) else None
        self.info(
            "document-ignored",
            "this document is not read, it is of the kind: "
            + (kind.text if isinstance(kind, YamlScalar) else kind_of(document)),
            document.at,
        )

    def templates(self, node: YamlNode) -> None:
        """Note values that wait for a substitution."""
        for scalar in scalars(node):
            if is_template(scalar):
                self.error(
                    "unexpanded-variable",
                    f"unexpanded variable: {scalar.text}",
                    scalar.at,
                    "check the output of the tool that fills it in, or write the value",
                )

    def _wrong_type(self, node: YamlNode, where: str, wanted: str, hint: str) -> None:
        if is_template(node):
            return  # `templates` says so already
        shown = f": {node.text[:40]!r}" if isinstance(node, YamlScalar) else ""
        message = f"{where} must be {wanted}, not {kind_of(node)}{shown}"
        self.error("wrong-type", message, node.at, hint, where)

    def _note(
        self,
        severity: Severity,
        rule: str,
        message: str,
        at: Position | None,
        hint: str | None,
        where: str,
    ) -> None:
        self.findings.append(
            Finding(
                rule=rule,
                severity=severity,
                message=f"{self.subject}: {message}" if self.subject else message,
                hint=hint,
                path=self.path,
                line=at.line if at else None,
                column=at.column if at else None,
                where=self._join(where),
            )
        )

    def _join(self, where: str) -> str:
        return "/".join(part for part in (self.where, where) if part)


def nearest(word: str, words: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the word most like another, case aside, or None when nothing is."""
    by_lower = {candidate.lower(): candidate for candidate in words}
    close = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else None


def kind_of(node: YamlNode) -> str:
    """Return what a value is, in words."""
    if isinstance(node, YamlMapping):
        return "a mapping"
    if isinstance(node, YamlSequence):
        return "a list"
    return _KINDS.get(type(node.value), "a text")


def _is_null(node: YamlNode) -> bool:
    return isinstance(node, YamlScalar) and node.value is None


def _did_you_mean(word: str, words: Iterable[str]) -> str:
    close = nearest(word, words)
    return f"did you mean {close}? " if close else ""


def _elsewhere(word: str, homes: Mapping[str, str]) -> str:
    close = nearest(word, homes)
    return f"did you mean {homes[close]}.{close}? ".replace(" .", " ") if close else ""


def sorted_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings by line and column, each once."""
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda f: (f.line or 0, f.column or 0, f.rule)))

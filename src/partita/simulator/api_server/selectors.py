"""Label and field selectors of lists and watches."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from partita.simulator.api_server.failures import bad_request
from partita.simulator.api_server.resource_types import ResourceType
from partita.simulator.api_server.shapes import Object

__all__ = ["Selector", "parse"]

_TOKEN = re.compile(r"\s*(!=|==|=|,|\(|\)|!|>|<|[^\s!=,()<>]+)")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$")
_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_EVENT_FIELDS = (
    *(
        f"involvedObject.{one}"
        for one in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")
    ),
    *("involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"),
)
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "events": _EVENT_FIELDS,
    "namespaces": ("status.phase", "name"),
}
_COMMON = ("metadata.name", "metadata.namespace")

Labels = Mapping[str, str]
Condition = Callable[[Labels], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which objects are meant.

    Attributes:
        labels: Conditions on labels.
        fields: Path, value, and whether the field must have it or must not.
    """

    labels: tuple[Condition, ...] = ()
    fields: tuple[tuple[str, str, bool], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it means every object."""
        return not self.labels and not self.fields

    def matches(self, found: Object) -> bool:
        """Tell whether an object is meant."""
        if self.fields and not all(
            (_field(found, path) == value) is wanted for path, value, wanted in self.fields
        ):
            return False
        if not self.labels:
            return True
        labels = found["metadata"].get("labels") or {}
        return all(condition(labels) for condition in self.labels)


def parse(resource: ResourceType, query: Mapping[str, str]) -> Selector:
    """Return the selector of a request.

    Raises:
        ApiFailure: When it cannot be understood.
    """
    return Selector(
        labels=tuple(_Labels(query.get("labelSelector", "")).conditions()),
        fields=tuple(_fields(resource, query.get("fieldSelector", ""))),
    )


def _fields(resource: ResourceType, text: str) -> list[tuple[str, str, bool]]:
    known = (*_COMMON, *_FIELDS.get(resource.collection, ()))
    found = []
    for part in filter(None, text.split(",")):
        match = re.match(r"([^=!]*)(!=|==|=)(.*)$", part)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        if match[1] not in known:
            raise bad_request(_unknown(resource, match[1]))
        found.append((match[1], match[3], match[2] != "!="))
    return found


def _unknown(resource: ResourceType, field: str) -> str:
    if resource.collection in _FIELDS or resource.is_custom:
        return f"field label not supported: {field}"
    only = ", ".join(f'"{one}"' for one in _COMMON)
    return f'"{field}" is not a known field selector: only {only}'


def _field(found: Any, path: str) -> str:
    if path == "name":
        path = "metadata.name"
    elif path == "source":
        path = "source.component"
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if found is None:
        return "false" if path in {"spec.unschedulable", "spec.hostNetwork"} else ""
    return str(found).lower() if isinstance(found, bool) else str(found)


class _Labels:
    """The parser of label selectors: ``a=b,c in (d, e),!f,g>5``."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)

    def conditions(self) -> list[Condition]:
        """Return all conditions."""
        found: list[Condition] = []
        while self._tokens:
            found.append(self._condition())
            if self._tokens and self._next() != ",":
                raise bad_request("unable to parse requirement: found '', expected: ','")
        return found

    def _next(self) -> str:
        return self._tokens.pop(0) if self._tokens else ""

    def _condition(self) -> Condition:
        first = self._next()
        if first == "!":
            absent = self._key(self._next())
            return lambda labels: absent not in labels
        key = self._key(first)
        if not self._tokens or self._tokens[0] == ",":
            return lambda labels: key in labels
        return self._comparison(key, self._next())

    def _comparison(self, key: str, operator: str) -> Condition:
        if operator in {"=", "==", "!="}:
            value = "" if self._tokens[:1] in ([], [","]) else self._next()
            if operator == "!=":
                return lambda labels: labels.get(key) != value
            return lambda labels: labels.get(key) == value
        if operator in {"in", "notin"}:
            values = self._values()
            if operator == "in":
                return lambda labels: labels.get(key) in values
            return lambda labels: labels.get(key) not in values
        if operator in {">", "<"}:
            bound, sign = int(self._next()), 1 if operator == ">" else -1
            return lambda labels: _number(labels.get(key), sign) > bound * sign
        expected = "in, notin, =, ==, !=, gt, lt"
        raise bad_request(f"unable to parse requirement: found '{operator}', expected: {expected}")

    def _values(self) -> frozenset[str]:
        if (found := self._next()) != "(":
            raise bad_request(f"unable to parse requirement: found '{found}' expected: '('")
        values: list[str] = []
        while (found := self._next()) != ")":
            if not found:
                expected = "',', ')' or identifier"
                raise bad_request(f"unable to parse requirement: found '', expected: {expected}")
            values.extend([found] if found != "," else [])
        return frozenset(values)

    def _key(self, text: str) -> str:
        if not _NAME.match(text.rpartition("/")[2]):
            shown = f'<nil>: Invalid value: "{text}": {_NAME_RULE}'
            raise bad_request(f"unable to parse requirement: {shown}")
        return text


def _number(text: str | None, sign: int) -> float:
    try:
        return int(text or "") * sign
    except ValueError:
        return float("-inf")

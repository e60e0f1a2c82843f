"""Conditions as Kubernetes writes them: ``status`` is True, False or Unknown; ``hint`` is ours."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from partita.config.schema import Choice, Field, Moment, Record, Text
from partita.model.agent_status import Condition

__all__ = ["SCHEMA", "decode", "encode", "encode_all"]


class Holding(Enum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


_OF_HOLDS = {True: Holding.TRUE, False: Holding.FALSE, None: Holding.UNKNOWN}
_HOLDS = {holding: holds for holds, holding in _OF_HOLDS.items()}

SCHEMA = Record(
    of=Condition,
    fields={
        "type": Field(
            kind=Text(at_least=1), required=True, meaning="What it is about, `Ready` for one."
        ),
        "status": Field(kind=Choice(members=Holding), required=True, meaning="Whether it holds."),
        "reason": Field(kind=Text(at_least=1), required=True),
        "message": Field(kind=Text()),
        "hint": Field(kind=Text()),
        "lastTransitionTime": Field(kind=Moment(), attribute="since"),
    },
)
"""The table of a condition."""


def encode(condition: Condition) -> Mapping[str, object]:
    """Return the document of a condition; what is empty is left out."""
    document: dict[str, object] = {
        "type": condition.type,
        "status": _OF_HOLDS[condition.holds].value,
        "reason": condition.reason,
    }
    optional = {
        "message": condition.message or None,
        "hint": condition.hint,
        "lastTransitionTime": condition.since or None,
    }
    return document | {key: value for key, value in optional.items() if value is not None}


def encode_all(conditions: Sequence[Condition]) -> list[Mapping[str, object]]:
    """Return the documents of conditions."""
    return [encode(condition) for condition in conditions]


def decode(checked: Mapping[str, Any]) -> Condition:
    """Return the condition of what ``schema_reader`` has let pass."""
    return Condition(
        type=checked["type"],
        holds=_HOLDS[checked["status"]],
        reason=checked["reason"],
        message=checked.get("message", ""),
        hint=checked.get("hint"),
        since=checked.get("lastTransitionTime", ""),
    )

"""Something that is wrong, or worth knowing, at a place in a document."""

from dataclasses import dataclass
from enum import Enum

__all__ = ["Finding", "Severity"]


class Severity(Enum):
    """How bad a finding is.

    ``ERROR``: NVIDIA's reader or the driver refuses it. ``WARNING``: it is silently dropped or does
    something else than it says. ``INFO``: what will happen, for the reader's expectations.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of ``partita check``.

    Attributes:
        rule: Stable kebab-case name of the rule.
        severity: How bad it is.
        message: What is the case, one line, no full stop.
        hint: What to do about it, None when there is nothing to do.
        path: The file, as the user named it.
        line: 1-based line, None when it is about the document as a whole.
        column: 1-based column.
        where: The config or key path it concerns, for example ``data.any/sharing.timeSlicing``.
    """

    rule: str
    severity: Severity
    message: str
    hint: str | None = None
    path: str = ""
    line: int | None = None
    column: int | None = None
    where: str = ""

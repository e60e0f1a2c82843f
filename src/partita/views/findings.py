"""Findings as text and as documents."""

from collections import Counter
from collections.abc import Mapping, Sequence

from partita.model.finding import Finding, Severity
from partita.views.style import PLAIN, Style, Tone

__all__ = ["document", "summary", "text"]

_TONES = {Severity.ERROR: Tone.BAD, Severity.WARNING: Tone.WARNING, Severity.INFO: Tone.FAINT}
_WORDS = {
    Severity.ERROR: ("error", "errors"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.INFO: ("note", "notes"),
}


def text(findings: Sequence[Finding], style: Style = PLAIN) -> str:
    """Return ``path:line:column: severity: message [rule]`` lines, hints indented below."""
    return "\n".join(line for finding in findings for line in _lines(finding, style))


def document(findings: Sequence[Finding]) -> Mapping[str, object]:
    """Return findings as plain data; what is unknown is null, not left out."""
    counts = Counter(finding.severity for finding in findings)
    return {
        "findings": [_entry(finding) for finding in findings],
        "summary": {words[1]: counts[severity] for severity, words in _WORDS.items()},
    }


def summary(findings: Sequence[Finding]) -> str:
    """Return ``2 errors, 1 warning, 3 notes``; zero counts are left out."""
    counts = Counter(finding.severity for finding in findings)
    parts = [
        f"{counts[severity]} {words[0] if counts[severity] == 1 else words[1]}"
        for severity, words in _WORDS.items()
        if counts[severity]
    ]
    return ", ".join(parts) or "nothing to note"


def _lines(finding: Finding, style: Style) -> list[str]:
    places = (finding.path, finding.line, finding.column)
    place = ":".join(str(part) for part in places if part not in (None, ""))
    severity = style.paint(finding.severity.value, _TONES[finding.severity])
    message = f"{finding.where}: {finding.message}" if _names(finding) else finding.message
    lines = [f"{place}: {severity}: {message} [{finding.rule}]"]
    return [*lines, f"    hint: {finding.hint}"] if finding.hint else lines


def _names(finding: Finding) -> bool:
    """Tell whether the text needs the config's name: without a line nothing else says it."""
    return finding.line is None and bool(finding.where)


def _entry(finding: Finding) -> Mapping[str, object]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "message": finding.message,
        "hint": finding.hint,
        "path": finding.path,
        "line": finding.line,
        "column": finding.column,
        "where": finding.where,
    }

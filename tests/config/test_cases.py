"""Every case file is found to be wrong, or right, in exactly the way its neighbour says."""

from pathlib import Path

import pytest

from partita.config import lint
from partita.model.finding import Severity

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_findings_are_the_expected_ones_at_their_places(case: Path) -> None:
    """Rule, line, column and severity of every finding are those of the ``.expected`` file."""
    expected = case.with_suffix(".expected").read_text(encoding="utf-8")
    findings = lint.read(case.read_text(encoding="utf-8"), case.name).findings
    actual = "".join(f"{f.rule}@{f.line}:{f.column} {f.severity.value}\n" for f in findings)
    assert actual == expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_messages_are_one_line_without_full_stop(case: Path) -> None:
    """A message is one line and ends without a full stop; what is wrong comes with a hint."""
    for finding in lint.read(case.read_text(encoding="utf-8"), case.name).findings:
        assert "\n" not in finding.message
        assert not finding.message.endswith(".")
        assert finding.hint or finding.severity is Severity.INFO


@pytest.mark.parametrize("case", [c for c in CASES if "clean" in c.stem], ids=lambda c: c.stem)
def test_clean_cases_have_neither_error_nor_warning(case: Path) -> None:
    """A correct document gets notes at most."""
    findings = lint.read(case.read_text(encoding="utf-8"), case.name).findings
    assert [f for f in findings if f.severity is not Severity.INFO] == []

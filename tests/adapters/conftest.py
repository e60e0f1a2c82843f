"""Reads the case files for the tests of the readers."""

from collections.abc import Callable
from pathlib import Path

import pytest

CASES = Path(__file__).parent / "cases"


@pytest.fixture
def case_text() -> Callable[[str], str]:
    """Return a function from a case's name to its text."""
    return lambda name: (CASES / name).read_text(encoding="utf-8")

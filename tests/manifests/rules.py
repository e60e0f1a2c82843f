"""The CEL rules of the definitions with a twin in Python each, for machines without a cluster."""

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

_TWINS: Mapping[str, Callable[[Any], bool]] = {
    "has(self.configMapRef) || self.strategy != 'MIG' || self.follow != 'Fixed'"
    " || (has(self.mig) && has(self.mig.layout))": lambda it: (
        "configMapRef" in it
        or it.get("strategy") != "MIG"
        or it.get("follow") != "Fixed"
        or _layout_is_there(it.get("mig"))
    ),
    "has(self.configMapRef) || self.strategy != 'TimeSlicing' || (has(self.timeSlicing))": (
        lambda it: (
            "configMapRef" in it or it.get("strategy") != "TimeSlicing" or "timeSlicing" in it
        )
    ),
    "has(self.configMapRef) || self.strategy != 'MPS' || (has(self.mps))": lambda it: (
        "configMapRef" in it or it.get("strategy") != "MPS" or "mps" in it
    ),
    "(self.layout == 'MIG') == has(self.mig)": lambda it: (
        (it.get("layout") == "MIG") == ("mig" in it)
    ),
    "(self.layout == 'TimeSlicing') == has(self.timeSlicing)": lambda it: (
        (it.get("layout") == "TimeSlicing") == ("timeSlicing" in it)
    ),
    "self.all(a, self.all(b, a.start == b.start"
    " || a.start + a.size <= b.start || b.start + b.size <= a.start))": lambda it: (
        not any(_overlap(one, other) for one, other in combinations(it, 2))
    ),
}


def expressions() -> set[str]:
    """Return every rule that has a twin."""
    return set(_TWINS)


def holds(expression: str, value: Any) -> bool:
    """Tell whether a rule holds of a value; one of the wrong shape is refused elsewhere."""
    return _TWINS[expression](value)


def _layout_is_there(mig: Any) -> bool:
    return isinstance(mig, dict) and "layout" in mig


def _overlap(one: Any, other: Any) -> bool:
    try:
        return bool(
            one["start"] < other["start"] + other["size"]
            and other["start"] < one["start"] + one["size"]
            and one["start"] != other["start"]
        )
    except (TypeError, KeyError):
        return False

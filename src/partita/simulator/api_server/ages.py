"""Times as tables show them: how long ago, in one or two units."""

from datetime import datetime

__all__ = ["age", "seconds_between"]

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY
_UNKNOWN = "<unknown>"


def seconds_between(earlier: str, now: datetime) -> float:
    """Return seconds from a time, as objects tell it, to now."""
    return (now - datetime.fromisoformat(earlier)).total_seconds()


def age(moment: str | None, now: datetime) -> str:
    """Return how long ago a moment was, as kubectl shows it."""
    if not moment:
        return _UNKNOWN
    seconds = int(seconds_between(moment, now))
    if seconds < -1:
        return "<invalid>"
    return _short(max(seconds, 0))


_STEPS = (
    (2 * _MINUTE, (1, "s"), None),
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)
"""Up to when, in which unit, and in which smaller one as well."""


def _short(seconds: int) -> str:
    for end, larger, smaller in _STEPS:
        if seconds < end:
            return _written(seconds, larger, smaller)
    return f"{seconds // _YEAR}y"


def _written(seconds: int, larger: tuple[int, str], smaller: tuple[int, str] | None) -> str:
    whole, rest = divmod(seconds, larger[0])
    text = f"{whole}{larger[1]}"
    rest //= smaller[0] if smaller is not None else larger[0]
    return f"{text}{rest}{smaller[1]}" if smaller is not None and rest else text

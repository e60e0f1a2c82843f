"""Time, so that whoever needs it can be given another one."""

from datetime import datetime
from typing import Protocol

__all__ = ["Clock"]


class Clock(Protocol):
    """A clock."""

    def monotonic(self) -> float:
        """Return seconds from some start; never goes back."""

    def now(self) -> datetime:
        """Return the time of day, with its time zone."""

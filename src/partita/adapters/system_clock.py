"""The clock of this machine."""

import time
from datetime import UTC, datetime

__all__ = ["SystemClock"]


class SystemClock:
    """A ``ports.clock.Clock``."""

    def monotonic(self) -> float:
        """Return seconds since some time before the start of the program."""
        return time.monotonic()

    def now(self) -> datetime:
        """Return the time of day in UTC."""
        return datetime.now(UTC)

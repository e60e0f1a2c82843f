"""Waiting for what nobody announces: ask again and again, for a limited time."""

import time
from collections.abc import Callable

from testbed.errors import WaitError

_PAUSE_SECONDS = 0.02


def poll(condition: Callable[[], bool], *, seconds: float, otherwise: str) -> None:
    """Ask until the condition holds.

    Raises:
        WaitError: with the words ``otherwise`` when it does not in time.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise WaitError(f"after {seconds:g} s {otherwise}")
        time.sleep(_PAUSE_SECONDS)

"""Waiting until something holds, without asking again and again."""

import asyncio
from collections.abc import Callable

__all__ = ["Wakeup"]


class Wakeup:
    """Wakes everybody who waits, each time; who is not waiting misses nothing but the call."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def send(self) -> None:
        """Have everybody look again at what they wait for."""
        self._event.set()
        self._event = asyncio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once it holds; looks now and after each ``send``."""
        while not holds():
            await self._event.wait()
